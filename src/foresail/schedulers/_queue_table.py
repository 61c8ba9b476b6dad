"""The queue of one partition as compiled tables, kept from view to view.

A view that follows from the one before says what has changed since; only that is brought up to date
then. From any other view the tables are made anew, so that a decision follows from the view alone.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.basic import Point
from foresail.distributions.summary import summarise
from foresail.kernels import columns, waiting_jobs
from foresail.kernels.borrowed import Places
from foresail.kernels.steps import CompiledScheduler
from foresail.model.cluster import Partition
from foresail.model.containers import Altered, Change, Followed, quickly_made, replaced
from foresail.model.decision import Placement
from foresail.model.distribution import Booleans, Distribution, Floats, Integers
from foresail.model.job import Job
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers._beside_cpus import OTHERS, AllResources, Passed, others_of
from foresail.schedulers.kernels import waiting_queue as queue
from foresail.schedulers.kernels.backfill import easy_pass, in_order_pass

_FEW: Final = 64
"""Changes that are always followed one by one; rows that tables begin with."""

_KEPT_ROWS: Final = 1024
"""Beliefs whose summary is kept, at most."""

_SPARE: Final = 1024
"""Slots for jobs to come that there are beside those of twice as many as wait."""

_PER_CPU: Final = 2.0**60
"""Cpus beyond fixed-point units are counted in parts so small that sums are exact."""

_ROWS_PER_CHANGE: Final = 4
"""At most: of a running job, before and after, what it holds, and that it is one of its kind."""

_NO_SLOTS: Final = np.zeros(0, np.int64)

_NONE_ALIKE: Final = array("q")
"""No slots."""

_NOTHING: Final = (0, 0.0)
"""Amounts that a job holds elsewhere than where it runs, as ``_exactly`` gives it."""

_CHANGE: Final = Struct("=5d")
_ENTRY: Final = Struct(f"={queue.CHANGE_COLUMNS}d")
_CHANGE_BYTES: Final = _ENTRY.size
"""The columns of a change, and of that of a job that enters, written at once: column by column it
takes three times as long."""


@quickly_made
@dataclass(frozen=True, slots=True)
class CodedJobs:
    """Slots (64-bit integers) of jobs that wait for one kind of reason, and a number of each.

    That number is how many wait before it where the code is BEHIND, else its cpus.
    """

    code: int
    slots: bytes
    numbers: bytes


class Summaries:
    """Summary rows of the latest beliefs, which many jobs share."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Floats, Distribution]] = {}

    def row(self, belief: Distribution) -> Floats:
        """The summary row of a belief; to be read only."""
        known = self._rows.get(id(belief))  # which is its own as long as it is kept here
        if known is None:
            if len(self._rows) == _KEPT_ROWS:
                self._rows.clear()
            known = self._rows[id(belief)] = summarise(belief), belief
        return known[0]

    def value(self, belief: Distribution, column: int) -> float:
        """One column of it; of a belief in one number all are that but the urgency."""
        if isinstance(belief, Point) and column != columns.URGENCY:
            return float(belief.value)
        return float(self.row(belief)[column])


class Tables(NamedTuple):
    """Arrays whose places kernels get, in this order: a ``WaitingQueue``, and others with it.

    See ``foresail.schedulers.kernels.waiting_queue``.
    """

    jobs: Floats
    specs: Floats
    summaries: Floats
    order: Floats
    dues: Floats
    release: Floats
    kinds: Integers
    counters: Integers
    numbers: Floats
    starts: Integers
    changes: Floats
    plan: Floats
    codes: Integers
    changed_slots: Integers
    changed_codes: Integers
    own_numbers: Floats
    others: Floats


def _blank_tables(slots: int) -> dict[str, NDArray[Any]]:
    """Tables by name that have rows for slots; unused, most take no memory."""
    return {
        "jobs": queue.blank_jobs(slots),
        "specs": np.full((slots, columns.SPEC_COLUMNS), -1.0),  # no user, no group
        "summaries": np.zeros((slots, columns.SUMMARY_COLUMNS)),
        "order": queue.blank_order(slots + 1),
        "dues": np.zeros((2 * slots + 1, queue.DUE_COLUMNS), order="F"),
        "starts": np.zeros(slots, np.int64),
        "plan": np.zeros((slots, 2)),
        "codes": np.full(slots, queue.NO_CODE),
        "changed_slots": np.zeros(slots, np.int64),
        "changed_codes": np.zeros(slots, np.int64),
        "own_numbers": np.zeros(slots),
        "others": np.zeros((slots, OTHERS), order="F"),
    }


class QueueTable:
    """The jobs that wait for one partition and that run there, in the order of a scheduler.

    It has the jobs that it ``takes`` (None: all), and is silent about those that it ``mutes``, of
    which the table of another partition reports. The partition consists of these ``records`` of the
    cluster (``foresail.model.cluster``), if it is not one of them. ``jobs_by_slot`` are
    those that wait or waited, ``slot_of`` the slots by id of those that wait, ``wide`` those that
    never fit, by id.
    ``version`` counts passes; ``backfills`` says whether jobs may start before their turn,
    ``starts_in_order`` whether all do whose turn it is.
    """

    def __init__(
        self,
        scheduler: CompiledScheduler,
        partition: Partition,
        summaries: Summaries,
        takes: Callable[[Job], bool] | None = None,
        mutes: Callable[[Job], bool] | None = None,
        records: Sequence[str] = (),
    ) -> None:
        self.partition = partition
        self.records = tuple(records) or (partition.name,)
        self.version = 0
        self.slot_of: dict[str, int] = {}
        self.jobs_by_slot: list[PendingJob] = []
        self.wide: dict[str, PendingJob] = {}
        self._summaries = summaries
        self._takes = takes
        self._mutes = mutes
        self._total = partition.total.cpus
        self._follows_probes = queue.follows_probes(scheduler)
        self._scheduler = scheduler
        self.backfills = scheduler.one_pass is not in_order_pass
        self.starts_in_order = scheduler.one_pass in (in_order_pass, easy_pass)
        self._alike: dict[tuple[Hashable, ...], array[int]] | None = None  # not known before asked
        self._asking = 0
        self._view: ClusterView | None = None
        self._falls_due = scheduler.shares is not None or scheduler.age_limit_seconds < math.inf
        self._now = -math.inf
        self._pending: Followed[PendingJob] = Followed()
        self._running: Followed[RunningJob] = Followed()
        self._is_ordered = True
        self._last_arrival = -1
        self._last_submit = -math.inf
        self._soonest = -math.inf
        self._held_beyond = 0
        self._held_fixed = 0.0
        self._holds: dict[int, tuple[int, float]] = {}  # as long as it runs
        self._releases = 0
        self._kind_codes: dict[tuple[str | None, float | None], int] = {}
        self._tables = Tables(
            release=np.zeros((_FEW, waiting_jobs.RELEASE_COLUMNS)),
            kinds=queue.blank_kinds(_FEW),
            counters=np.zeros(queue.COUNTERS, np.int64),
            numbers=queue.policy_numbers(scheduler),
            changes=np.zeros((_FEW, queue.CHANGE_COLUMNS)),
            **_blank_tables(_FEW),
        )
        self._counts = self._tables.counters.data
        self._replace()
        self._changed = 0
        self._coded_version = -1

    def _replace(self, **tables: NDArray[Any]) -> None:
        """Go on with other tables in the place of these."""
        self._tables = self._tables._replace(**tables)
        self._change_rows, self._most_changes = self._tables.changes.data, len(self._tables.changes)
        self._places = Places(*self._tables).numbers

    def pass_over(self, view: ClusterView, plan: Mapping[str, float]) -> Passed:
        """Be as the view has it, and run the pass, which is handed the reservations in ``plan``."""
        self._follow(view)
        self.version += 1
        needed = self._releases + self._changed + len(self.slot_of) + 1
        if needed > len(self._tables.release):
            self._replace(release=lengthened(self._tables.release, 2 * needed))
        for job_id, start in plan.items():
            slot = self.slot_of.get(job_id)
            if slot is not None:
                self._tables.jobs[slot, waiting_jobs.RESERVATION] = start
        held, records = self._held_fixed, self.records
        total = held + self._held_beyond / _PER_CPU
        for name in records:
            total += view.free[name].cpus
        free = columns.nearest_fixed_point(total) - held
        now = float(view.now)
        self._soonest = math.nextafter(now, math.inf)  # wake-ups may come late where jobs run
        self._counts[queue.ROOM_CAME] = view.room_came and (
            view.touched is None or any(view.touched.get(name) for name in records)
        )
        count = queue.pass_over(now, self._soonest, free, self._changed, self._places)
        self._changed = 0
        starts = self._tables.starts[:count].tolist() if count else []
        reserved = self._reserved() if self._counts[queue.RESERVED] else {}
        passed, self._view = Passed(starts, free, reserved), None
        if not self._asking or view.cluster.shared:
            return passed
        self._view = view
        return self._within_all(passed, (), _NO_SLOTS, plan)

    def pass_again(
        self, before: Passed, elsewhere: Collection[int], plan: Mapping[str, float]
    ) -> Passed:
        """Make the pass again at the same moment, once those have started that did ``before``.

        Slots ``elsewhere`` do not count here: their jobs start or are promised to elsewhere.
        """
        absent = np.array(sorted(elsewhere), dtype=np.int64)
        passed = self._pass_again(before, absent, plan)
        return self._within_all(passed, before.starts, absent, plan)

    def stays(self, passed: Passed, plan: Mapping[str, float]) -> Passed:
        """Return the outcome of a pass that is not to count: nothing starts, the plan stays."""
        here = {self.slot_of[each]: at for each, at in plan.items() if each in self.slot_of}
        self._note_reserved(here)
        return replaced(passed, starts=[], reserved=here)

    def _within_all(
        self, passed: Passed, started: Sequence[int], elsewhere: Integers, plan: Mapping[str, float]
    ) -> Passed:
        """The pass, made again until what it starts has its memory and gpus too."""
        if self._view is None:
            return passed
        numbers, tables = self._tables.numbers, self._tables
        resources = AllResources(
            self._view,
            self.records,
            tables.order[: tables.counters[queue.WAITING], waiting_jobs.QUEUE].astype(np.int64),
            tables.jobs,
            tables.others,
            backfills=self.backfills,
            promises=numbers[queue.MOST_RESERVED] > 0.0,
            hopes=numbers[queue.IS_GUARDED] != 0.0,
        )
        return resources.settled(
            passed,
            started,
            elsewhere,
            lambda before, absent: self._pass_again(before, absent, plan),
        )

    def _pass_again(self, before: Passed, absent: Integers, plan: Mapping[str, float]) -> Passed:
        tables = self._tables
        gone = {*before.starts, *absent.tolist()} if plan else ()
        for job_id, start in plan.items():
            slot = self.slot_of.get(job_id, -1)
            if slot >= 0 and slot not in gone:
                tables.jobs[slot, waiting_jobs.RESERVATION] = start
        started = len(before.starts)
        tables.starts[:started] = before.starts
        room = np.empty_like(tables.order)
        count = queue.pass_again(self._now, before.free, started, absent, room, self._places)
        return Passed(tables.starts[: started + count].tolist(), before.free, self._reserved())

    def _reserved(self) -> dict[int, float]:
        """Planned starts (seconds) by slot, as the last pass has them."""
        plan, count = self._tables.plan, self._counts[queue.RESERVED]
        if count == 1:  # as of EASY, where arrays would take longer
            return {int(plan.item(0)): plan.item(1)}
        rows = plan[:count]
        return dict(zip(rows[:, 0].astype(np.int64).tolist(), rows[:, 1].tolist(), strict=True))

    def queue(self) -> list[int]:
        """Slots of all waiting jobs, in queue order."""
        rows = self._tables.order[: self._tables.counters[queue.WAITING], waiting_jobs.QUEUE]
        return rows.astype(np.int64).tolist()  # type: ignore[no-any-return] # of integers

    def line(self) -> list[tuple[bool, float, int]]:
        """List all waiting jobs in queue order: whether each is not due, its key, and its slot."""
        aged, waiting = self._counts[queue.AGED_FIRST], self._counts[queue.WAITING]
        rows = self._tables.order[:waiting, [waiting_jobs.QUEUE_KEY, waiting_jobs.QUEUE]].tolist()
        return [(place >= aged, key, int(slot)) for place, (key, slot) in enumerate(rows)]

    def waiting(self) -> list[PendingJob]:
        """All waiting jobs, in order of arrival."""
        return [self.jobs_by_slot[slot] for slot in sorted(self.queue())]

    def alike(self) -> QueueTable:
        """A table of the same partition without a job, for jobs of the same kind."""
        return QueueTable(self._scheduler, self.partition, self._summaries, records=self.records)

    def first_but(self, started: Container[int]) -> int:
        """The first slot in queue order that is not one of these; -1 if there is none."""
        slot_at = self._tables.order.item
        for place in range(self._counts[queue.WAITING]):
            slot = int(slot_at(place, waiting_jobs.QUEUE))
            if slot not in started:
                return slot
        return -1

    def width(self, slot: int) -> float:
        """Cpus of a job."""
        return self._tables.jobs.item(slot, waiting_jobs.WIDTH)

    def free_after(self, passed: Passed) -> float:
        """Cpus that are free once all have started."""
        number = self._tables.jobs.item
        return passed.free - sum([number(slot, waiting_jobs.WIDTH) for slot in passed.starts])

    def changed_codes(
        self, passed: Passed, free: float, behind: int, since: int
    ) -> list[CodedJobs] | None:
        """Jobs that wait for another kind of reason than after an earlier pass.

        ``free`` cpus are left; ``behind`` is the code of jobs that would fit. None: that pass was
        another one than the last that was asked about.
        """
        known = self._coded_version == since
        tables = self._tables
        started = len(passed.starts)
        if passed.started_elsewhere or passed.promised_elsewhere or passed.left is not None:
            started = self._count_elsewhere(passed)
        lacked = tables.codes == queue.LACKS
        count = queue.find_changed_codes(free, behind, started, self._places)
        if passed.left is not None or lacked.any():
            count = self._count_lacking(passed, lacked, count)
        self._coded_version = self.version
        if not known:
            return None
        if not count:
            return []
        slots, codes = self._tables.changed_slots[:count], self._tables.changed_codes[:count]
        numbers = self._tables.own_numbers[:count]
        found = codes.tolist()
        if found.count(found[0]) == count:  # as nearly always
            return [CodedJobs(found[0], slots.tobytes(), numbers.tobytes())]
        return [
            CodedJobs(code, slots[mine].tobytes(), numbers[mine].tobytes())
            for code, mine in ((code, codes == code) for code in sorted({*found}))
        ]

    def lacks(self, slot: int, left: tuple[float, float]) -> bool:
        """Return whether a job asks for more memory, or more gpus, than is left."""
        return bool((self._tables.others[slot] > left).any())

    def others(self, slots: Sequence[int]) -> dict[str, tuple[float, ...]]:
        """Memory (bytes) and gpus of jobs, as reasons have them; nothing if none asks for any."""
        if not self._asking:
            return {}
        memory, gpus = self._tables.others[slots].T
        if not (memory.any() or gpus.any()):
            return {}
        return {"memory_bytes": tuple(memory.tolist()), "gpus": tuple(gpus.tolist())}

    def _count_lacking(self, passed: Passed, lacked: Booleans, count: int) -> int:
        """Put those that lack memory or gpus alone, and are found to, behind others that changed.

        ``lacked`` slots did before; ``count`` have changed by cpus. Returns how many have now.
        """
        tables = self._tables
        changed = tables.changed_slots[:count].copy()
        lacking = np.zeros_like(lacked)
        if passed.left is not None:
            by_turn = (tables.codes == queue.BEHIND) | (tables.codes == queue.WOULD_DELAY)
            memory, gpus = passed.left
            short = (tables.others[:, 0] > memory) | (tables.others[:, 1] > gpus)
            lacking = by_turn & (tables.jobs[:, queue.WAITS] != 0.0) & short
            tables.codes[lacking] = queue.LACKS
        kept = changed[~lacking[changed]]
        new = np.flatnonzero(lacking & ~lacked)
        numbers = tables.own_numbers[: len(changed)][~lacking[changed]].copy()
        total = len(kept) + len(new)
        tables.changed_slots[:total] = np.concatenate([kept, new])
        tables.changed_codes[:total] = tables.codes[tables.changed_slots[:total]]
        tables.own_numbers[:total] = np.concatenate([numbers, tables.jobs[new, waiting_jobs.WIDTH]])
        return total

    def _count_elsewhere(self, passed: Passed) -> int:
        """Note what happens to jobs elsewhere as if it were here; returns how many start."""
        started = [*passed.starts, *passed.started_elsewhere]
        self._tables.starts[: len(started)] = started
        self._note_reserved({**passed.reserved, **passed.promised_elsewhere})
        return len(started)

    def _note_reserved(self, reserved: Mapping[int, float]) -> None:
        """Take note of planned starts (seconds) by slot, as a pass would."""
        self._tables.plan[: len(reserved)] = np.array([*reserved.items()]).reshape(-1, 2)
        self._tables.counters[queue.RESERVED] = len(reserved)

    def _note(
        self,
        what: float,
        who: float,
        seconds: float = 0.0,
        cpus: float = 0.0,
        cpus_first: float = 0.0,
    ) -> None:
        """Have a change made before the next pass; see ``schedulers.kernels.waiting_queue``."""
        row = self._changed * _CHANGE_BYTES
        _CHANGE.pack_into(self._change_rows, row, what, who, seconds, cpus, cpus_first)
        self._changed += 1

    def _make_room_for_changes(self, needed: int) -> None:
        """Have rows for so many changes."""
        if needed > self._most_changes:
            self._replace(changes=lengthened(self._tables.changes, 2 * needed))

    # --- following views

    def _follow(self, view: ClusterView) -> None:
        """Note what is other than in the view before."""
        pending = self._pending.changes_to(view.pending)
        running = self._running.changes_to(view.running)
        little_runs_otherwise = self._follow_running(running)
        if (
            view.now < self._now
            or not self._follow_pending(view, pending)
            or (self._follows_probes and not little_runs_otherwise)
        ):
            self._kind_codes.clear()
            self._tables.kinds[:] = queue.blank_kinds(len(self._tables.kinds))
            self._take_pending(view)
            self._take_running(view)
        elif not little_runs_otherwise:
            self._take_running(view)
        self._now = view.now

    def _follow_pending(
        self,
        view: ClusterView,
        changes: Sequence[Change[PendingJob]] | None,
    ) -> bool:
        """Note what has changed among the waiting jobs; whether that is little, and in order."""
        if changes is None:
            changes = self._differences(view.pending)
        if not self._is_ordered or len(changes) > _FEW + len(self.slot_of):
            return False
        if not changes:
            return True
        needed = self._changed + _ROWS_PER_CHANGE * len(changes)
        if needed > self._most_changes:
            self._make_room_for_changes(needed)
        believed: list[tuple[array[int], Distribution]] = []
        for change in changes:
            if isinstance(change, Altered):
                believed.append((self._altered(change), change.values["prediction"]))
                continue
            before, after = change
            if before is not None and after is not None and before.job is after.job:
                believed.append((self._exchanged(after), after.prediction))
                continue
            self._believe(believed)
            believed.clear()
            if before is not None:
                self._leave(before.job.job_id)
            if after is not None and not self._enter(after):
                return False
        self._believe(believed)
        return True

    def _differences(self, pending: Sequence[PendingJob]) -> list[Change[PendingJob]]:
        """Return how these differ from those that are known to wait."""
        by_slot = self.jobs_by_slot
        known = {job_id: by_slot[slot] for job_id, slot in self.slot_of.items()} | self.wide
        mine = self._taken(pending)
        pairs = [(known.pop(each.job.job_id, None), each) for each in mine]
        gone = [(each, None) for each in known.values()]
        return [*gone, *((before, after) for before, after in pairs if before is not after)]

    def _taken(self, pending: Sequence[PendingJob]) -> Sequence[PendingJob]:
        """Return which of the jobs this table takes."""
        if self._takes is None:
            return pending
        return [each for each in pending if self._takes(each.job)]

    def _enter(self, pending: PendingJob) -> bool:
        """Give a new job a slot; whether there is one that keeps slots in order of arrival."""
        job = pending.job
        if self._takes is not None and not self._takes(job):
            return True
        cpus = job.cpus
        if cpus > self._total:
            self.wide[job.job_id] = pending
            return True
        slot, submitted, belief = len(self.jobs_by_slot), job.submit_seconds, pending.prediction
        in_order = pending.arrival > self._last_arrival and submitted >= self._last_submit
        if not in_order or slot == len(self._tables.jobs):
            return False
        self._last_arrival, self._last_submit = pending.arrival, submitted
        request = job.stages[0].request
        if request.memory_bytes or request.gpus or len(job.stages) > 1:  # few; a new slot has none
            others = self._tables.others[slot] = others_of(job)
            self._asking += any(others)
        self.jobs_by_slot.append(pending)
        self.slot_of[job.job_id] = slot
        if self._alike is not None:
            self._alike.setdefault(job.likeness, array("q")).append(slot)
        known = math.nan
        if isinstance(belief, Point):
            known = belief.value
        else:
            self._tables.summaries[slot] = self._summaries.row(belief)
        _ENTRY.pack_into(
            self._change_rows,
            self._changed * _CHANGE_BYTES,
            queue.ENTERS,
            slot,
            pending.planned_seconds,
            cpus,
            submitted,
            math.inf if job.requested_seconds is None else job.requested_seconds,
            self._kind(job) if self._follows_probes else 0,
            known,
        )
        self._changed += 1
        if self._mutes is not None and self._mutes(job):
            self._tables.codes[slot] = queue.MUTE
        if self._falls_due:
            self._fall_due(slot, pending)
        return True

    def _fall_due(self, slot: int, pending: PendingJob) -> None:
        """Write when a job is due, if that is known."""
        if not self._tables.numbers[queue.IS_GUARDED]:
            self._tables.jobs[slot, waiting_jobs.DUE] = (
                pending.job.submit_seconds + self._tables.numbers[queue.AGE_LIMIT]
            )
        elif pending.due is not None:
            self._tables.jobs[slot, waiting_jobs.DUE] = pending.due.due_seconds
            self._tables.jobs[slot, waiting_jobs.LATEST] = pending.due.latest_seconds

    def _leave(self, job_id: str) -> None:
        slot = self.slot_of.pop(job_id, None)
        if slot is None:
            self.wide.pop(job_id, None)
        else:
            if self._asking:
                self._asking -= any(others_of(self.jobs_by_slot[slot].job))
            if self._alike is not None:
                likeness = self.jobs_by_slot[slot].job.likeness
                self._alike[likeness].remove(slot)
                if not self._alike[likeness]:
                    del self._alike[likeness]
            self._note(queue.LEAVES, slot)

    def _altered(self, change: Altered) -> array[int]:
        """Return the slots of jobs of which something else is believed now.

        Their views stay as they were, but where several partitions plan with what these say.
        """
        known = self.jobs_by_slot
        if self._alike is None:
            self._alike = {}
            for slot in self.slot_of.values():
                self._alike.setdefault(known[slot].job.likeness, array("q")).append(slot)
        slots = self._alike.get(change.kind, _NONE_ALIKE)
        if self._takes is not None:
            for slot in slots:
                known[slot] = replaced(known[slot], **change.values)
        return slots

    def _exchanged(self, pending: PendingJob) -> array[int]:
        """Take another view of a job; returns its slot, if it has one."""
        slot = self.slot_of.get(pending.job.job_id)
        if slot is None:
            if pending.job.job_id in self.wide:
                self.wide[pending.job.job_id] = pending
            return _NONE_ALIKE
        if pending.due is not self.jobs_by_slot[slot].due:
            self._fall_due(slot, pending)
            self._note(queue.FALLS_DUE, slot)
        self.jobs_by_slot[slot] = pending
        self._tables.jobs[slot, waiting_jobs.PLANNED] = pending.planned_seconds
        return array("q", (slot,))

    def _believe(self, believed: Sequence[tuple[array[int], Distribution]]) -> None:
        """Update the beliefs about the jobs of some slots, one after the other."""
        where = np.frombuffer(b"".join(alike for alike, _ in believed), np.int64)
        if not where.size:
            return
        first, self._changed = self._changed, self._changed + where.size
        self._make_room_for_changes(self._changed)
        rows = np.concatenate([self._summaries.row(belief) for _, belief in believed])
        self._tables.summaries[where] = rows.reshape(len(believed), -1).repeat(
            [len(alike) for alike, _ in believed], axis=0
        )
        changes = self._tables.changes[first : self._changed]
        changes[:, queue.WHAT], changes[:, queue.WHO] = queue.BELIEVED, where

    def _follow_running(self, changes: Sequence[Change[RunningJob]] | None) -> bool:
        """Note what has changed among those that run; whether that is known, and little."""
        if not changes:
            return changes is not None
        if len(changes) > _FEW + 2 * self._releases:
            return False
        needed = self._changed + _ROWS_PER_CHANGE * len(changes)
        if needed > self._most_changes:
            self._make_room_for_changes(needed)
        for change in changes:
            assert not isinstance(change, Altered)  # only what waits is
            before, after = change
            if before is not None:
                self._let_go(before)
            if after is not None:
                self._hold(after)
        return True

    def _hold(self, running: RunningJob) -> None:
        """A job begins to hold cpus here."""
        if self._follows_probes:
            self._note(queue.RUNS, self._kind(running.job))
        number = running.start_order
        cpus = held_cpus(running.job, running.placement, self.records)
        beyond, fixed = self._holds[number] = _exactly(cpus)
        if fixed or beyond:
            self._held_beyond += beyond
            self._held_fixed += fixed
            self._releases += 1
            end = max(running.expected_end_seconds, self._soonest)
            self._note(queue.HOLDS, -1.0 - number, end, fixed, fixed * running.went_first)

    def _let_go(self, running: RunningJob) -> None:
        """A job lets its cpus here go."""
        if self._follows_probes:
            self._note(queue.RUNS_NO_MORE, self._kind(running.job))
        number = running.start_order
        beyond, fixed = self._holds.pop(number, _NOTHING)
        if fixed or beyond:
            self._held_beyond -= beyond
            self._held_fixed -= fixed
            self._releases -= 1
            end = max(running.expected_end_seconds, self._soonest)
            self._note(queue.LETS_GO, -1.0 - number, end, fixed, fixed * running.went_first)

    # --- beginning anew

    def _take_pending(self, view: ClusterView) -> None:
        """Lay the tables out from all waiting jobs; what was reported of them stays known."""
        codes = self._tables.codes[: len(self.jobs_by_slot)].tolist()
        known = {job_id: codes[slot] for job_id, slot in self.slot_of.items()}
        pending = self._taken(view.pending)
        fitting = [each for each in pending if each.job.cpus <= self._total]
        self.wide = {each.job.job_id: each for each in pending if each.job.cpus > self._total}
        self.jobs_by_slot = fitting
        self.slot_of = {each.job.job_id: slot for slot, each in enumerate(fitting)}
        self._alike = None
        self._replace(**_blank_tables(2 * len(fitting) + _SPARE))
        mutes = self._mutes
        self._tables.codes[: len(fitting)] = [
            queue.MUTE
            if mutes is not None and mutes(each.job)
            else known.get(each.job.job_id, queue.NO_CODE)
            for each in fitting
        ]
        if fitting:
            self._tables.others[: len(fitting)] = [others_of(each.job) for each in fitting]
        self._asking = int(self._tables.others.any(axis=1).sum())
        submitted = self._lay_out(fitting)
        self._last_arrival = max((each.arrival for each in fitting), default=-1)
        self._last_submit = float(submitted.max(initial=-math.inf))
        self._is_ordered = bool((np.diff(submitted) >= 0.0).all())
        self._changed = 0
        self._tables.counters[:] = 0
        self._tables.counters[queue.SLOTS] = len(fitting)
        for slot, each in enumerate(fitting):
            self._fall_due(slot, each)
        self._tables.jobs[: len(fitting), queue.AGED] = (
            self._tables.jobs[: len(fitting), waiting_jobs.DUE] <= view.now
        )
        queue.fill_order(float(view.now), self._places)

    def _lay_out(self, fitting: Sequence[PendingJob]) -> Floats:
        """Write the rows of these jobs; returns when they were submitted (seconds)."""
        specs, jobs = self._tables.specs[: len(fitting)], self._tables.jobs[: len(fitting)]
        submitted = np.array([each.job.submit_seconds for each in fitting], dtype=np.float64)
        cpus = np.array([each.job.cpus for each in fitting], dtype=np.float64)
        requested = [each.job.requested_seconds for each in fitting]
        specs[:, columns.SUBMIT] = jobs[:, waiting_jobs.SUBMITTED] = submitted
        specs[:, columns.CPUS] = cpus
        specs[:, columns.REQUESTED] = [math.inf if each is None else each for each in requested]
        beliefs = {id(each.prediction): each.prediction for each in fitting}  # many have the same
        rows = {number: self._summaries.row(belief) for number, belief in beliefs.items()}
        for row, each in zip(self._tables.summaries, fitting, strict=False):
            row[:] = rows[id(each.prediction)]
        jobs[:, queue.KIND] = [self._kind(each.job) for each in fitting]
        jobs[:, waiting_jobs.WIDTH] = columns.fixed_point_cpus(cpus)
        jobs[:, waiting_jobs.PLANNED] = [each.planned_seconds for each in fitting]
        return submitted

    def _take_running(self, view: ClusterView) -> None:
        """Lay the releases out from all that run."""
        rows = self._tables.changes[: self._changed]
        others = rows[rows[:, queue.WHAT] < queue.HOLDS]
        self._changed = len(others)
        self._tables.changes[: self._changed] = others
        if self._follows_probes:
            self._make_room_for_changes(self._changed + _ROWS_PER_CHANGE * len(view.running))
            for each in view.running:
                self._note(queue.RUNS, self._kind(each.job))
        releases = sorted(
            (each.expected_end_seconds, each.start_order, cpus, each.went_first)
            for each in view.running
            if (cpus := held_cpus(each.job, each.placement, self.records)) > 0
        )
        count = len(releases)
        if count > len(self._tables.release):
            self._replace(release=np.zeros((2 * count, waiting_jobs.RELEASE_COLUMNS)))
        self._holds = {order: _exactly(cpus) for _, order, cpus, _ in releases}
        fixed = [exact[1] for exact in self._holds.values()]
        holders = [-1.0 - order for _, order, *_ in releases]
        self._tables.release[:count, waiting_jobs.EXPECTED_END] = [end for end, *_ in releases]
        self._tables.release[:count, waiting_jobs.HOLDER] = holders
        self._tables.release[:count, waiting_jobs.HELD] = fixed
        self._held_beyond = sum(exact[0] for exact in self._holds.values())
        self._held_fixed = sum(fixed)
        went_first = [each for *_, each in releases]
        self._tables.numbers[queue.HELD_FIRST] = np.dot(fixed, went_first) if fixed else 0.0
        self._soonest = -math.inf
        self._releases = count
        self._tables.counters[queue.RELEASES] = count

    def _kind(self, job: Job) -> int:
        """The number of a job's kind: others of the same user and request inform about it."""
        if not self._follows_probes:
            return 0
        codes = self._kind_codes
        code = codes.setdefault((job.user, job.requested_seconds), len(codes))
        if code == len(self._tables.kinds):
            kinds = np.concatenate([self._tables.kinds, queue.blank_kinds(code)])
            self._replace(kinds=kinds)
        return code


@lru_cache(maxsize=4096)
def _exactly(cpus: float) -> tuple[int, float]:
    """Split cpus into fixed-point units and what is beyond these, in the smallest counted parts."""
    fixed = columns.fixed_point(cpus)
    return int((cpus - fixed) * _PER_CPU), fixed


def held_cpus(job: Job, placement: Placement, records: Container[str]) -> float:
    """Cpus that a running job holds in a partition of these records."""
    places = placement.tasks_by_partition
    if len(places) == 1:  # asked for many times a pass
        return job.cpus if places[0][0] in records else 0.0
    tasks = sum(count for name, count in places if name in records)
    return job.cpus * tasks / job.tasks


def lengthened(rows: NDArray[Any], count: int) -> NDArray[Any]:
    """A copy with so many rows, zeros behind those that there are."""
    longer = np.zeros((count, rows.shape[1]), rows.dtype)
    longer[: len(rows)] = rows
    return longer
