"""Mistakes of plug-ins from files of the user's, told in a sentence with file and line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from foresail.model.errors import ForesailError, InputError


@contextmanager
def blaming_plug_ins() -> Iterator[None]:
    """Tell errors raised in a plug-in's file, or by what a plug-in has returned, as the plug-in's.

    Raises
    ------
    InputError
        In their place.
    """
    try:
        yield
    except ForesailError:
        raise
    except (Exception, SystemExit) as error:
        blamed = _blamed(error)
        if blamed is None:
            raise
        raise blamed from error


def _blamed(error: BaseException) -> InputError | None:
    import traceback

    from foresail.model.registry import family_in

    problem = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".removesuffix(": ")
    causes = [error, *([] if error.__cause__ is None else [error.__cause__])]
    frames = [one for each in causes for one in traceback.walk_tb(each.__traceback__)][::-1]
    for frame, line in frames:
        family = family_in(frame.f_globals.get("__name__", ""))
        if family is not None:
            file = frame.f_code.co_filename
            return InputError(f"the {family} fails: {problem}", source=file, line=line)
    if isinstance(error, SystemExit):
        return None
    for frame, _ in frames:
        asked = {type(each) for each in _known_in(frame)}
        found = sorted(_told(kind) for kind in asked if family_in(kind.__module__) is not None)
        if found:
            return InputError(f"{' or '.join(found)} returns what cannot be used: {problem}")
    return None


def _known_in(frame: FrameType) -> list[object]:
    """All that is known where an error was raised: what was asked is among it."""
    known = frame.f_locals
    return [*known.values(), *getattr(known.get("self"), "__dict__", {}).values()]


def _told(kind: type) -> str:
    """A class with its file and line."""
    import inspect

    line = inspect.getsourcelines(kind)[1]
    return f"{inspect.getsourcefile(kind)}, line {line}: {kind.__qualname__}"
