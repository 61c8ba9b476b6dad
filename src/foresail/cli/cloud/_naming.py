"""Errors of the code's fields, told by the options that gave them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextmanager
def told_by_options(options: Mapping[str, str]) -> Iterator[None]:
    """Raise errors about these fields anew, with the option's name in place of the field's."""
    try:
        yield
    except InputError as error:
        option = options.get(error.field or "")
        if option is None:
            raise
        expected = error.expected
        raise InputError(
            error.problem,
            source=error.source,
            field=option,
            value=error.value,
            expected=expected and expected.replace(f"{error.field}=", f"{option} "),
        ) from error
