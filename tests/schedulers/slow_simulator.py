"""A slow, obvious simulator: lists, sorting and brute force, to compare the compiled replay with.

It knows one cluster of processors, estimates given beforehand, and the rules as they are written
down in the schedulers' docstrings; it shares no code with them. Times are whole seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)


@dataclass(eq=False)
class SlowJob:
    """A job, what is believed of it and what becomes of it."""

    number: int
    submit: float
    cpus: int
    runtime: float
    requested: float
    predicted: float
    user: str | None = "ann"
    planned: float = 0.0
    likely: float = 0.0
    estimate: float = 0.0
    corrections: int = 0
    start: float = math.nan
    backfilled: bool = False
    due: float = math.inf
    went_first: bool = False

    @property
    def kind(self) -> tuple[str | None, float]:
        return self.user, self.requested

    @property
    def end(self) -> float:
        return self.start + self.runtime

    @property
    def expected_end(self) -> float:
        return self.start + self.estimate


@dataclass
class Moment:
    """What a pass sees: the queue, the same jobs as candidates, and who holds what until when."""

    now: float
    processors: int
    queue: list[SlowJob]
    candidates: list[SlowJob]
    holds: list[tuple[float, int]]
    plan: dict[SlowJob, float]
    due: Sequence[SlowJob] = ()
    next_due: tuple[SlowJob | None, float] = (None, math.inf)
    room_came: bool = True
    held_first: int = 0

    @property
    def free(self) -> int:
        return self.processors - sum(cpus for _, cpus in self.holds)

    def free_at(self, time: float) -> int:
        """Expected to be free at a time, if nothing else starts."""
        return self.processors - sum(cpus for end, cpus in self.holds if end > time)

    def begin(self, job: SlowJob) -> None:
        self.holds.append((self.now + job.planned, job.cpus))

    def shadow(self, cpus: int) -> float:
        """First time at which so many cpus are expected to be free."""
        times = [self.now, *(end for end, _ in self.holds)]
        return min((time for time in times if self.free_at(time) >= cpus), default=math.inf)


Pass = Callable[[Moment], list[SlowJob]]


@dataclass(frozen=True)
class Rules:
    """A scheduler: its pass, its orders as expressions, and its guard against starvation.

    That is a limit of age, or shares (patience, bound) of the longest wait under EASY.
    """

    one_pass: Pass
    queue: str = "submit"
    candidates: str | None = None
    plan: str = "predicted"
    age_limit: float = math.inf
    shares: tuple[float, float] | None = None


def in_order(moment: Moment) -> list[SlowJob]:
    """Start the front of the queue while it fits."""
    started = []
    for job in moment.queue:
        if job.cpus > moment.free:
            break
        moment.begin(job)
        started.append(job)
    return started


def easy(moment: Moment) -> list[SlowJob]:
    """Start in order; then whoever ends before the head's shadow time or fits beside the head."""
    started = in_order(moment)
    waiting = [job for job in moment.queue if job not in started]
    if not waiting:
        return started
    head = waiting[0]
    shadow = moment.shadow(head.cpus)
    extra = moment.free_at(shadow) - head.cpus if math.isfinite(shadow) else 0
    for job in moment.candidates:
        if job in started or job is head or job.cpus > moment.free:
            continue
        if moment.now + job.planned > shadow:
            if job.cpus > extra:
                continue
            extra -= job.cpus
        moment.begin(job)
        started.append(job)
    return started


@dataclass
class Chart:
    """Who holds how many cpus from when to when."""

    processors: int
    bars: list[tuple[float, float, int]] = field(default_factory=list)

    def free_at(self, time: float) -> int:
        return self.processors - sum(cpus for start, end, cpus in self.bars if start <= time < end)

    def fits(self, start: float, seconds: float, cpus: int) -> bool:
        end = start + seconds
        changes = [start, *(begin for begin, _, _ in self.bars if start < begin < end)]
        return start == end or all(self.free_at(time) >= cpus for time in changes)

    def earliest(self, now: float, seconds: float, cpus: int) -> float:
        times = sorted({now, *(end for _, end, _ in self.bars if now < end < math.inf)})
        open_times = (t for t in times if self.free_at(t) >= cpus and self.fits(t, seconds, cpus))
        return next(open_times, math.inf)

    def draw(self, start: float, job: SlowJob) -> None:
        self.bars.append((start, start + job.planned, job.cpus))

    def erase(self, start: float, job: SlowJob) -> None:
        self.bars.remove((start, start + job.planned, job.cpus))


def chart_of(moment: Moment) -> Chart:
    return Chart(moment.processors, [(-math.inf, end, cpus) for end, cpus in moment.holds])


def reserving(reservations: int) -> Pass:
    """Reserve for the first few blocked jobs; whoever delays none of them may start."""

    def one_pass(moment: Moment) -> list[SlowJob]:
        started = in_order(moment)
        waiting = [job for job in moment.queue if job not in started]
        chart = chart_of(moment)
        reserved = waiting[:reservations]
        for job in reserved:
            start = chart.earliest(moment.now, job.planned, job.cpus)
            if start < math.inf:
                chart.draw(start, job)
            if start == moment.now and job.cpus <= moment.free:
                moment.begin(job)
                started.append(job)
        for job in moment.candidates:
            if job in started or job in reserved:
                continue
            if job.cpus <= moment.free and chart.fits(moment.now, job.planned, job.cpus):
                chart.draw(moment.now, job)
                moment.begin(job)
                started.append(job)
        return started

    return one_pass


def conservative(moment: Moment) -> list[SlowJob]:
    """Everybody holds a reservation, kept if it can be; after ends all move forward in order."""
    chart = chart_of(moment)
    plan: dict[SlowJob, float] = {}

    def place(job: SlowJob) -> None:
        plan[job] = chart.earliest(moment.now, job.planned, job.cpus)
        if plan[job] < math.inf:
            chart.draw(plan[job], job)

    for job in (job for job in moment.queue if job in moment.plan):
        start = max(moment.now, moment.plan[job])
        if chart.free_at(start) >= job.cpus and chart.fits(start, job.planned, job.cpus):
            plan[job] = start
            chart.draw(start, job)
        else:
            place(job)
    if moment.room_came:
        for job in [job for job in moment.queue if plan.get(job, math.inf) < math.inf]:
            chart.erase(plan[job], job)
            place(job)
    started = []
    for job in moment.queue:
        if plan.get(job, math.inf) == math.inf:
            place(job)
        if plan[job] == moment.now and job.cpus <= moment.free:
            moment.begin(job)
            started.append(job)
            del plan[job]
    moment.plan.clear()
    moment.plan.update((job, start) for job, start in plan.items() if start < math.inf)
    return started


def guarded(moment: Moment) -> list[SlowJob]:
    """Who is due first and with a reservation; others boldly, if they put off nobody that is due.

    A job that would put off the one that is due next is passed over. Who is due goes last where
    jobs that went first hold most of the machine, unless long overdue.
    """
    started: list[SlowJob] = []
    last: list[SlowJob] = []
    held_first = moment.held_first
    shadows, extras = [math.inf, math.inf], [0, 0]
    protected, latest = moment.next_due

    def puts_off(job: SlowJob) -> bool:
        if job in moment.due or protected is None or protected is job or protected in started:
            return False
        by_then = max(latest, moment.now, moment.shadow(protected.cpus))
        late = moment.now + job.planned > by_then
        return late and moment.free_at(by_then) - protected.cpus < job.cpus

    def goes_last(job: SlowJob) -> bool:
        if job not in moment.due or held_first == 0:
            return False
        is_overdue = moment.now - job.due >= 0.5 * (job.due - job.submit)
        return held_first + job.cpus > 0.65 * moment.processors and not is_overdue

    blocked: list[SlowJob | None] = [None, None]
    for job in chain(moment.queue, last):  # which grows
        is_last = job in last
        if not is_last and goes_last(job):
            last.append(job)
            continue
        if job.cpus > moment.free:
            if is_last:
                continue
            place = 0 if job in moment.due else 1
            if blocked[place] is None:
                blocked[place] = job
                shadow = moment.shadow(job.cpus)
                shadows[place] = shadow
                extras[place] = moment.free_at(shadow) - job.cpus if shadow < math.inf else 0
            continue
        end = moment.now + job.planned
        uses = [
            blocked[0] is not None and end > shadows[0],
            blocked[1] is not None and min(end, moment.now + job.likely) > shadows[1],
        ]
        if any(used and job.cpus > extra for used, extra in zip(uses, extras, strict=True)):
            continue
        if puts_off(job):
            continue
        extras = [extra - used * job.cpus for used, extra in zip(uses, extras, strict=True)]
        moment.begin(job)
        started.append(job)
        held_first += job.cpus if job in moment.due else 0
    return started


@dataclass
class SlowEasy:
    """What EASY would have done by now: its past stays as it was, whatever becomes known later."""

    processors: int
    patience: float
    bound: float
    waiting: list[SlowJob] = field(default_factory=list)
    begun: dict[SlowJob, float] = field(default_factory=dict)
    ends: dict[SlowJob, float] = field(default_factory=dict)
    news: list[tuple[float, str, SlowJob]] = field(default_factory=list)
    known: set[SlowJob] = field(default_factory=set)
    dues: dict[SlowJob, tuple[float, float]] = field(default_factory=dict)
    longest: float = 0.0

    def settle(self, now: float) -> None:
        """Settle what lies before now."""
        while True:
            time = min([*(each[0] for each in self.news), *self.ends.values()], default=math.inf)
            if time >= now:
                return
            taken = [each for each in self.news if each[0] == time]
            self.news = [each for each in self.news if each[0] > time]
            for _, _, job in (each for each in taken if each[1] == "ended"):
                self.known.add(job)
                if job in self.ends:
                    self.ends[job] = max(time, self.begun[job] + job.runtime)
            for job in [each for each, end in self.ends.items() if end <= time]:
                self.ends[job] = self.expected(job, time)
                if self.ends[job] <= time:
                    del self.ends[job]
            self.waiting += [job for _, what, job in taken if what == "came"]
            self.start_some(time)

    def limit(self, job: SlowJob) -> float:
        return job.requested if job.requested < math.inf else job.planned

    def expected(self, job: SlowJob, now: float) -> float:
        """When a job ends that was likely to end now."""
        if job in self.known or not job.start <= now:
            return now
        seconds = max(2 * (now - job.start), 1.1 * (now - self.begun[job]), 60)
        return max(now, self.begun[job] + min(self.limit(job), seconds))

    def start_some(self, now: float) -> None:
        holds = [(self.begun[job] + self.limit(job), job.cpus) for job in self.ends]
        moment = Moment(now, self.processors, [], [], holds, {})
        head, shadow, extra = None, math.inf, 0
        for job in list(self.waiting):
            fits = job.cpus <= moment.free
            if head is None and not fits:
                head = job
                self.take_turn(job, now)
                later = [end for end, _ in holds if moment.free_at(end) >= job.cpus]
                shadow = min(later, default=math.inf)
                extra = moment.free_at(shadow) - job.cpus if shadow < math.inf else 0
                shadow = max(shadow, now + 1)
            elif fits and head is not None and now + self.limit(job) > shadow:
                fits = job.cpus <= extra
                extra -= job.cpus if fits else 0
            if fits:
                self.take_turn(job, now)
                self.longest = max(self.longest, now - job.submit)
                self.waiting.remove(job)
                self.begun[job] = now
                seconds = job.runtime if job in self.known else min(self.limit(job), job.predicted)
                self.ends[job] = now + seconds
                holds.append((now + self.limit(job), job.cpus))

    def next_turn(self, line: Sequence[SlowJob]) -> float:
        """When one of these jobs, in order of arrival, may be due whose turn has not come."""
        for job in line:
            if job not in self.dues:
                time = min([*(each[0] for each in self.news), *self.ends.values()])
                return math.floor(max(time, job.submit + self.patience * self.longest)) + 1
        return math.inf

    def take_turn(self, job: SlowJob, now: float) -> None:
        if job not in self.dues:
            ahead = self.waiting[:-1]
            work = sum(each.cpus * min(self.limit(each), each.predicted) for each in ahead)
            waits = [self.longest, now - self.waiting[0].submit]
            longest = max(*waits, now - self.waiting[-1].submit + work / self.processors)
            due = math.floor(max(now, job.submit + self.patience * longest)) + 1
            self.dues[job] = due, max(due, job.submit + self.bound * longest)


def value(text: str, job: SlowJob, now: float, probe: float = 1.0) -> float:
    """An expression over job fields, by Python itself; what is not a number comes last."""
    fields = dict.fromkeys(("predicted", "q10", "q25", "q50", "q75", "q90"), job.predicted)
    fields |= {"submit": job.submit, "cpus": job.cpus, "requested": job.requested}
    fields |= {"now": now, "wait": now - job.submit, "probe": probe}
    fields["urgency"] = 1.0 / max(job.predicted, 10.0)
    functions = {"min": min, "max": max, "sqrt": math.sqrt, "abs": abs}
    result = eval(text, {"__builtins__": {}}, fields | functions)
    return math.inf if math.isnan(result) else result


def corrected(name: str, job: SlowJob) -> float:
    """The next estimate of a job that has run as long as the one it has."""
    current = job.estimate
    wanted = {
        "requested": job.requested,
        "incremental": current + INCREMENTS[min(job.corrections, len(INCREMENTS) - 1)],
        "incremental(reading=absolute)": (
            job.planned + INCREMENTS[job.corrections]
            if job.corrections < len(INCREMENTS)
            else current + INCREMENTS[-1]
        ),
        "doubling": 2 * current,
    }[name]
    allowed = min(wanted, job.requested)
    return allowed if current < allowed < math.inf else max(2 * current, 1.0)


@dataclass
class SlowSimulation:
    """The order of things: who waits, who runs, and what happens in one second."""

    processors: int
    rules: Rules
    correction: str
    predictsim: bool
    waiting: list[SlowJob] = field(default_factory=list)
    running: list[SlowJob] = field(default_factory=list)
    plan: dict[SlowJob, float] = field(default_factory=dict)
    easy: SlowEasy | None = None
    most_in_use: int = 0
    room_came: bool = True
    jobs: Sequence[SlowJob] = ()

    def run(self, jobs: Sequence[SlowJob]) -> None:
        """Fill in what becomes of the jobs, which are in order of submission."""
        self.jobs = jobs
        if self.rules.shares is not None:
            self.easy = SlowEasy(self.processors, *self.rules.shares)
        coming = list(jobs)
        now = -math.inf
        while coming or self.running:
            due_times = self.due_times(now)
            now = min(
                [
                    *(job.submit for job in coming[:1]),
                    *(min(job.end, job.expected_end) for job in self.running),
                    *due_times,
                ]
            )
            falls_due = now in due_times
            arrived = [job for job in coming if job.submit == now]
            coming = coming[len(arrived) :]
            if self.predictsim:
                self.correct(now)
                for job in arrived:
                    self.submit(job)
                    self.schedule(now)
                while any(job.end == now for job in self.running):
                    self.end(next(job for job in self.running if job.end == now), now)
                    self.schedule(now)
                if falls_due:
                    self.schedule(now)
            else:
                ended = [job for job in self.running if job.end == now]
                for job in ended:
                    self.end(job, now)
                self.correct(now)
                for job in arrived:
                    self.submit(job)
                if arrived or ended or falls_due:
                    self.schedule(now)

    def submit(self, job: SlowJob) -> None:
        job.planned = value(self.rules.plan, job, job.submit)
        job.likely = value("q50", job, job.submit)
        self.waiting.append(job)
        if self.easy is not None:
            self.easy.news.append((job.submit, "came", job))

    def end(self, job: SlowJob, now: float) -> None:
        self.running.remove(job)
        self.room_came = True
        if self.easy is not None:
            self.easy.news.append((now, "ended", job))

    def correct(self, now: float) -> None:
        for job in self.running:
            while job.expected_end <= now < job.end:
                job.estimate = corrected(self.correction, job)
                job.corrections += 1

    def schedule(self, now: float) -> None:
        if not self.waiting:
            return
        seen = [job for job in self.running if not self.predictsim or job.expected_end > now]
        aged = [job for job in self.waiting if now - job.submit >= self.rules.age_limit]
        coming: tuple[SlowJob | None, float] = (None, math.inf)
        if self.easy is not None:
            self.easy.settle(now)
            aged, coming = self.by_due_time(self.easy.dues, now)
        pilots = {job: self.probe(job, seen, aged) for job in self.waiting}
        candidates = self.rules.candidates or self.rules.queue

        def in_order_of(text: str) -> list[SlowJob]:
            others = [job for job in self.waiting if job not in aged]
            return aged + sorted(others, key=lambda job: value(text, job, now, pilots[job]))

        moment = Moment(
            now,
            self.processors,
            in_order_of(self.rules.queue),
            in_order_of(candidates),
            [(job.expected_end, job.cpus) for job in seen],
            self.plan,
            aged,
            coming,
            self.room_came,
            sum(job.cpus for job in self.running if job.went_first),
        )
        self.room_came = False
        for job in self.rules.one_pass(moment):
            job.backfilled = job is not self.waiting[0]
            self.waiting.remove(job)
            job.start = now
            job.went_first = job in aged
            job.estimate = job.planned
            self.running.append(job)
        self.most_in_use = max(self.most_in_use, sum(job.cpus for job in self.running))

    def by_due_time(
        self, dues: dict[SlowJob, tuple[float, float]], now: float
    ) -> tuple[list[SlowJob], tuple[SlowJob | None, float]]:
        """Who is due, and who is next, with the latest start of that one."""
        known = [job for job in self.waiting if job in dues]
        known.sort(key=lambda job: (dues[job][0], job.number))
        due = [job for job in known if dues[job][0] <= now]
        for job in due:
            job.due = dues[job][0]
        if len(due) == len(known):
            return due, (None, math.inf)
        return due, (known[len(due)], dues[known[len(due)]][1])

    def due_times(self, now: float) -> list[float]:
        """When jobs that wait are due, or may be, as far as that is known and still to come."""
        if self.easy is None or not self.waiting:
            return []
        times = [self.easy.dues[job][0] for job in self.waiting if job in self.easy.dues]
        times.append(self.easy.next_turn(self.waiting))
        return [time for time in times if now < time < math.inf]

    def probe(self, job: SlowJob, running: list[SlowJob], aged: list[SlowJob]) -> int:
        """How many waiting jobs it would inform: all alike, if none of them runs or is older."""
        alike = [other for other in self.waiting if other.kind == job.kind]
        if alike[0] is not job or job in aged or any(r.kind == job.kind for r in running):
            return 1
        return len(alike)
