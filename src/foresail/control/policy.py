"""Policies in short form: ``easy(order=shortest),recent(k=2),incremental`` and back.

A policy is a scheduler, a predictor and a correction, each a registered name with parameters in
parentheses. Parts may be left out: the scheduler defaults to ``easy``, the predictor to
``requested``, the correction to ``requested``. A name known to several families is the first of
these parts that is still open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import Final

from foresail.model.errors import InputError, UnknownNameError
from foresail.model.protocols import Correction, Predictor, Scheduler
from foresail.model.registry import (
    Entry,
    entries,
    find,
    find_quickly,
    installed_packages,
    loaded_plugins,
    place_of,
)
from foresail.model.short_form import PlugIn, make_part, name_and_settings, split

PARTS: Final = ("scheduler", "predictor", "correction")
FAMILIES_OF_PARTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "scheduler": ("scheduler", "task_scheduler"),
        "predictor": ("predictor",),
        "correction": ("correction",),
    }
)
"""The families of plug-ins that a part may be of."""
_PART_OF_FAMILY: Final = {
    family: part for part, families in FAMILIES_OF_PARTS.items() for family in families
}
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {"scheduler": "easy", "predictor": "requested", "correction": "requested"}
)
_BUMP: Final = "exponential_increment(cycle_seconds=4,growth=1)"
"""TetriSched's answer to an expired estimate: one cycle more, every cycle."""

_OF_THE_STUDY: Final = "incremental(reading=absolute)"
"""The correction behind the figures of Reis' thesis; its text adds increments to the last estimate
(``docs/concepts/policies.md``)."""

NAMED_POLICIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "easy++": f"easy(order=shortest),recent(whole_seconds=true),{_OF_THE_STUDY}",
        "easy-sjbf": "easy(order=shortest)",
        "e-learning": "easy(order=shortest),"
        f"regression(over=squared,under=linear,weight=large_area),{_OF_THE_STUDY}",
        "foresail": "guarded_backfilling,similar",
        "3sigma": "3sigma,history,exponential_increment",
        "tetrisched": f"tetrisched,requested,{_BUMP}",
        "rayon-cs": f"capacity,requested,{_BUMP}",
        "slearn-joint": "slearn(source=proved,statistic=log_posterior),history",
    }
)
"""Short forms that have a name: EASY++ (Tsafrir 2007), EASY-SJBF, the winner of Reis' thesis, and
what Foresail recommends for such clusters (``docs/decisions/0005-recommendation.md`` and
``0012-guard-by-reference.md``); 3Sigma, TetriSched and the stack that it is compared with
(``docs/concepts/plan-ahead.md``); SLearn with history and pilots joined. Those that only
publications need come with the studies: see ``named_policies``."""


@cache
def named_policies() -> Mapping[str, str]:
    """All short forms that have a name, with the ``NAMED_POLICIES`` of installed studies."""
    others = (import_module(each) for each in installed_packages("study"))
    of_studies = [getattr(each, "NAMED_POLICIES", {}) for each in others]
    named = dict(NAMED_POLICIES)
    for each in of_studies:
        named.update(each)
    return MappingProxyType(named)


_NAME: Final = re.compile(r"[\w+-]+")
_EXPECTED: Final = 'a short form such as "easy(order=shortest),recent(k=2),incremental"'


@dataclass(frozen=True, slots=True)
class Policy:
    """A scheduler, a predictor and a correction; ``name`` is what people call the combination."""

    scheduler: PlugIn
    predictor: PlugIn
    correction: PlugIn
    name: str | None = None

    @property
    def label(self) -> str:
        """Return the text to show: the name, or the short form."""
        return self.name or self.text

    @property
    def text(self) -> str:
        """Canonical short form: parts that are defaults and say nothing are left out.

        Not the predictor of a scheduler that alone would be the name of another policy.
        """
        parts = [self.scheduler.text]
        if self.predictor.text != DEFAULTS["predictor"] or parts[0] in NAMED_POLICIES:
            parts.append(self.predictor.text)
        if self.correction.text != DEFAULTS["correction"]:
            parts.append(self.correction.text)
        return ",".join(parts)

    @property
    def is_built_in(self) -> bool:
        """Return whether any process finds its parts: none comes from a file of the user's."""
        parts = (self.scheduler, self.predictor, self.correction)
        return all(part.entry.is_built_in for part in parts)

    @property
    def starts_tasks(self) -> bool:
        """Return whether its scheduler starts stages and tasks of a job by themselves."""
        return bool(self.scheduler.build().starts_tasks)

    @property
    def needs_truth(self) -> bool:
        """Return whether its predictor is an oracle."""
        return bool(self.predictor.build().needs_truth)

    @property
    def compares_with(self) -> Scheduler | None:
        """Return its scheduler, if it compares with another schedule."""
        scheduler: Scheduler = self.scheduler.build()
        return scheduler if scheduler.compares else None

    def in_cycles(self, cycle_seconds: float) -> Policy:
        """Return the policy with the length of a cycle set in the parts that ask for it."""
        return replace(
            self,
            scheduler=_with_cycle(self.scheduler, cycle_seconds),
            correction=_with_cycle(self.correction, cycle_seconds),
        )

    def build(self) -> tuple[Scheduler, Predictor, Correction]:
        """Fresh instances of the three parts."""
        return self.scheduler.build(), self.predictor.build(), self.correction.build()


def _with_cycle(part: PlugIn, cycle_seconds: float) -> PlugIn:
    if "cycle_seconds" not in {each.name for each in fields(part.parameters)}:
        return part
    return PlugIn(part.entry, replace(part.parameters, cycle_seconds=cycle_seconds))


def is_compiled(policy: Policy) -> bool:
    """Return whether all three parts of a policy have compiled steps."""
    scheduler, predictor, correction = policy.build()
    return scheduler.is_compiled and predictor.is_compiled and hasattr(correction, "compiled")


def parse_policy(text: str) -> Policy:
    """Read a short form, or one of the ``named_policies``.

    Raises ``InputError`` if the text is malformed, or a parameter's value does not fit,
    ``UnknownNameError`` if no such plug-in, or no such parameter, exists.
    """
    called = text.strip().lower()
    _require_own_name(called)
    written = _written(called)
    parts: dict[str, PlugIn] = {}
    for each in split(text if written is None else written):
        name, settings = name_and_settings(each)
        _require_own_name(name)
        entry = _entry(name, parts)
        parts[_PART_OF_FAMILY[entry.family]] = make_part(entry, settings)
    for family in PARTS:
        if family not in parts:
            parts[family] = make_part(find(family, DEFAULTS[family]), [])
    return Policy(**parts, name=None if written is None else called)


def _require_own_name(name: str) -> None:
    """Raise ``InputError`` if a user's file registers a name by which something else is meant."""
    for families in FAMILIES_OF_PARTS.values() if loaded_plugins() else ():
        found = [each for family in families if (each := find_quickly(family, name)) is not None]
        own = next((each for each in found if not each.is_built_in), None)
        if own is not None and (len(found) > 1 or name in named_policies()):
            raise InputError(f"there is a policy {name!r} already", **place_of(own.build))


def _written(called: str) -> str | None:
    """The short form of a name, if it is that of no plug-in alone; None where there is none."""
    if called in NAMED_POLICIES:
        return NAMED_POLICIES[called]
    families = chain.from_iterable(FAMILIES_OF_PARTS.values())
    if not _NAME.fullmatch(called) or any(find_quickly(each, called) for each in families):
        return None
    return named_policies().get(called)


def _entry(name: str, taken: Mapping[str, PlugIn]) -> Entry:
    """The plug-in of this name in the first family that has none yet."""
    open_families = [
        family for part in PARTS if part not in taken for family in FAMILIES_OF_PARTS[part]
    ]
    for family in open_families:
        entry = find_quickly(family, name)
        if entry is not None:
            return entry
    known: list[str] = []
    for family in chain.from_iterable(FAMILIES_OF_PARTS.values()):
        here = {entry.name: entry for entry in entries(family)}
        if name in here and family in open_families:
            return here[name]
        known += here
    if name in known:
        raise InputError("two parts of the same kind in one policy", value=name, expected=_EXPECTED)
    raise UnknownNameError("policy, or part of one,", name, {*known, *named_policies()})
