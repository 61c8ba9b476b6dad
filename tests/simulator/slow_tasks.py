"""The slow, obvious simulator of tasks on slots: lists, looked through from the beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean, variance

from foresail.schedulers.kernels.pilots import drawn


@dataclass(frozen=True)
class SlowStage:
    """Runtimes of the tasks, and the numbers of the job's stages that must have ended before."""

    runtimes: tuple[float, ...]
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class SlowRules:
    """What is done; the names are those of the schedulers' parameters."""

    source: str  # "arrival", "service", "truth" or "pilots"
    queues: int = 10
    first_threshold_seconds: float = 1000.0
    pilot_percent: float | None = 3.0
    thin_below: int = 3
    trials: int = 100
    seed: int = 0
    likely_spreads: float | None = None  # None: history is not asked
    believed: float | None = None  # of every task; None: the truth about their mean
    hopeless_below: float | None = None  # None: deadlines are not heeded


@dataclass
class _Job:
    number: int
    submit: float
    stages: tuple[SlowStage, ...]
    queue: int = 0
    entered: float = 0.0
    waiting: list[tuple[int, int]] = field(default_factory=list)  # stage, task: may start
    pilots: set[tuple[int, int]] = field(default_factory=set)
    told: list[float] = field(default_factory=list)
    sampling: bool = False
    meanwhile: int | None = None
    ratio: int = 0
    estimate: float = math.nan
    done: set[tuple[int, int]] = field(default_factory=set)
    opened: set[int] = field(default_factory=set)
    running: dict[tuple[int, int], float] = field(default_factory=dict)
    learned: dict[tuple[int, int], float] = field(default_factory=dict)
    served: float = 0.0
    due: float | None = None
    each: float = math.nan
    relative: float = math.nan

    @property
    def size(self) -> float:
        return sum(sum(stage.runtimes) for stage in self.stages)

    @property
    def tasks(self) -> int:
        return sum(len(stage.runtimes) for stage in self.stages)

    def may_start(self) -> list[tuple[int, int]]:
        return [task for task in self.waiting if not self.sampling or task in self.pilots]


@dataclass(frozen=True)
class SlowResult:
    """Starts by job, stage and task, queues charged, estimates, pilots and ends of jobs."""

    starts: dict[tuple[int, int, int], float]
    queues: dict[tuple[int, int, int], int]
    estimates: list[float]
    pilots: list[set[tuple[int, int]]]
    ends: list[float]


def slow_tasks(
    jobs: list[tuple[float, tuple[SlowStage, ...]]],
    speeds: Sequence[float],
    rules: SlowRules,
    deadlines: list[float | None] | None = None,
) -> SlowResult:
    """Run jobs (submission and stages, in order of submission) on slots of these speeds."""
    every = [_Job(number, submit, stages) for number, (submit, stages) in enumerate(jobs)]
    if rules.hopeless_below is not None or rules.source == "deadline":
        for job, deadline in zip(every, deadlines or [None] * len(every), strict=True):
            job.due = deadline
    run = _Run(rules, speeds, every)
    while any(len(job.done) < job.tasks for job in every):
        run.step()
    return SlowResult(
        run.starts,
        run.charged,
        [job.estimate for job in every],
        [job.pilots for job in every],
        run.ends,
    )


class _Run:
    def __init__(self, rules: SlowRules, speeds: Sequence[float], jobs: list[_Job]) -> None:
        self.rules = rules
        self.free = list(speeds)  # of the slots in which nothing runs
        self.jobs = jobs
        self.coming = list(jobs)
        self.present: list[_Job] = []
        self.active: list[tuple[float, int, _Job, tuple[int, int], float]] = []  # with its speed
        self.starts: dict[tuple[int, int, int], float] = {}
        self.charged: dict[tuple[int, int, int], int] = {}
        self.ends = [math.nan] * len(jobs)
        self.asked = 0
        self.outcomes: dict[int, list[float]] = {}
        self.log_errors: list[float] = []
        self.held: list[float] = []  # seconds of each task that has ended
        self.learned = 0.0  # of all of these
        self.most_running = 0
        self.relative_variances: list[float] = []  # of the tasks of jobs' first stages

    def step(self) -> None:
        times = [end for end, *_ in self.active] + [job.submit for job in self.coming[:1]]
        now = min(times)
        while self.active and min(self.active, key=lambda each: each[:2])[0] <= now:
            ended = min(self.active, key=lambda each: each[:2])
            self.active.remove(ended)
            self.free.append(ended[4])
            self.end(*ended[2:], now)
        while self.coming and self.coming[0].submit <= now:
            self.submit(self.coming.pop(0), now)
        if self.rules.source == "service" and any(job.waiting for job in self.present):
            for job in self.present:
                served = job.served + sum(now - start for start in job.running.values())
                if self.queue_of(served) > job.queue:
                    job.queue, job.entered = self.queue_of(served), now
        while self.free and self.start_one(now):
            pass

    def queue_of(self, seconds: float) -> int:
        if math.isnan(seconds):
            return 0
        queue = 0
        while (
            queue < self.rules.queues - 1
            and seconds >= self.rules.first_threshold_seconds * 10.0**queue
        ):
            queue += 1
        return queue

    def ratio(self) -> int:
        asked, trials = self.asked, self.rules.trials
        self.asked += 1
        if asked < 3 * trials:
            return (3, 2, 4)[asked // trials]
        scores = {ratio: fmean(last) for ratio, last in self.outcomes.items()}
        if not scores:
            return 3
        best = min(scores, key=lambda ratio: (scores[ratio], ratio != 3, ratio))
        if best == 2 and 3 in scores and 1.1 * scores[2] < scores[3]:
            return 1
        if best == 4 and 3 in scores and 1.1 * scores[4] < scores[3]:
            return 5
        return best

    def submit(self, job: _Job, now: float) -> None:
        rules = self.rules
        self.present.append(job)
        job.entered = now
        first = [(0, task) for task in range(len(job.stages[0].runtimes))]
        if rules.source == "truth":
            job.estimate = job.size
            if job.tasks >= rules.thin_below:
                job.queue = self.queue_of(job.size)
        elif rules.source == "pilots" and job.tasks >= rules.thin_below:
            percent = rules.pilot_percent
            if percent is None:
                percent = job.ratio = self.ratio()
            pilots = max(1, math.floor(percent * len(first) / 100))
            drawn_first = list(first)
            for i in range(pilots):
                other = i + int(drawn(rules.seed, job.number, i) * (len(first) - i))
                drawn_first[i], drawn_first[other] = drawn_first[other], drawn_first[i]
            low, high = 0, rules.queues
            if rules.likely_spreads is not None:
                low = self.likely_queue(job, -rules.likely_spreads)
                high = self.likely_queue(job, rules.likely_spreads)
                job.meanwhile = high
            if low == high:
                job.ratio = 0
                job.estimate = self.predicted(job)
                job.each = job.estimate / job.tasks
                job.relative = fmean(self.relative_variances or [0.0])
                job.queue = self.queue_of(job.estimate) if job.due is None else 0
            else:
                job.pilots = set(drawn_first[:pilots])
                first = drawn_first
                job.sampling = high > 1 and job.due is None
                job.queue = min(high, 1) if job.due is None else 0
        job.waiting = first
        job.opened.add(0)
        self.open_stages(job)

    def belief(self, stage: SlowStage) -> float:
        """What history says of the mean of a stage's tasks."""
        return fmean(stage.runtimes) if self.rules.believed is None else self.rules.believed

    def predicted(self, job: _Job) -> float:
        return sum(self.belief(stage) * len(stage.runtimes) for stage in job.stages)

    def likely_queue(self, job: _Job, spreads: float) -> int:
        """The queue if history is off by so many deviations of its errors, five more counted."""
        count = len(self.log_errors)
        if count == 0 or self.belief(job.stages[0]) == 0.0:
            return self.rules.queues - 1 if spreads > 0 else 0
        variance = sum(error**2 for error in self.log_errors) / count * (1 + 5 / count)
        return self.queue_of(self.predicted(job) * math.exp(spreads * math.sqrt(variance)))

    def open_stages(self, job: _Job) -> None:
        for number, stage in enumerate(job.stages):
            ended = all(
                (before, task) in job.done
                for before in stage.after
                for task in range(len(job.stages[before].runtimes))
            )
            if number not in job.opened and ended:
                job.opened.add(number)
                job.waiting += [(number, task) for task in range(len(stage.runtimes))]

    def end(self, job: _Job, task: tuple[int, int], speed: float, now: float) -> None:
        job.done.add(task)
        seconds = job.stages[task[0]].runtimes[task[1]]
        job.learned[task] = seconds
        self.learned += job.learned[task]
        self.most_running = max(self.most_running, len(self.active) + 1)
        self.held.append(now - job.running[task])
        job.served += now - job.running.pop(task)
        self.open_stages(job)
        if task in job.pilots:
            job.told.append(job.learned[task])
            if len(job.told) == len(job.pilots):
                each = fmean(job.told)
                first = len(job.stages[0].runtimes)
                if self.rules.likely_spreads is None or job.tasks == first:
                    job.estimate = each * first * (1 + (job.tasks - first) / first)
                else:  # the later stages are as far off what is believed as the first one
                    believed = self.belief(job.stages[0]) * first
                    ratio = each * first / believed if believed else 1.0
                    others = sum(
                        self.belief(stage) * len(stage.runtimes) for stage in job.stages[1:]
                    )
                    job.estimate = each * first + ratio * others
                job.each, job.relative = each, self.relative_variance(job.told)
                if job.due is None and (job.sampling or job.queue != self.queue_of(job.estimate)):
                    job.queue, job.entered = self.queue_of(job.estimate), now
                job.sampling = False
        if len(job.done) == job.tasks:
            self.ends[job.number] = now
            first_stage = [seconds for (at, _), seconds in job.learned.items() if at == 0]
            if len(first_stage) > 1 and any(first_stage):
                relative = variance(first_stage) / fmean(first_stage) ** 2
                self.relative_variances.append(relative)
            truth, believed = fmean(first_stage), self.belief(job.stages[0])
            if truth > 0.0 and believed > 0.0:
                self.log_errors.append(math.log(truth) - math.log(believed))
            size = sum(job.learned.values())
            if job.ratio and size > 0:
                last = self.outcomes.setdefault(job.ratio, [])
                last.append((now - job.submit) / size)
                del last[: -self.rules.trials]

    def relative_variance(self, told: list[float]) -> float:
        """Of a job's tasks, by its pilots and by what was usual; 0 of those that take no time."""
        mean = fmean(told)
        if mean == 0.0:
            return 0.0
        squares = sum((value - mean) ** 2 for value in told)
        if self.relative_variances:
            squares = (squares + fmean(self.relative_variances) * mean**2) / len(told)
        else:
            squares /= max(len(told) - 1, 1)
        return squares / mean**2

    def is_hopeless(self, job: _Job, heads: dict[int, _Job], now: float) -> bool:
        """Whether the odds that what has not started is in time are too small."""
        if job.due is None or self.rules.hopeless_below is None:
            return False
        if math.isnan(job.each):
            return job.due <= now
        weights = sum(0.1**queue for queue in heads)
        slots = max(self.most_running * 0.1**job.queue / weights, 1.0)
        tasks = job.tasks - len(job.done) - len(job.running)
        together = min(tasks, slots)
        held = math.fsum(self.held)
        each = job.each * (held / self.learned if self.learned else 1.0)
        left = job.due - now - each * (tasks - together) / slots
        if left <= 0.0 or each == 0.0:
            return left < 0.0 or each > 0.0
        if job.relative == 0.0:
            return left < each
        spread = math.sqrt(math.log1p(job.relative))
        one = NormalDist(math.log(each) - spread**2 / 2, spread).cdf(math.log(left))
        return bool(one**together < self.rules.hopeless_below)

    def start_one(self, now: float) -> bool:
        heads: dict[int, _Job] = {}
        for job in sorted(
            self.present,
            key=lambda each: (
                each.due
                if each.due is not None
                else math.inf
                if self.rules.source == "deadline"
                else each.entered,
                each.number,
            ),
        ):
            if job.may_start():
                heads.setdefault(job.queue, job)
        if heads:
            used = dict.fromkeys(heads, 0)
            for _, _, job, task, _ in self.active:
                queue = self.charged[job.number, *task]
                if queue in used:
                    used[queue] += 1
            queue = min(heads, key=lambda each: (used[each] * 10**each, each))
            if self.is_hopeless(heads[queue], heads, now):
                late = heads[queue]
                late.due, late.entered = None, now
                late.queue = max(1, self.queue_of(late.estimate))
                return self.start_one(now)
            self.launch(heads[queue], heads[queue].may_start()[0], queue, now)
            return True
        for job in self.present:
            if job.sampling and job.waiting:
                self.launch(job, job.waiting[0], 1, now)
                return True
        return False

    def launch(self, job: _Job, task: tuple[int, int], queue: int, now: float) -> None:
        job.waiting.remove(task)
        job.running[task] = now
        self.starts[job.number, *task] = now
        self.charged[job.number, *task] = queue
        if job.sampling and job.meanwhile is not None and not job.pilots & set(job.waiting):
            job.sampling = False
            job.queue, job.entered = job.meanwhile, now
        speed = max(self.free)
        self.free.remove(speed)
        seconds = job.stages[task[0]].runtimes[task[1]] / speed
        self.active.append((now + seconds, len(self.starts), job, task, speed))
