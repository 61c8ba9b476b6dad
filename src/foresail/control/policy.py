"""Policies in short form: ``easy(order=shortest),recent(k=2),incremental`` and back.

A policy is a scheduler, a predictor and a correction, each a registered name with parameters in
parentheses. Parts may be left out: the scheduler defaults to ``easy``, the predictor to
``requested``, the correction to ``requested``. A name known to several families is the first of
these parts that is still open.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from foresail.model.errors import InputError, UnknownNameError
from foresail.model.protocols import Correction, Predictor, Scheduler
from foresail.model.registry import Entry, entries, find

PARTS: Final = ("scheduler", "predictor", "correction")
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {"scheduler": "easy", "predictor": "requested", "correction": "requested"}
)
NAMED_POLICIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "easy++": "easy(order=shortest),recent,incremental",
        "easy-sjbf": "easy(order=shortest)",
        "e-learning": "easy(order=shortest),"
        "regression(over=squared,under=linear,weight=large_area),incremental",
        "foresail": "guarded,similar",
    }
)
"""Short forms that have a name: EASY++ (Tsafrir 2007), EASY-SJBF, the winner of paper 004, and what
Foresail recommends for such clusters (``docs/decisions/0005-recommendation.md``)."""

_UNIT_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_EXPECTED: Final = 'a short form such as "easy(order=shortest),recent(k=2),incremental"'


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a policy: a registered plug-in with its parameters record."""

    entry: Entry
    parameters: Any

    @property
    def text(self) -> str:
        """Short form: the name, with the parameters that differ from their defaults."""
        changed = [
            f"{each.name}={_literal(value)}"
            for each in dataclasses.fields(self.parameters)
            if (value := getattr(self.parameters, each.name)) != _default(each)
        ]
        return f"{self.entry.name}({','.join(changed)})" if changed else self.entry.name

    def build(self) -> Any:
        """A fresh instance."""
        return self.entry.build(self.parameters)


@dataclass(frozen=True, slots=True)
class Policy:
    """A scheduler, a predictor and a correction; ``name`` is what people call the combination."""

    scheduler: Part
    predictor: Part
    correction: Part
    name: str | None = None

    @property
    def label(self) -> str:
        """What to show: the name, or the short form."""
        return self.name or self.text

    @property
    def text(self) -> str:
        """Canonical short form: parts that are defaults and say nothing are left out."""
        parts = [self.scheduler.text]
        if self.predictor.text != DEFAULTS["predictor"]:
            parts.append(self.predictor.text)
        if self.correction.text != DEFAULTS["correction"]:
            parts.append(self.correction.text)
        return ",".join(parts)

    def build(self) -> tuple[Scheduler, Predictor, Correction]:
        """Fresh instances of the three parts."""
        return self.scheduler.build(), self.predictor.build(), self.correction.build()


def parse_policy(text: str) -> Policy:
    """Read a short form, or one of the ``NAMED_POLICIES``.

    Raises
    ------
    InputError
        If the text is malformed, or a parameter's value does not fit.
    UnknownNameError
        If no such plug-in, or no such parameter, exists.
    """
    called = text.strip().lower()
    written = NAMED_POLICIES.get(called, text)
    parts: dict[str, Part] = {}
    for each in _split(written, text):
        name, arguments = _name_and_arguments(each, text)
        entry = _entry(name, parts)
        parts[entry.family] = make_part(entry, arguments)
    for family in PARTS:
        if family not in parts:
            parts[family] = make_part(find(family, DEFAULTS[family]), {})
    return Policy(**parts, name=called if called in NAMED_POLICIES else None)


def make_part(entry: Entry, arguments: Mapping[str, str]) -> Part:
    """A plug-in with parameters given as text, validated against its parameters record.

    Raises
    ------
    InputError
        If a value does not fit.
    UnknownNameError
        If the plug-in has no such parameter.
    """
    known = [each.name for each in dataclasses.fields(entry.parameters)]
    for name in arguments:
        if name not in known:
            raise UnknownNameError(f"parameter of {entry.name}", name, known)
    values = {name: _value(name, value) for name, value in arguments.items()}
    try:
        parameters: Any = TypeAdapter(entry.parameters).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"])
        raise InputError(
            f"parameter of {entry.name}: {first['msg']}",
            field=field or None,
            value=arguments.get(field),
        ) from error
    return Part(entry, parameters)


def _entry(name: str, taken: Mapping[str, Part]) -> Entry:
    """The plug-in of this name in the first family that has none yet."""
    known: list[str] = []
    for family in PARTS:
        here = {entry.name: entry for entry in entries(family)}
        if name in here and family not in taken:
            return here[name]
        known += here
    if name in known:
        raise InputError("two parts of the same kind in one policy", value=name, expected=_EXPECTED)
    raise UnknownNameError("scheduler, predictor or correction", name, known)


def _split(text: str, source: str) -> list[str]:
    """Split at commas outside parentheses, brackets and quotes."""
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
        raise InputError("parentheses or quotes do not match", value=source, expected=_EXPECTED)
    pieces.append(text[begin:])
    if any(not piece.strip() for piece in pieces):
        raise InputError("a part of the policy is empty", value=source, expected=_EXPECTED)
    return [piece.strip() for piece in pieces]


def _name_and_arguments(part: str, source: str) -> tuple[str, dict[str, str]]:
    name, parenthesis, rest = part.partition("(")
    if not parenthesis:
        return name.strip(), {}
    if not rest.endswith(")"):
        raise InputError("text after a closing parenthesis", value=source, expected=_EXPECTED)
    arguments: dict[str, str] = {}
    inside = rest[:-1].strip()
    for argument in _split(inside, source) if inside else []:
        key, equals, value = argument.partition("=")
        if not equals or not value.strip():
            raise InputError(
                f"parameter of {name.strip()} without a value",
                value=argument,
                expected="name=value",
            )
        if key.strip() in arguments:
            raise InputError(f"parameter of {name.strip()} given twice", field=key.strip())
        arguments[key.strip()] = value.strip().strip("\"'")
    return name.strip(), arguments


def _value(name: str, text: str) -> Any:
    """Text as written, but durations of ``*_seconds`` as seconds and [a, b] as a list."""
    if name.endswith("_seconds") and (duration := _DURATION.fullmatch(text)):
        return float(duration[1]) * _UNIT_SECONDS[duration[2]]
    if text.startswith("[") and text.endswith("]"):
        return [each.strip() for each in text[1:-1].split(",")]
    return text


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ",".join(_literal(each) for each in value) + "]"
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value)
    return f'"{text}"' if "," in text and "(" not in text else text


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
