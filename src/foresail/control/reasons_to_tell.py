"""Whose reasons a log is to be told anew: few jobs after most events, however many wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from foresail.model.construction import quickly_made
from foresail.model.reason import AlikeReasons, Reason
from foresail.model.roster import Followed, Listed
from foresail.model.view import PendingJob
from foresail.record.state import State


@quickly_made
@dataclass(frozen=True, slots=True)
class ToTell:
    """What a log is to be told of reasons."""

    columns: Sequence[AlikeReasons]
    """Those that the scheduler says have changed."""
    job_ids: set[str] | None
    """Jobs whose others may have, too; they wait, or waited. None: any that wait."""
    in_columns: set[str]
    """Jobs that have come or changed, of which the columns say all that there is to say."""
    anew: set[str]
    """Jobs of which the log is to be told if they wait, whatever it knows."""


class ReasonsToTell:
    """Collects, from one time that the log is told to the next, what may have changed.

    What a scheduler tells in columns is not taken apart: of some thousand jobs a pass may tell, and
    none of their ids is looked at.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._rosters = state.pending_rosters
        self._startable = state.startable
        self._followed: list[Followed[PendingJob]] = [Followed() for _ in self._rosters]
        self._seen: list[Listed[PendingJob] | None] = [None for _ in self._rosters]
        self._mark: object = None
        self._passes: list[Sequence[AlikeReasons]] | None = None
        self._tells_of: Callable[[str], bool] | None = None
        self._told_in_columns = False

    def any_may_differ(self) -> None:
        """Something has changed that tells on all jobs that may start."""
        self._passes = None

    def take(self, reasons: Mapping[str, Reason]) -> None:
        """A pass has given these reasons."""
        changed_since = getattr(reasons, "changed_since", None)
        state = self._state
        if (state.down or state.drained) and not state.free.by_node():
            changed_since = None  # no scheduler tells that no node is in use
        changed: Sequence[AlikeReasons] | None = None
        if changed_since is None:
            self._mark = self._tells_of = None
        else:
            self._mark, changed = changed_since(self._mark)
            self._tells_of = reasons.tells_of  # type: ignore[attr-defined] # it TellsChanges
        if changed is None:
            self._passes = None
        elif self._passes is not None:
            self._passes.append(changed)

    def changes(self) -> ToTell:
        """What is to be told since this was asked."""
        passes, self._passes = self._passes, []
        tells_of, self._tells_of = self._tells_of, None
        moved = self._moved()
        none: set[str] = set()
        if moved is None or passes is None:
            if moved is not None:  # of no others has a scheduler anything to say
                moved.update(self._startable)
            anew = {*self._startable} if self._told_in_columns else none
            self._told_in_columns = False
            return ToTell((), moved, none, anew)
        if not passes or tells_of is None:
            return ToTell((), moved, none, none)
        self._told_in_columns = True
        told, anew = passes[-1], none
        for changed in passes[:-1]:  # the last pass tells, of which the first ones know nothing
            anew = anew.union(*(reasons.job_ids for reasons in changed))
        if anew:
            anew = anew.difference(*(reasons.job_ids for reasons in told))
        in_columns = {job_id for job_id in moved if tells_of(job_id)}
        return ToTell(told, moved - in_columns, in_columns, anew)

    def _moved(self) -> set[str] | None:
        """Which jobs came, went or are believed to be others; None: not all is remembered."""
        moved: set[str] | None = set()
        for number, roster in enumerate(self._rosters):
            shown = roster.listed()
            if shown is self._seen[number]:  # as nearly all are
                continue
            self._seen[number] = shown
            changes = self._followed[number].changes_to(shown)
            if changes is None:
                moved = None
            elif moved is not None:
                for before, after in changes:
                    entry = after or before
                    assert entry is not None
                    moved.add(entry.job.job_id)
        return moved
