"""Whose reasons a log may have to be told anew: few jobs after most events, however many wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from foresail.model.reason import Reason
from foresail.record.state import State


class ReasonsToTell:
    """Collects, from one time that the log is told to the next, whose reasons may have changed.

    ``job_ids`` are they, waiting or not; None: any that wait.
    """

    def __init__(self, state: State) -> None:
        self._rosters = (state.startable_roster, state.waiting_for_roster, state.too_wide_roster)
        self._versions = [0] * len(self._rosters)
        self._mark: object = None
        self._changed: set[str] | None = None

    def any_may_differ(self) -> None:
        """Something has changed that tells on all waiting jobs."""
        self._changed = None

    def take(self, reasons: Mapping[str, Reason]) -> None:
        """A pass has given these reasons."""
        changed_since = getattr(reasons, "changed_since", None)
        changed: Iterable[str] | None = None
        if changed_since is None:
            self._mark = None
        else:
            self._mark, changed = changed_since(self._mark)
        if changed is None:
            self._changed = None
        elif self._changed is not None:
            self._changed.update(changed)

    def job_ids(self) -> set[str] | None:
        """Whose reasons may have changed since the last time that this was asked."""
        changed = self._changed
        for at, roster in enumerate(self._rosters):
            version = roster.version
            if version == self._versions[at]:
                continue
            changes = roster.since(self._versions[at], version)
            self._versions[at] = version
            if changes is None:
                changed = None
            elif changed is not None:
                for before, after in changes:
                    entry = after or before
                    assert entry is not None
                    changed.add(entry.job.job_id)
        self._changed = set()
        return changed
