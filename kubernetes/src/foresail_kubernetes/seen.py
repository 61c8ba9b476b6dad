"""Jobs as they were seen: pods, or groups of pods that start together; how they ended."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from foresail.model import event as news
from foresail.model.job import Job
from foresail.model.whole_files import write_durably
from foresail_kubernetes.groups import Bundles
from foresail_kubernetes.records import Pod

_GROUPS: Final = "kubernetes-groups"
_TAKEN_BACK: Final = frozenset({"Evicted", "Preempting", "Shutdown", "Terminated", "NodeLost"})
_NOT_TAKEN: Final = frozenset({"NodeAffinity", "UnexpectedAdmissionError", "NodeShutdown"})
"""Reasons of pods that failed by no fault of what they run; ``OutOf...`` is one too."""


@dataclass(slots=True)
class SeenJob:
    """A pod, or a group of pods that start together, as it was reported, as a job."""

    job_id: str
    """Its id without the name of the cluster."""
    job: Job | None = None
    """The job as it was reported last; None: it was not."""
    group: str = ""
    """Namespace and name of its group; empty of a pod that starts by itself."""
    pods: dict[str, Pod] = field(default_factory=dict)
    """Pods that have not ended, by uid."""
    over: dict[str, Pod] = field(default_factory=dict)
    """Pods that have, or have gone, since it began."""
    bundles: Bundles = ()
    """Pods of each of its tasks."""
    runs: bool = False
    is_said: bool = False
    """True if it was reported that it runs."""
    aside: str = ""
    """Reason for which it is left to the cluster; empty if it is not."""
    start_seconds: float = 0.0
    attempts: int = 0
    """Number of its attempts, the one that runs among them."""
    ours: bool = False
    """True if the last was instructed."""
    chosen: dict[str, str] = field(default_factory=dict)
    """Nodes that were chosen for that, by uid."""
    why: str = ""
    """Reason why one of its pods was not bound last."""
    half_since: float | None = None
    """Time since when some of its pods are bound and others are not."""
    stops: bool = False
    """True if it is to stop."""

    @property
    def present(self) -> list[Pod]:
        """Return pods that are there to stay."""
        return [each for each in self.pods.values() if not each.is_leaving]

    @property
    def age(self) -> tuple[float, str]:
        """Return when its first pod was created, and the uid of that."""
        return min((each.created_seconds, each.uid) for each in self.pods.values())


class Members:
    """Jobs of pods that are of groups, by uid; kept in a file, for no pod says it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _GROUPS
        self._is_written = True
        self.jobs: dict[str, str] = {}

    def read(self, there: Container[str]) -> None:
        """Take what was written of pods that are there."""
        found: dict[str, str] = {}
        with suppress(OSError, msgspec.DecodeError):
            found = msgspec.json.decode(self._file.read_bytes(), type=dict[str, str])
        self.jobs = {uid: job_id for uid, job_id in found.items() if uid in there}

    def add(self, uid: str, job_id: str) -> None:
        """Take note of a pod."""
        self.jobs[uid] = job_id
        self._is_written = False

    def remove(self, uid: str) -> None:
        """Forget a pod, if it is known."""
        self._is_written = self.jobs.pop(uid, None) is None and self._is_written

    def write(self) -> None:
        """Write what is new, before anybody hears of it."""
        if not self._is_written:
            write_durably(self._file, msgspec.json.encode(self.jobs))
            self._is_written = True


def how_ended(pod: Pod) -> tuple[news.EndedBecause, str]:
    """Return how a pod ended, and why where that is not plain."""
    if pod.phase == "Succeeded":
        return news.EndedBecause.COMPLETED, ""
    if pod.phase != "Failed":
        return news.EndedBecause.CANCELLED, "it was deleted"
    if pod.reason == "DeadlineExceeded":
        return news.EndedBecause.LIMIT, ""
    if pod.reason in _TAKEN_BACK:
        return news.EndedBecause.CANCELLED, f"it was taken from its node ({pod.reason})"
    if pod.reason in _NOT_TAKEN or pod.reason.startswith("OutOf"):
        return news.EndedBecause.CANCELLED, f"its node did not take it ({pod.reason[:60]})"
    return news.EndedBecause.FAILED, ""


def rank(end: tuple[news.EndedBecause, str]) -> int:
    """Return which end counts of several: the lowest."""
    return _RANKS.index(end[0])


_RANKS: Final = (
    news.EndedBecause.FAILED,
    news.EndedBecause.LIMIT,
    news.EndedBecause.COMPLETED,
    news.EndedBecause.CANCELLED,
)
