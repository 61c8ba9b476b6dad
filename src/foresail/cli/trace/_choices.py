"""Plug-ins and their parameters as people write them: ``name(first=1, second=two)``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Final

from foresail.model.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from foresail.model.registry import Entry

_FORM: Final = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_TUPLE_SEPARATOR: Final = "+"


def name_and_settings(text: str) -> tuple[str, list[str]]:
    """Name and settings of ``name(first=1, second=two)``; the parentheses may be absent.

    Raises
    ------
    InputError
        If it is not of this form.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise InputError("not a name", value=text, expected="name or name(parameter=value, ...)")
    inside = form[2] or ""
    return form[1], [part.strip() for part in inside.split(",") if part.strip()]


def record(entry: Entry, settings: Iterable[str]) -> Any:
    """The plug-in's parameters record with ``key=value`` settings, the last of a key counting.

    ``none`` stands for no value; several values of one parameter are joined by ``+``.

    Raises
    ------
    InputError
        If a setting is no ``key=value``, its value is of another type or out of range, or a
        parameter without a default was not set.
    UnknownNameError
        If there is no such parameter.
    """
    values = dict(_setting(entry, setting) for setting in settings)
    for field in fields(entry.parameters):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in values:
            raise InputError(
                f"the {entry.family} {entry.name} needs this parameter",
                field=field.name,
                expected=f"{field.name}=...",
            )
    return entry.parameters(**values)


def parameter_texts(entry: Entry) -> list[str]:
    """The plug-in's parameters as ``name=default``, or the name alone where one must be given."""
    return [
        field.name if field.default is MISSING else f"{field.name}={_said(field.default)}"
        for field in fields(entry.parameters)
    ]


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return _TUPLE_SEPARATOR.join(map(str, value))
    return "none" if value is None else str(value)


def _setting(entry: Entry, setting: str) -> tuple[str, Any]:
    from typing import get_origin, get_type_hints

    from pydantic import TypeAdapter, ValidationError

    name, equals, text = (part.strip() for part in setting.partition("="))
    if not equals:
        raise InputError("not a setting", value=setting, expected="parameter=value")
    hints = get_type_hints(entry.parameters)
    if name not in hints:
        raise UnknownNameError(f"parameter of {entry.name}", name, hints)
    value: Any = None if text.lower() == "none" else text
    if get_origin(hints[name]) is tuple:
        value = [part.strip() for part in text.split(_TUPLE_SEPARATOR) if part.strip()]
    try:
        return name, TypeAdapter(hints[name]).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[-1]["msg"]
        raise InputError(
            f"not a value of this parameter: {problem}", field=name, value=text
        ) from error
