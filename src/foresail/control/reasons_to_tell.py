"""Whose reasons a log is to be told anew: few jobs after most events, however many wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foresail.model.reason import AlikeReasons, Reason
from foresail.record.state import State


class ReasonsToTell:
    """Collects, from one time that the log is told to the next, what may have changed."""

    def __init__(self, state: State) -> None:
        self._rosters = state.pending_rosters
        self._startable = state.startable
        self._versions = [0] * len(self._rosters)
        self._mark: object = None
        self._passes: list[Sequence[AlikeReasons]] | None = None

    def any_may_differ(self) -> None:
        """Something has changed that tells on all jobs that may start."""
        self._passes = None

    def take(self, reasons: Mapping[str, Reason]) -> None:
        """A pass has given these reasons."""
        changed_since = getattr(reasons, "changed_since", None)
        changed: Sequence[AlikeReasons] | None = None
        if changed_since is None:
            self._mark = None
        else:
            self._mark, changed = changed_since(self._mark)
        if changed is None:
            self._passes = None
        elif self._passes is not None:
            self._passes.append(changed)

    def changes(self) -> tuple[Sequence[AlikeReasons], set[str] | None]:
        """The reasons that have changed since this was asked, and whose others may have, too.

        These wait, or waited; None: any that wait.
        """
        passes, self._passes = self._passes, []
        moved = self._moved()
        if moved is None:
            return (), None
        if passes is None:  # of no others has a scheduler anything to say
            return (), moved.union(self._startable)
        if len(passes) == 1:
            for reasons in passes[0]:
                moved.difference_update(reasons.job_ids)
            return passes[0], moved
        for changed in passes:  # the last pass tells, of which the first ones know nothing
            moved.update(*(reasons.job_ids for reasons in changed))
        return (), moved

    def _moved(self) -> set[str] | None:
        """Who came, went or is believed to be another; None: not all is remembered."""
        moved: set[str] | None = set()
        for at, roster in enumerate(self._rosters):
            version = roster.version
            if version == self._versions[at]:
                continue
            changes = roster.since(self._versions[at], version)
            self._versions[at] = version
            if changes is None:
                moved = None
            elif moved is not None:
                for before, after in changes:
                    entry = after or before
                    assert entry is not None
                    moved.add(entry.job.job_id)
        return moved
