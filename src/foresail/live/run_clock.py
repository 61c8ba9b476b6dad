"""The clock of a run: Unix time that no setting of the machine's clock shortens or lengthens.

Durations are measured by the time since the machine was booted, which also counts while it is
suspended (CLOCK_BOOTTIME). The wall clock says where a run's time begins, and is followed while
nothing runs; if it is set while something does, the run's time goes on evenly beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from foresail.live.adapters.local.shim_files import boot_id, since_boot_seconds
from foresail.live.command_job import CommandJob
from foresail.model.event import ClockRead
from foresail.model.words import duration

LEAST_STEP_SECONDS: Final = 1.0
"""A wall clock that is off by less is taken as right."""


@dataclass(frozen=True, slots=True)
class MachineClocks:
    """Clocks of a machine: Unix seconds, seconds since it was booted, and which boot."""

    wall_seconds: Callable[[], float] = time.time
    since_boot_seconds: Callable[[], float] = since_boot_seconds
    boot: str = field(default_factory=boot_id)


def by_clock_of_run(job: CommandJob, now: float) -> CommandJob:
    """The job with its begin by the clock of a run, by which it is now ``now``.

    People mean the wall clock as it stands when they submit it.
    """
    ahead = now - time.time()
    if job.begin_seconds is None or abs(ahead) < LEAST_STEP_SECONDS:
        return job
    return replace(job, begin_seconds=job.begin_seconds + ahead)


class RunClock:
    """Unix time as a run has it; never goes back.

    ``not_before`` is the time of the run's last step; ``logged`` what its log has of the clocks
    last, if it does: on the same boot, the run's time has gone on evenly since.
    """

    def __init__(self, not_before: float, logged: ClockRead | None, clocks: MachineClocks) -> None:
        self._clocks = clocks
        self._logged = logged
        self._last = not_before
        since_boot = clocks.since_boot_seconds()
        begin = clocks.wall_seconds() - since_boot
        if logged is not None and logged.boot == clocks.boot:
            begin = logged.time - logged.since_boot_seconds
        self._begin = max(begin, not_before - since_boot)

    def now(self) -> float:
        """The run's time (Unix seconds)."""
        return max(self._last, self._begin + self._clocks.since_boot_seconds())

    def advance(self, *, not_before: float = 0.0) -> float:
        """The run's time from now on, never earlier again."""
        self._begin = max(self._begin, not_before - self._clocks.since_boot_seconds())
        self._last = self.now()
        return self._last

    def follow_wall(self) -> None:
        """While nothing runs: be as late as the wall clock, or stand still until that is so."""
        if abs(self.ahead_seconds()) >= LEAST_STEP_SECONDS:
            wall = self._clocks.wall_seconds()
            self._begin = max(wall, self._last) - self._clocks.since_boot_seconds()

    def ahead_seconds(self) -> float:
        """Return how much later it is by the run's clock than by the machine's."""
        return self.now() - self._clocks.wall_seconds()

    def remark(self) -> str | None:
        """Return what readers of its times must know; None while they are those of the machine."""
        ahead = self.ahead_seconds()
        if abs(ahead) < LEAST_STEP_SECONDS:
            return None
        where = "ahead of" if ahead > 0 else "behind"
        return (
            f"times are {duration(abs(ahead))} {where} the machine's clock, "
            "which was set while jobs ran"
        )

    def news(self, say: Callable[[str], None], *, is_step: bool) -> ClockRead | None:
        """Return what the log must record of the clocks, if it cannot know it.

        ``say`` hears, once, that the machine's clock was set; ``is_step``: something is logged
        anyway, and then also that the run's clock has followed.
        """
        clocks, logged = self._clocks, self._logged
        since_boot, wall = clocks.since_boot_seconds(), clocks.wall_seconds()
        read = ClockRead(self._last, clocks.boot, since_boot, wall)
        if logged is not None and logged.boot == read.boot:
            passed = since_boot - logged.since_boot_seconds
            was_set = wall - logged.wall_seconds - passed
            followed = abs(read.time - logged.time - passed) >= LEAST_STEP_SECONDS
            if abs(was_set) >= LEAST_STEP_SECONDS:
                direction = "forward" if was_set > 0 else "back"
                say(
                    f"the machine's clock was set {duration(abs(was_set))} {direction}: "
                    "how long jobs run is measured without it"
                )
            elif not (is_step and followed):
                return None
        elif (ahead := read.time - wall) >= LEAST_STEP_SECONDS:
            say(
                f"the machine's clock is {duration(ahead)} behind the run's last record: "
                "times are counted from that one on"
            )
        self._logged = read
        return read
