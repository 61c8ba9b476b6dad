"""Reasons: why a job is still pending, as a code, the numbers behind it and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class ReasonCode(StrEnum):
    """The closed list of reasons."""

    RESERVED = "reserved"
    NO_ROOM = "no_room"
    WOULD_DELAY = "would_delay"
    BEHIND = "behind"
    TOO_WIDE = "too_wide"
    DEPENDENCY = "dependency"
    DRAINING = "draining"
    NOT_CHOSEN = "not_chosen"
    GOES_FIRST = "goes_first"
    AMONG_FIRST = "among_first"


_SENTENCES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.RESERVED: "next in line: {cpus:g} cpus should be free at {start:.0f} s",
        ReasonCode.NO_ROOM: "needs {cpus:g} cpus and {free:g} are free",
        ReasonCode.WOULD_DELAY: "would delay job {head}, which should start at {start:.0f} s",
        ReasonCode.BEHIND: "{ahead:g} jobs are ahead of it and none may be overtaken",
        ReasonCode.TOO_WIDE: "asks for {cpus:g} cpus and the cluster has {total:g}",
        ReasonCode.DEPENDENCY: "waits for job {after} to end",
        ReasonCode.DRAINING: "nothing new is started: the run is being drained",
        ReasonCode.GOES_FIRST: "goes first: EASY would have come to it at {turn:.0f} s;"
        " {cpus:g} cpus should be free at {start:.0f} s",
        ReasonCode.AMONG_FIRST: "goes first once {cpus:g} cpus are free:"
        " EASY would have come to it at {turn:.0f} s",
        ReasonCode.NOT_CHOSEN: "not chosen by the scheduler; {ahead:g} jobs are ahead of it",
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one job waits."""

    code: ReasonCode
    numbers: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The reason in words, with its numbers."""
        return _SENTENCES[self.code].format(**self.numbers)
