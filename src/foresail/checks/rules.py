"""Rules, of which suites are made: each a function that raises when a plug-in breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

Make = Callable[[], Any]
"""Builds a fresh instance of the plug-in under test."""

Rule = Callable[[Make], None]

NOTHING: Final = {
    "empty": b"",
    "blank": b"\n\n\n",
    "binary": bytes(range(256)) * 8,
    "prose": b"Once upon a time there was a cluster.\nNobody wrote anything down.\n",
    "cut off gzip": b"\x1f\x8b\x08\x00\x00\x00",
}
"""Contents of files that no reader of any layout may take for its own, by kind."""


class BrokenRuleError(AssertionError):
    """One thing that a plug-in of its family must do and this one does not."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a plug-in breaks: its sentence, and what was seen."""

    rule: str
    seen: str


class NonconformityError(AssertionError):
    """A plug-in breaks rules of its family; the message lists all of them."""

    def __init__(self, plugin: str, breaches: tuple[Breach, ...]) -> None:
        self.plugin = plugin
        self.breaches = breaches
        lines = [f"  {breach.rule}: {breach.seen}" for breach in breaches]
        super().__init__("\n".join([f"{plugin} breaks {len(breaches)} rules", *lines]))


def bound(rule: Callable[..., None], *arguments: Any) -> Rule:
    """The rule with its arguments bound, its docstring kept."""
    found = partial(rule, *arguments)
    found.__doc__ = rule.__doc__
    return found


def demand(holds: object, seen: str) -> None:
    """Raise ``BrokenRuleError`` with what was seen unless it holds."""
    if not holds:
        raise BrokenRuleError(seen)


def breaches(make: Make, rules: Iterable[Rule]) -> tuple[Breach, ...]:
    """The rules that the plug-in breaks; an exception of its own breaks a rule too."""
    found = []
    for rule in rules:
        try:
            rule(make)
        except BrokenRuleError as error:
            found.append(Breach(rule_sentence(rule), str(error)))
        except Exception as error:
            seen = f"raised {type(error).__name__}: {error}"
            found.append(Breach(rule_sentence(rule), seen))
    return tuple(found)


def require_conformity(plugin: str, make: Make, rules: Iterable[Rule]) -> None:
    """Apply all rules.

    Raises
    ------
    NonconformityError
        If any is broken; it lists every one.
    """
    found = breaches(make, rules)
    if found:
        raise NonconformityError(plugin, found)


def rule_sentence(rule: Rule) -> str:
    """A rule in words: the first line of its docstring, without its full stop."""
    return (rule.__doc__ or rule.__name__).strip().partition("\n")[0].rstrip(".")
