"""The service's own process: metrics, steps, what is compiled, memory, and its log lines."""

from __future__ import annotations

import ctypes
import json
import logging
import mmap
import re
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal

from numba.core import event
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from foresail.model.cluster import Resources
from foresail.model.decision import Start
from foresail.model.event import REQUEUED, Ended, Submitted
from foresail.record.job_life import JobHistory
from foresail.record.records import EventTaken, Instructed, Record
from foresail.service.snapshots import ClusterSnapshot
from foresail.service.store.protocol import Judged

_IDS: Final = ("request_id", "job_id", "milliseconds")
"""Fields that a message may carry beside its words (``extra``)."""


class _JsonLines(logging.Formatter):
    """A JSON object a line: time, level, message, ids, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of one message."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _IDS if hasattr(record, name)}
        if record.exc_info is not None:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to_standard_error(form: Literal["text", "json"]) -> None:
    """Write what the service says, from level INFO on."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_JsonLines() if form == "json" else plain)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Options of ``mallopt``, by their names with ``M_``."""

_LARGE_BYTES: Final = 262_144

_STATM: Final = Path("/proc/self/statm")
_FEW_BYTES: Final = 40_000_000
"""So much of files the service has in use, of which Linux says how much a process holds."""

_MAPPING: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(/\S*\.so\b)?")
"""The first line that Linux has of a mapping: from where to where, with which rights, of what."""


def share_one_heap() -> bool:
    """Have all threads take memory from one heap, but for large blocks; whether that could be set.

    glibc gives each thread a heap of its own, so that what one has freed is of no use to others,
    who mostly hold the interpreter's lock when they ask; and after a large block was freed, it
    takes the next ones from a heap, too, where they leave holes.
    """
    set_option = _of_c_library("mallopt")
    if set_option is None:
        return False
    return bool(set_option(_ARENA_MAX, 1) and set_option(_MMAP_THRESHOLD, _LARGE_BYTES))


def give_back_free_memory() -> bool:
    """Have the C library return what it keeps for later; whether it could.

    What jobs leave behind is freed in pieces between what stays. glibc keeps these pages unless it
    is asked; other C libraries have no such call.
    """
    trim = _of_c_library("malloc_trim")
    return trim is not None and bool(trim(0))


def let_go_of_libraries() -> None:
    """Have pages of libraries count no more as the service's until it reads them again.

    Linux keeps them so as long as memory is plenty. Most were read once: 60 MB of LLVM's, to load
    kernels. What is needed again comes from the system's cache of files, and is the file's; pages
    that were written to, as addresses are where a library begins, stay. Few are left as they are.
    """
    if int(_STATM.read_text().split()[2]) * mmap.PAGESIZE < _FEW_BYTES:
        return
    begin = end = "0"
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        if mapping := _MAPPING.match(line):
            begin, end, rights, library = mapping.groups()
            if library is None or "w" in rights:
                end = begin
        elif begin != end and line.split() == ["Anonymous:", "0", "kB"]:
            at = int(begin, 16)
            length = ctypes.c_size_t(int(end, 16) - at)
            ctypes.CDLL(None).madvise(ctypes.c_void_p(at), length, mmap.MADV_DONTNEED)


@cache
def _of_c_library(name: str) -> ctypes._NamedFuncPointer | None:
    return getattr(ctypes.CDLL(None), name, None)


_STEPS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_WAITS: Final = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 604800.0)


class ServiceMetrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        steps = partial(Histogram, buckets=_STEPS, registry=self._registry)
        waits = partial(Histogram, buckets=_WAITS, registry=self._registry)
        self.cycle_seconds = steps("foresail_cycle_seconds", "Time to decide a step.")
        self.commit_seconds = steps("foresail_commit_seconds", "Time to write a step down.")
        waited = "Waits of jobs that started, from when they might."
        self.wait_seconds = waits("foresail_wait_seconds", waited)
        labels = ("method", "status")
        self.request_seconds = steps(
            "foresail_request_seconds", "Time to answer a request.", labels
        )
        counter = partial(Counter, registry=self._registry)
        self._submitted = counter("foresail_jobs_submitted", "Jobs submitted.")
        self._ended = counter("foresail_jobs_ended", "Jobs ended.", ("because",))
        missed = "Jobs that did not complete by their deadline."
        self._missed = counter("foresail_deadlines_missed", missed)
        self._met = counter("foresail_deadlines_met", "Jobs that completed by it.")
        self._jobs = self._gauge("foresail_jobs", "Jobs by state.", "state")
        self._waiting = self._gauge("foresail_jobs_waiting", "Jobs by why they wait.", "reason")
        self._cpus = self._gauge("foresail_cpus", "Cpus by use.", "use")
        self._memory = self._gauge(
            "foresail_memory_bytes", "Memory by use: held by jobs that asked for it.", "use"
        )
        self._gpus = self._gauge("foresail_gpus", "Gpus by use.", "use")
        self._covered = self._gauge(
            "foresail_range_coverage", "Share within the stated ranges of 80 %.", "of"
        )

    def _gauge(self, name: str, says: str, label: str) -> Gauge:
        return Gauge(name, says, (label,), registry=self._registry)

    def take(self, record: Record, jobs: JobHistory) -> None:
        """Count a record, which the fold has taken already."""
        match record:
            case EventTaken(event=Submitted()):
                self._submitted.inc()
            case EventTaken(event=Ended(outcome=outcome)):
                because = outcome.ended_because
                self._ended.labels(str(because)).inc()
                deadline = jobs.submitted[outcome.job_id].deadline_seconds
                if deadline is not None and because not in REQUEUED:
                    met = str(because) == "completed" and outcome.end_seconds <= deadline
                    (self._met if met else self._missed).inc()
            case Instructed(time=now, instruction=Start(job_id=job_id)):
                self.wait_seconds.observe(max(0.0, now - jobs.submitted[job_id].eligible_seconds))

    def text(
        self,
        snapshot: ClusterSnapshot | None,
        waiting: Mapping[str, int],
        runtimes: Judged,
        starts: Judged,
    ) -> bytes:
        """All of them as Prometheus reads them, as things stand; ``waiting`` jobs by reason."""
        for name, judged in (("runtimes", runtimes), ("starts", starts)):
            if judged.made:
                self._covered.labels(name).set(judged.within / judged.made)
        if snapshot is not None:
            self._waiting.clear()
            for reason, count in waiting.items():
                self._waiting.labels(reason).set(count)
            self._jobs.labels("running").set(len(snapshot.running))
            self._jobs.labels("pending").set(snapshot.pending)
            held = sum((each.held.total for each in snapshot.running), Resources())
            for use, amount in (("held", held), ("total", snapshot.cluster.total)):
                self._cpus.labels(use).set(amount.cpus)
                self._memory.labels(use).set(amount.memory_bytes)
                self._gpus.labels(use).set(amount.gpus)
        return generate_latest(self._registry)


_LOG: Final = logging.getLogger("foresail.service")
_WORDS: Final = "something is being compiled, once on this machine: some answers take a while"
_WORDS_FOR_JOBS: Final = (
    "what the policy needs is being compiled, once on this machine: jobs start when that is done"
)


class CompileWatch(event.Listener):
    """Notes whether something is compiled, from when it listens on."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_reported = False
        self.goes_on = False
        """True if what jobs need is looked for, of which more is to be compiled if any was."""

    def listen(self) -> None:
        """Begin to take note."""
        event.register("numba:compile", self)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Take no more note."""
        event.unregister("numba:compile", self)  # type: ignore[no-untyped-call]

    @property
    def remark(self) -> str:
        """Return what people should know now; empty if nothing is compiled."""
        if self.goes_on:
            return _WORDS_FOR_JOBS if self._is_reported else ""
        return _WORDS if self._depth else ""

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """Count a compilation, for itself or as part of another."""
        self._depth += 1
        if not self._is_reported:
            self._is_reported = True
            _LOG.info("%s", self.remark)

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """Mark the compilation that began last as done."""
        self._depth = max(0, self._depth - 1)


TOO_OFTEN: Final = 3
"""Number of steps in a row beyond the budget after which another policy decides."""


class CycleWatch:
    """Watches steps.

    ``exhausted`` is called when several in a row have taken longer to decide than they may, with
    how long the last has taken.
    """

    def __init__(
        self, metrics: ServiceMetrics, budget_seconds: float, exhausted: Callable[[float], None]
    ) -> None:
        self._metrics = metrics
        self._budget_seconds = budget_seconds
        self._exhausted = exhausted
        self._beyond = 0
        self._worked_seconds = 0.0

    def take(self, record: Record, jobs: JobHistory) -> None:
        """A record has been made, and the fold has taken it."""
        self._metrics.take(record, jobs)

    def step(self, deciding_seconds: float, writing_seconds: float) -> None:
        """A step has been decided and written down."""
        self._metrics.cycle_seconds.observe(deciding_seconds)
        self._metrics.commit_seconds.observe(writing_seconds)
        self._worked_seconds += deciding_seconds + writing_seconds
        self._beyond = self._beyond + 1 if deciding_seconds > self._budget_seconds else 0
        if self._beyond >= TOO_OFTEN:
            self._beyond = 0
            self._exhausted(deciding_seconds)

    def worked_seconds(self) -> float:
        """Return how long steps have taken since last asked."""
        worked, self._worked_seconds = self._worked_seconds, 0.0
        return worked
