"""A moment of a run laid out (every cpu is a lane, nodes are bands), and its words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np

from foresail.control.policy import parse_policy
from foresail.explain.chances import (
    PlannedSlowdowns,
    chance_of_running,
    chance_of_start,
    still_running,
)
from foresail.explain.reason_words import in_words
from foresail.explain.run_snapshot import RunSnapshot, WaitingJob
from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import ForesailError
from foresail.model.event import Unit
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.model.words import count, duration, number, percent
from foresail.record.records import Solved

Runs = tuple[tuple[int, int], ...]
"""Neighbouring lanes: the first of each run, and the first after it."""


@dataclass(frozen=True, slots=True)
class Band:
    """The lanes of a partition or node: from the first until before ``end``."""

    name: str
    first: int
    end: int

    @property
    def middle(self) -> float:
        """Half way through it."""
        return (self.first + self.end) / 2


class Lanes:
    """The lanes of a cluster, and until when (seconds) each of them is taken."""

    def __init__(self, cluster: Cluster) -> None:
        partitions: list[Band] = []
        nodes: list[Band] = []
        lane = 0
        for partition in cluster.partitions:
            first = lane
            for node in partition.nodes:
                band = Band(node.name, lane, lane + _lanes(node.total.cpus))
                nodes.append(band)
                lane = band.end
            if not partition.nodes:
                lane += _lanes(partition.total.cpus)
            partitions.append(Band(partition.name, first, lane))
        self.count = lane
        self.partitions = tuple(partitions)
        self.nodes = tuple(nodes)
        self._of_partition = {band.name: band for band in partitions}
        self._of_node = {band.name: band for band in nodes}
        self._taken_until = np.full(lane, -math.inf)

    def of_nodes(self, names: Iterable[str]) -> Runs:
        """All lanes of some nodes."""
        bands = [self._of_node[name] for name in names if name in self._of_node]
        return _runs(np.concatenate([np.arange(b.first, b.end) for b in bands])) if bands else ()

    def take(self, job: Job, placement: Placement, start: float, until: float) -> Runs:
        """The lanes of an attempt that started at a time, and keep them taken until another.

        Attempts must come in order of start.
        """
        each = job.cpus / job.tasks
        bands = self._bands(placement)
        found = [self._lowest(band, _lanes(tasks * each), start) for band, tasks in bands]
        lanes = np.concatenate(found) if found else np.zeros(0, np.int64)
        self._taken_until[lanes] = until
        return _runs(lanes)

    def _bands(self, placement: Placement) -> list[tuple[Band, int]]:
        named = [
            (self._of_node[name], tasks)
            for name, tasks in placement.tasks_by_node
            if name in self._of_node
        ]
        return named or [
            (self._of_partition[name], tasks)
            for name, tasks in placement.tasks_by_partition
            if name in self._of_partition
        ]

    def _lowest(self, band: Band, wanted: int, start: float) -> Integers:
        """The lowest free lanes of a band, or those that are free first."""
        taken = self._taken_until[band.first : band.end]
        free = np.flatnonzero(taken <= start)[:wanted]
        if free.size < wanted:
            free = np.argsort(taken, kind="stable")[:wanted]
        return band.first + free

    def hold(self, runs: Runs, until: float) -> None:
        """Say until when lanes are likely to be taken."""
        for first, end in runs:
            self._taken_until[first:end] = until

    def foresee(self, job: Job, placement: Placement, start: float, until: float) -> Runs:
        """Lanes for a job that is planned: where most are likely to be free by its start.

        First in the partitions that its plan names; where these have no room left and nothing ties
        the job to them, anywhere. A block of neighbours if there is one, the smallest that does.
        """
        wanted = _lanes(job.cpus)
        bands = [band for band, _ in self._bands(placement)]
        found = self._free(bands, wanted, start)
        is_choosy = job.preference is not None or bool(job.options)
        if found.size < wanted and not is_choosy and job.partition is None:
            found = self._free(self.partitions, wanted, start)
        if found.size < wanted:
            inside = _all_of(bands or self.partitions)
            found = inside[np.argsort(self._taken_until[inside], kind="stable")[:wanted]]
        self._taken_until[found] = until
        return _runs(found)

    def _free(self, bands: Sequence[Band], wanted: int, start: float) -> Integers:
        lanes = _all_of(bands)
        free = lanes[self._taken_until[lanes] <= start]
        blocks = _runs(free)
        fitting = [block for block in blocks if block[1] - block[0] >= wanted]
        if fitting:
            first = min(fitting, key=lambda block: block[1] - block[0])[0]
            return np.arange(first, first + wanted)
        return free[:wanted]


def _all_of(bands: Sequence[Band]) -> Integers:
    if not bands:
        return np.zeros(0, np.int64)
    return np.concatenate([np.arange(band.first, band.end) for band in bands])


def _lanes(cpus: float) -> int:
    """Whole lanes for a number of cpus, at least one."""
    return max(1, math.ceil(cpus - 1e-9))


def _runs(lanes: Integers) -> Runs:
    if not lanes.size:
        return ()
    ordered = np.unique(lanes)
    breaks = np.flatnonzero(np.diff(ordered) != 1)
    firsts = ordered[np.concatenate(([0], breaks + 1))]
    lasts = ordered[np.concatenate((breaks, [ordered.size - 1]))]
    return tuple(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True))


_PAST_SHARE: Final = 0.5
"""Length of the past that is shown, as a share of what is shown of the future."""

_MOST_PLANNED: Final = 1000
"""Planned jobs that are drawn; more of them would be more lines than a page should have."""


@dataclass(frozen=True, slots=True)
class Bar:
    """An attempt of a job, or one that is planned, as it is drawn."""

    job: Job
    """The job."""
    start_seconds: float
    """Start, past or planned."""
    low_seconds: float
    likely_seconds: float
    high_seconds: float
    """Times at which it ends with a probability of 10, 50 and 90 % (all one if it has ended)."""
    runs: Runs
    """Its lanes."""
    chance: float | None
    """Probability of its deadline; None without one."""

    @property
    def at_risk(self) -> bool:
        """Return whether it is likelier to miss its deadline than not."""
        return self.chance is not None and self.chance < 0.5


@dataclass(frozen=True)
class PlanView:
    """A moment of a run, laid out.

    ``still_running`` has a row per bar of ``running``: the probability that it runs at ``times``
    (on the log's clock). ``left_out`` counts planned jobs beyond those that are drawn.
    """

    moment: RunSnapshot
    from_seconds: float
    to_seconds: float
    lanes: Lanes
    past: tuple[Bar, ...]
    running: tuple[Bar, ...]
    planned: tuple[Bar, ...]
    times: Floats
    still_running: Floats
    chances: dict[str, float | None]
    left_out: int

    @property
    def plans_ahead(self) -> bool:
        """Return whether anything is planned."""
        return bool(self.planned)


def plan_view(moment: RunSnapshot, columns: int) -> PlanView:
    """Lay out a moment, with so many columns of time."""
    slowdowns = PlannedSlowdowns(moment.cluster)
    window = _window_seconds(moment)
    past_seconds = min(_PAST_SHARE * window, max(moment.since_start, 0.05 * window))
    begin, end = moment.now - past_seconds, moment.now + window
    times = np.linspace(begin, end, columns + 1)
    lanes = Lanes(moment.cluster)
    past, running = _laid_out(moment, begin, lanes)
    still = np.ones((len(running), columns))
    middles = (times[:-1] + times[1:]) / 2
    for row, job in enumerate(moment.running):
        begun = np.clip((times[1:] - job.start_seconds) / np.diff(times), 0.0, 1.0)
        still[row] = np.minimum(begun, still_running(job, middles, moment.now))
    chances = _chances(moment, slowdowns)
    for bar in running:
        lanes.hold(bar.runs, bar.likely_seconds)
    lanes.hold(lanes.of_nodes(moment.down), math.inf)
    planned, left_out = _planned(moment, lanes, slowdowns, chances)
    return PlanView(
        moment, begin, end, lanes, past, running, planned, times, still, chances, left_out
    )


def _laid_out(
    moment: RunSnapshot, begin: float, lanes: Lanes
) -> tuple[tuple[Bar, ...], tuple[Bar, ...]]:
    """Bars of the attempts that have ended since some time, and of those that run."""
    ended = [(each.outcome, each.running) for each in moment.past]
    attempts = [
        (o.start_seconds, each, o.end_seconds) for o, each in ended if o.end_seconds > begin
    ]
    attempts += [(each.start_seconds, each, math.inf) for each in moment.running]
    past: list[Bar] = []
    running: dict[Unit, Bar] = {}
    for start, each, end in sorted(attempts, key=itemgetter(0)):
        runs = lanes.take(each.held, each.placement, start, end)
        if end < math.inf:
            past.append(Bar(each.held, start, end, end, end, runs, None))
            continue
        low, likely, high = _ends(each, moment.now)
        chance = chance_of_running(each, moment.now)
        bar = Bar(each.held, start, low, likely, high, runs, chance)
        running[each.unit] = bar
    return tuple(past), tuple(running[each.unit] for each in moment.running)


def _ends(running: RunningJob, now: float) -> tuple[float, float, float]:
    """Return when a running job ends with a probability of 10, 50 and 90 %."""
    belief, slowdown = running.prediction, running.slowdown
    gone = float(belief.cumulative(max(running.elapsed_seconds(now), 0.0) / slowdown))
    if gone >= 1.0:
        end = max(running.expected_end_seconds, now)
        return end, end, end
    levels = [gone + level * (1.0 - gone) for level in (0.1, 0.5, 0.9)]
    ends = [running.start_seconds + slowdown * belief.quantile(level) for level in levels]
    low, likely, high = (max(end, now) for end in ends)
    return low, likely, high


def _planned(
    moment: RunSnapshot, lanes: Lanes, slowdowns: PlannedSlowdowns, chances: dict[str, float | None]
) -> tuple[tuple[Bar, ...], int]:
    waiting = [each for each in moment.waiting if math.isfinite(_start(each))]
    waiting.sort(key=_start)
    bars = []
    for each in waiting[:_MOST_PLANNED]:
        assert each.planned is not None
        job, start = each.pending.job, each.planned.start_seconds
        slowdown = slowdowns.factor(job, each.planned.placement)
        low, likely, high = (
            start + slowdown * each.pending.prediction.quantile(level) for level in (0.1, 0.5, 0.9)
        )
        runs = lanes.foresee(job, each.planned.placement, start, likely)
        bars.append(Bar(job, start, low, likely, high, runs, chances[job.job_id]))
    return tuple(bars), max(0, len(waiting) - _MOST_PLANNED)


def _start(waiting: WaitingJob) -> float:
    return math.inf if waiting.planned is None else waiting.planned.start_seconds


def _chances(moment: RunSnapshot, slowdowns: PlannedSlowdowns) -> dict[str, float | None]:
    """Chance of every waiting job's deadline: as planned, or at most (if it started now)."""
    chances = {}
    for each in moment.waiting:
        job, belief = each.pending.job, each.pending.prediction
        if each.planned is None:
            chances[job.job_id] = chance_of_start(job, belief, moment.now)
        else:
            slowdown = slowdowns.factor(job, each.planned.placement)
            start = each.planned.start_seconds
            chances[job.job_id] = chance_of_start(job, belief, start, slowdown)
    return chances


def _window_seconds(moment: RunSnapshot) -> float:
    """Return how far the picture reaches: the scheduler's window, or to the end of what is planned.

    Without either, until nearly all that runs should have ended.
    """
    window = _plan_ahead_seconds(moment.policy)
    starts = [_start(each) - moment.now for each in moment.waiting if each.planned is not None]
    starts = [start for start in starts if math.isfinite(start)]
    if window is not None and window > 0.0:
        return max([window, *(1.02 * start for start in starts)])
    ends = sorted(_ends(each, moment.now)[1] - moment.now for each in moment.running)
    most = ends[int(0.9 * (len(ends) - 1))] if ends else 0.0
    longest = max([1.25 * most, *(1.5 * start for start in starts)])
    return longest if longest > 0.0 else 600.0


def _plan_ahead_seconds(policy: str) -> float | None:
    """Return how far the policy's scheduler plans; None without a window, or where unknown."""
    try:
        parameters = parse_policy(policy).scheduler.parameters
    except ForesailError:
        return None
    slots = getattr(parameters, "window_slots", None)
    seconds = getattr(parameters, "slot_seconds", None)
    return None if slots is None or seconds is None else float(slots) * float(seconds)


_MOST_NAMED: Final = 5


def chance_words(chance: float | None, is_planned: bool) -> str:
    """The chance of a deadline: as planned, or what it would be at most."""
    if chance is None:
        return "no deadline"
    rounded = f"{100 * chance:.0f} %"
    return rounded if is_planned or rounded == "0 %" else f"at most {rounded}"


def solver_words(solved: Solved | None) -> str:
    """Say what the solver believed of the last plan."""
    if solved is None:
        return "Not known: no solver was asked, or the event log does not hold what it found."
    if solved.failure:
        return (
            f"The solver failed ({solved.failure}): the last plan, worth {number(solved.value)}, "
            "was made without it."
        )
    columns = (
        "no program was needed"
        if solved.columns == 0
        else f"the last program had {count(solved.columns, 'column')}"
    )
    bound = (
        f"no plan can be worth more than {number(solved.bound)} (gap {percent(solved.gap)})"
        if math.isfinite(solved.bound)
        else "how much better the best one may be is not known"
    )
    left_out = ""
    if solved.left_out:
        jobs = count(solved.left_out, "waiting job")
        left_out = f" It left out {jobs}: plan and bound are about the others."
    return (
        f"The last plan is worth {number(solved.value)}; {bound}; {columns}; "
        f"the cycle took {duration(solved.cycle_seconds)}.{left_out}"
    )


def findings_of(view: PlanView) -> list[str]:
    """Say what the picture shows, in a few sentences."""
    moment = view.moment
    if not moment.running and not moment.waiting:
        return ["Nothing runs and nothing waits."]
    return [
        _running(view),
        *_waiting(view),
        *_deadlines(view),
        *(["Nothing new is started: the run is being drained."] if moment.draining else []),
        *([f"{count(len(moment.down), 'node')} are down."] if len(moment.down) > 1 else []),
        *([f"Node {next(iter(moment.down))} is down."] if len(moment.down) == 1 else []),
    ]


def _running(view: PlanView) -> str:
    moment = view.moment
    total = moment.cluster.total.cpus
    if not moment.running:
        return f"Nothing runs; all {total:g} cpus stand idle."
    cpus = sum(each.held.cpus for each in moment.running)
    jobs = len({each.job.job_id for each in moment.running})
    used = np.array([bar.job.cpus for bar in view.running]) @ view.still_running
    middles = (view.times[:-1] + view.times[1:]) / 2
    later = (middles > moment.now) & (used < cpus / 2)
    half = (
        f"half of that should be free in {duration(float(middles[later][0]) - moment.now)}"
        if later.any()
        else f"half of that is not expected to be free within "
        f"{duration(view.to_seconds - moment.now)}"
    )
    verb = "runs" if jobs == 1 else "run"
    return f"{count(jobs, 'job')} {verb} on {cpus:g} of {total:g} cpus; {half}."


def _waiting(view: PlanView) -> list[str]:
    waiting = view.moment.waiting
    if not waiting:
        return ["No job waits."]
    verb = "waits" if len(waiting) == 1 else "wait"
    first = f"{count(len(waiting), 'job')} {verb}"
    planned = len(view.planned) + view.left_out
    if not planned:
        return [f"{first}; none of them is planned for a time."]
    following = view.planned[0]
    start = in_words(following.start_seconds - view.moment.now)
    named = f"job {following.job.job_id}"
    if planned == len(waiting):
        if planned == 1:
            return [f"{first}; it is planned to start {start}."]
        return [f"{first}; all are planned, {named} first, {start}."]
    return [f"{first}; {planned:,} of them planned, {named} first, {start}."]


def _deadlines(view: PlanView) -> list[str]:
    bars = [bar for bar in (*view.running, *view.planned) if bar.chance is not None]
    if not bars:
        return []
    risky = [bar for bar in bars if bar.at_risk]
    if len(bars) == 1:
        likelier = "likelier to miss it than not" if risky else "likelier to meet it than not"
        only = "the only one with a deadline that runs or is planned"
        return [f"Job {bars[0].job.job_id}, {only}, is {likelier}."]
    if not risky:
        return [
            f"All of the {len(bars):,} jobs with a deadline that run or are planned are likelier "
            "to meet it than not."
        ]
    verb = "is" if len(risky) == 1 else "are"
    return [
        f"Of {len(bars):,} jobs with a deadline that run or are planned, {len(risky):,} "
        f"{verb} likelier to miss it than not: {_names(risky)}."
    ]


def _names(bars: Sequence[Bar]) -> str:
    names = [bar.job.job_id for bar in bars[:_MOST_NAMED]]
    more = f" and {len(bars) - _MOST_NAMED:,} more" if len(bars) > _MOST_NAMED else ""
    return ", ".join(names) + more
