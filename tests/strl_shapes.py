"""Canonical shapes of STRL over the starts of a window, to compare plans and solutions with.

Source: TetriSched (EuroSys 2016), sections 4.3 and 4.4; spec tetrisched sections 4.3, 8.2, 8.3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from foresail.model.job import ValueFunction
from foresail.strl.expression import Expression, Maximum, Minimum, NChooseK

_ROUNDING = 1e-9


@dataclass(frozen=True)
class StartWindow:
    """One start a slot from now on, as far as the plan goes, ended by the deadline."""

    now_seconds: float
    plan_ahead_seconds: float
    slot_seconds: float
    latest_end_seconds: float = math.inf

    def starts(self, duration_seconds):
        """The starts from which so long a run ends in time, in order."""
        in_time = self.latest_end_seconds - duration_seconds - self.now_seconds
        latest = min(self.plan_ahead_seconds, in_time)
        slots = math.floor(latest / self.slot_seconds + _ROUNDING) + 1
        return [self.now_seconds + slot * self.slot_seconds for slot in range(slots)]


@dataclass(frozen=True)
class Gang:
    """A job: its tasks, how long it runs where it runs best, its value, and when it may start."""

    tasks: int
    duration_seconds: float
    value: ValueFunction
    window: StartWindow

    def slower(self, times):
        """The same job where it runs this many times longer."""
        return replace(self, duration_seconds=self.duration_seconds * times)

    def options(self, leaf: Callable[[float, float, float], Expression]):
        """An option for each start from which the run is worth something."""
        values = {
            start: self.value.at(min(start + self.duration_seconds, self.window.latest_end_seconds))
            for start in self.window.starts(self.duration_seconds)
        }
        return [
            leaf(start, self.duration_seconds, value)
            for start, value in values.items()
            if value > 0.0
        ]


def unconstrained(gang, nodes):
    """Any nodes will do."""
    return within(gang, [nodes])


def within(gang, sets):
    """All nodes from one of several sets, whichever it is; sets that are too small are left out."""
    return _choice(
        option
        for nodes in sets
        if gang.tasks <= len(nodes)
        for option in gang.options(lambda *when, of=nodes: NChooseK(of, gang.tasks, *when))
    )


def spread(gang, domains):
    """One node of each of as many failure domains as there are tasks."""
    return _choice(
        gang.options(lambda *when: Minimum(tuple(NChooseK(each, 1, *when) for each in domains)))
    )


def either(choices):
    """The best of several expressions, of which some may have no options (None)."""
    return _choice(choice for choice in choices if choice is not None)


def preferring(gang, sets, nodes, slowdown):
    """As fast as ``gang`` says within one of the sets, ``slowdown`` times longer anywhere else."""
    return either((unconstrained(gang.slower(slowdown), nodes), within(gang, sets)))


def _choice(options):
    options = tuple(options)
    return Maximum(options) if len(options) > 1 else next(iter(options), None)
