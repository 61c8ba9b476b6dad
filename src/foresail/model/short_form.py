"""Plug-ins as people write them, ``name(first=1,second=two)``, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from foresail.model.errors import InputError, UnknownNameError
from foresail.model.protocols import Predictor, Scheduler
from foresail.model.registry import Entry, find, place_of
from foresail.model.words import DURATION_FORMS, SIZE_FORM, parse_duration, parse_size

_UNITS: Final = {
    "_seconds": (parse_duration, DURATION_FORMS),
    "_bytes": (lambda text: int(parse_size(text)), f"bytes, or {SIZE_FORM}"),
}
"""By the end of a parameter's name: how a value with a unit is read, and what is expected."""
_EXPECTED: Final = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "tuple": "[value,value,...]",
    "date": "a day, YYYY-MM-DD",
    "missing": "a value",
    "list": "a list",
    **dict.fromkeys(("dict", "model", "dataclass"), "names and values"),
    "finite": "a number that is finite",
    "extra": "no field of this name",
}
"""By the beginning of pydantic's kind of error."""
_LIMITS: Final = {
    "ge": "at least",
    "gt": "more than",
    "le": "at most",
    "lt": "less than",
    "max_length": "a length of at most",
    "min_length": "a length of at least",
}
_UNFIT_KEYS: Final = {"missing": "is missing", "extra_forbidden": "no such section or key"}
_BASES: Final = {"scheduler": Scheduler, "task_scheduler": Scheduler, "predictor": Predictor}
_FORM: Final = "name or name(parameter=value,...)"


@dataclass(frozen=True, slots=True)
class PlugIn:
    """A registered plug-in with its parameters record."""

    entry: Entry
    parameters: Any

    @property
    def text(self) -> str:
        """Short form: the name, with the parameters that differ from their defaults."""
        changed = [
            f"{each.name}={format_value(value)}"
            for each in dataclasses.fields(self.parameters)
            if (value := getattr(self.parameters, each.name)) != _default(each)
        ]
        return f"{self.entry.name}({','.join(changed)})" if changed else self.entry.name

    def build(self) -> Any:
        """A fresh instance.

        Raises ``InputError`` if it is a scheduler or predictor that does not derive from the base
        of these.
        """
        built = self.entry.build(self.parameters)
        base = _BASES.get(self.entry.family)
        if base is not None and not isinstance(built, base):
            raise InputError(
                f"{self.entry.name} is no {base.__name__.lower()}",
                **place_of(type(built)),
                field=type(built).__qualname__,
                expected=f"a class that derives from {base.__module__}.{base.__name__}",
            )
        return built


def part_of(family: str, text: str, further: Sequence[str] = ()) -> PlugIn:
    """The plug-in of a family that a short form names, with these further settings.

    Raises ``InputError`` if the text is malformed, or a parameter's value does not fit;
    ``UnknownNameError`` if no such plug-in, or no such parameter, exists.
    """
    name, settings = name_and_settings(text)
    return make_part(find(family, name), [*settings, *further])


def name_and_settings(text: str) -> tuple[str, list[str]]:
    """The name and the settings (``parameter=value``) of one short form.

    Raises ``InputError`` if the text is not of this form.
    """
    name, parenthesis, rest = text.strip().partition("(")
    if not parenthesis:
        return name.strip(), []
    if not rest.endswith(")"):
        raise InputError("text after a closing parenthesis", value=text, expected=_FORM)
    inside = rest[:-1].strip()
    return name.strip(), split(inside) if inside else []


def split(text: str) -> list[str]:
    """Split at commas outside parentheses, brackets and quotes.

    Raises ``InputError`` if these do not match, or a piece is empty.
    """
    pieces, depth, quote, begin = [], 0, "", 0
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            pieces.append(text[begin:i])
            begin = i + 1
        if depth < 0:
            break
    if depth != 0 or quote:
        raise InputError("parentheses or quotes do not match", value=text, expected=_FORM)
    pieces.append(text[begin:])
    if any(not piece.strip() for piece in pieces):
        raise InputError("a part is empty", value=text, expected=_FORM)
    return [piece.strip() for piece in pieces]


def make_part(entry: Entry, settings: Sequence[str]) -> PlugIn:
    """A plug-in with settings as text, validated against its parameters record.

    ``none`` stands for no value, ``[a,b]`` for several, ``2h`` for seconds where a parameter's name
    ends in ``_seconds``, ``2MiB`` for bytes where it ends in ``_bytes``.

    Raises ``InputError`` if a setting is no ``parameter=value``, is given twice, does not fit, or
    is missing; ``UnknownNameError`` if the plug-in has no such parameter.
    """
    known = {each.name: each for each in dataclasses.fields(entry.parameters)}
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = (piece.strip() for piece in setting.partition("="))
        if not equals or not value:
            raise InputError(
                f"not a setting of {entry.name}", value=setting, expected="parameter=value"
            )
        if name not in known:
            raise UnknownNameError(f"parameter of {entry.name}", name, known)
        if name in values:
            raise InputError(f"parameter of {entry.name} given twice", field=name)
        values[name] = _value(name, value.strip("\"'"))
    if not values and all(_default(each) is not dataclasses.MISSING for each in known.values()):
        return PlugIn(entry, entry.parameters())
    try:
        parameters: Any = TypeAdapter(entry.parameters).validate_python(values)
    except ValidationError as error:
        raise _misfit(entry, error.errors()[0]) from error
    return PlugIn(entry, parameters)


def parameter_texts(entry: Entry) -> list[str]:
    """The plug-in's parameters as ``name=default``, or the name alone where one must be given."""
    return [
        each.name
        if _default(each) is dataclasses.MISSING
        else f"{each.name}={format_value(_default(each))}"
        for each in dataclasses.fields(entry.parameters)
    ]


def format_value(value: object) -> str:
    """A parameter's value as it is written."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ",".join(format_value(each) for each in value) + "]"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    text = str(value)
    return f'"{text}"' if "," in text and "(" not in text else text


def _value(name: str, text: str) -> Any:
    if text.lower() == "none":
        return None
    for suffix, (parse, _) in _UNITS.items():
        if name.endswith(suffix):
            with suppress(ValueError):  # a plain number, or no value of this kind: it is seen later
                return parse(text)
    if text.startswith("[") and text.endswith("]"):
        inside = text[1:-1].strip()
        return split(inside) if inside else []
    return text


def _misfit(entry: Entry, error: Mapping[str, Any]) -> InputError:
    """Say in our words which parameter's value does not fit, and what would."""
    kind, name = error["type"], str(error["loc"][0])
    if kind == "missing":
        problem = f"parameter of {entry.name} that must be given"
        return InputError(problem, field=name, expected=f"{name}=...")
    expected = [form for suffix, (_, form) in _UNITS.items() if name.endswith(suffix)]
    return InputError(
        f"not usable as this parameter of {entry.name}",
        field=name,
        value=format_value(error["input"]),
        expected=expected[0] if expected else expected_by(error),
    )


def expected_by(error: Mapping[str, Any]) -> str:
    """Say in our words what pydantic would have accepted where it found an error."""
    context = error.get("ctx", {})
    if "expected" in context:
        return str(context["expected"])
    limits = [f"{said} {context[name]:,.15g}" for name, said in _LIMITS.items() if name in context]
    known = [form for beginning, form in _EXPECTED.items() if error["type"].startswith(beginning)]
    return [*limits, *known, "something else"][0]


def misfit(
    error: ValidationError,
    source: object,
    known_key: Callable[[Sequence[str], str], str] | None = None,
) -> InputError:
    """Say in our words which key of a document does not fit, and what would; unknown keys first.

    ``known_key`` says what is known in place of a key, below those above it.
    """
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    *above, name = map(str, first["loc"] or ("",))
    problem, kind, value = "not usable here", first["type"], first["input"]
    expected: str | None = expected_by(first)
    if kind == "value_error":
        problem, value, expected = str(first["ctx"]["error"]), None, None
    elif kind in _UNFIT_KEYS:
        problem, value, expected = _UNFIT_KEYS[kind], None, None
        if known_key and kind == "extra_forbidden":
            expected = known_key(above, name)
    field = ".".join([*above, name]) or None
    return InputError(problem, source=source, field=field, value=value, expected=expected)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def settings_of(values: Mapping[str, object]) -> list[str]:
    """Settings as text from those of some values that are given (not None)."""
    return [f"{name}={format_value(value)}" for name, value in values.items() if value is not None]
