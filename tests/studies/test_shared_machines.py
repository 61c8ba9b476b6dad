"""Shared machines against the obvious way, and what must hold on any of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, Start
from foresail.model.errors import InputError
from foresail.model.event import REQUEUED, Allocation, Ended
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.simulator.conditions import IDEAL, ClusterConditions
from foresail.simulator.simulated_cluster import SimulatedCluster
from foresail_studies.executions._real_use import RealUse
from foresail_studies.executions.kernels import shared_machines as kernel
from foresail_studies.executions.shared_nodes import SharedMachines
from foresail_studies.use_record import EVICTION_SHARE
from long_series import of_a_series
from slow_machines import SlowMachines, filled


@dataclass(frozen=True)
class Case:
    """Machines (cpus, memory), and jobs: start, machine per task, request, series per task.

    ``stages`` tells of which job and which stage of it each of these is; without, each is a job.
    """

    machines: list
    jobs: list
    stops: list
    stages: list | None = None

    @property
    def cluster(self):
        nodes = tuple(Node(name, Resources(*amounts)) for name, amounts in self.named())
        total = sum((node.total for node in nodes), Resources())
        return Cluster((Partition("all", total, nodes),))

    def named(self):
        return [(f"m{i}", amounts) for i, amounts in enumerate(self.machines)]

    @property
    def units(self):
        """Job and stage by the number of what starts."""
        return self.stages or [(str(i), "") for i in range(len(self.jobs))]

    def allocation(self, number, attempt):
        job_id, stage = self.units[number]
        tasks = tuple(range(len(self.jobs[number][1]))) if stage else ()
        return Allocation(job_id, stage, tasks, attempt)

    def job(self, job_id):
        stages = tuple(
            Stage(len(on), Resources(*request), stage or "main")
            for (each, stage), (_, on, request, *_) in zip(self.units, self.jobs, strict=True)
            if each == job_id
        )
        value = DeadlineValue(1e9) if self.is_due(job_id) else None
        return Job(job_id, 0.0, stages, value=value)

    def is_due(self, job_id):
        """As its first stage has it."""
        return self.jobs[[each for each, _ in self.units].index(job_id)][3]

    def series(self):
        return {unit: series for unit, (*_, series) in zip(self.units, self.jobs, strict=True)}

    def compiled(self, told, conditions=IDEAL, **options):
        segments, bounds = [], {}
        for unit, series in self.series().items():
            ends = [len(segments)]
            for task in series:
                segments += task
                ends.append(len(segments))
            bounds[unit] = np.array(ends)
        use = RealUse(np.array(segments, np.float64).reshape(-1, 3), bounds)
        return SharedMachines(use, self.job, self.cluster, conditions, hears_news=told, **options)

    def slow(self):
        capacities = {
            name: (cpus, memory * EVICTION_SHARE) for name, (cpus, memory) in self.named()
        }
        requests = {
            unit: (*request, int(self.is_due(unit[0])))
            for unit, (_, _, request, *_) in zip(self.units, self.jobs, strict=True)
        }
        return SlowMachines(capacities, self.series(), requests)

    def run(self, model):
        """Every job, and what is evicted again one second later; the ends that were reported."""
        cluster = SimulatedCluster(self.cluster, model, self.job)
        todo = [(float(start), i, 1) for i, (start, *_) in enumerate(self.jobs)]
        stops = sorted(self.stops)
        ends = []
        while True:
            coming = [time for time, *_ in [*todo, *stops]]
            now = min([cluster.next_seconds, *coming])
            if now == math.inf:
                return ends
            for event in cluster.reports(now):
                assert isinstance(event, Ended)
                outcome = event.outcome
                ends.append((now, outcome.allocation, outcome.ended_because))
                if outcome.ended_because in REQUEUED and outcome.attempt < 4:
                    number = self.units.index((outcome.job_id, outcome.stage))
                    todo.append((now + 1.0, number, outcome.attempt + 1))
            for time, number in [each for each in stops if each[0] <= now]:
                stops.remove((time, number))
                for attempt in range(1, 5):
                    cluster.stop(self.allocation(number, attempt), now)
            for time, number, attempt in sorted(each for each in todo if each[0] <= now):
                todo.remove((time, number, attempt))
                names = [f"m{(m + attempt) % len(self.machines)}" for m in self.jobs[number][1]]
                nodes = tuple((name, names.count(name)) for name in dict.fromkeys(names))
                placement = Placement((("all", len(names)),), nodes)
                job_id, stage, tasks, _ = self.allocation(number, attempt)
                cluster.carry_out(Start(job_id, placement, attempt, stage, tasks), now)


quarters = st.integers(1, 16).map(lambda n: n / 4)
segment = st.tuples(st.integers(1, 12), st.one_of(st.just(0.0), quarters), st.integers(0, 40))


@st.composite
def cases(draw):
    """Few machines, so that tasks meet; cpus that three tasks overdraw; memory for two or three."""
    machines = draw(
        st.lists(
            st.tuples(st.sampled_from([2.0, 3.0, 4.0]), st.just(100.0)), min_size=1, max_size=3
        )
    )
    jobs = []
    for _ in range(draw(st.integers(1, 6))):
        on = draw(st.lists(st.integers(0, len(machines) - 1), min_size=1, max_size=3))
        request = draw(st.tuples(quarters, st.integers(0, 40).map(float)))
        series = [draw(st.lists(segment, min_size=1, max_size=4)) for _ in on]
        jobs.append((draw(st.integers(0, 12)), on, request, draw(st.booleans()), series))
    stops = st.tuples(st.integers(1, 30).map(float), st.integers(0, len(jobs) - 1))
    stages = [(str(draw(st.integers(0, i))), f"s{i}") for i in range(len(jobs))]
    in_stages = st.sampled_from([None, stages])
    return Case(machines, jobs, draw(st.lists(stops, max_size=2)), draw(in_stages))


def told_by(case, conditions=IDEAL):
    """All news of a run as the slow model has them, and the ends."""
    rows = []
    model = case.compiled(rows.append, conditions)
    ends = case.run(model)
    news = [
        (
            row[kernel.NEWS_TIME],
            kernel.KIND_NAMES[int(row[kernel.NEWS_KIND])],
            model.task_names[int(row[kernel.NEWS_TASK])],
            model.machine_names[int(row[kernel.NEWS_MACHINE])],
            *row[kernel.NEWS_DEMAND :].tolist(),
        )
        for row in (np.concatenate(rows) if rows else ())
    ]
    return news, ends, model


@given(cases())
@settings(deadline=None, max_examples=of_a_series(300, short=75))
def test_it_is_the_obvious_way_event_for_event(case):
    """Times, order, kinds and machines to the last bit; shares of cpus but for rounding."""
    slow = case.slow()
    slow_ends = case.run(slow)
    news, ends, _ = told_by(case)
    assert ends == slow_ends
    assert [row[:4] for row in news] == [row[:4] for row in slow.news]
    for row, slow_row in zip(news, slow.news, strict=True):
        assert row[4:] == pytest.approx(slow_row[4:], rel=1e-9, abs=1e-9)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_capacity_and_work(case):
    """After every instant cpus and memory are enough; what completes has done all of its work."""
    news, ends, _ = told_by(case)
    now = {}
    work = {}
    capacities = dict(case.named())
    for at, (time, kind, task, machine, _, allocated, memory) in enumerate(news):
        if task in now:
            since, _, rate, _ = now[task]
            work[task] = work.get(task, 0.0) + (time - since) * rate
        if kind in ("completed", "evicted"):
            now.pop(task, None)
            if kind == "completed":
                unit, number = (task[0].job_id, task[0].stage), task[1]
                whole = sum(seconds * cpus for seconds, cpus, _ in case.series()[unit][number])
                assert work.get(task, 0.0) == pytest.approx(whole, abs=1e-4)
        else:
            now[task] = (time, machine, allocated, memory)
        gone = {end[1] for end in ends if end[0] <= time}
        if at + 1 == len(news) or news[at + 1][0] > time:
            held = [each for name, each in now.items() if name[0] not in gone]
            for name, (cpus, bytes_) in capacities.items():
                assert sum(each[2] for each in held if each[1] == name) <= cpus + 1e-9
                assert sum(each[3] for each in held if each[1] == name) < bytes_ * EVICTION_SHARE


def alone(*jobs, machines=((4.0, 100.0),)):
    """A case of jobs that all go to the first machine: (start, request, series), not SLO."""
    return Case(
        list(machines),
        [(start, [-1], request, False, [series]) for start, request, series in jobs],
        [],
    )


def shares_at_start(cpus, *wanting):
    """What tasks are given that all start on a machine at once: (request, demand) each."""
    jobs = [(0, (request, 10.0), [(8, demand, 1)]) for request, demand in wanting]
    news, _, _ = told_by(alone(*jobs, machines=[(cpus, 100.0)]))
    given = {}
    for time, _, (allocation, _), *_, allocated, _ in news:
        if time == 0.0:
            given[int(allocation.job_id)] = allocated
    return [given[i] for i in range(len(wanting))]


@pytest.mark.parametrize(
    ("cpus", "wanting", "shares"),
    [
        (4.0, [(1, 3), (1, 1), (2, 0.5)], [2.5, 1.0, 0.5]),
        (3.0, [(1, 3), (1, 3), (1, 0.3)], [1.35, 1.35, 0.3]),
        (4.0, [(1, 0.5), (2, 2), (1, 3)], [0.5, 2.0, 1.5]),
        (2.0, [(1, 2), (3, 2)], [0.5, 1.5]),
    ],
)
def test_water_filling(cpus, wanting, shares):
    """Golden G9 of the spec, by the kernel and by the obvious way."""
    assert shares_at_start(cpus, *wanting) == pytest.approx(shares)
    slow = filled(Fraction(cpus), [(Fraction(r), Fraction(d)) for r, d in wanting])
    assert [float(each) for each in slow] == pytest.approx(shares)


def test_a_throttled_series_stretches():
    """Golden G15: 15 s of 4 cpus take 30 s with 2; with 4 for 5 s first, 5 + 20 s."""
    both = [(0, (1.0, 10.0), [(15, 4.0, 1)]), (0, (1.0, 10.0), [(60, 4.0, 1)])]
    assert told_by(alone(*both))[1][0][0] == 30.0
    later = [both[0], (5, *both[1][1:])]
    assert told_by(alone(*later))[1][0][0] == 25.0


def test_what_is_throttled_is_as_fast_as_before_once_there_is_room():
    """Half pace until the other is done at 10: 5 of 15 s are done, the other 10 at full pace."""
    jobs = [(0, (1.0, 10.0), [(15, 4.0, 1)]), (0, (1.0, 10.0), [(5, 4.0, 1)])]
    news, ends, model = told_by(alone(*jobs))
    assert [end[0] for end in ends] == [10.0, 20.0]
    assert [row[:2] for row in news if row[1] == "released"] == [(10.0, "released")]
    assert model.counters["cpu_throttles"] == 2


def test_who_is_evicted():
    """Golden G26: best effort first, those most above their request first; until below."""
    amounts = [(5, 1, True), (3, 2, False), (4, 4, False), (6, 5, False), (3, 2.5, False)]
    jobs = [(0, [-1], (1.0, asked), slo, [[(9, 0.1, used)]]) for used, asked, slo in amounts]
    news, _, model = told_by(Case([(4.0, 14.0 / EVICTION_SHARE)], jobs, []))
    evicted = [row[2][0].job_id for row in news if row[1] == "evicted" and row[0] == 0.0]
    assert evicted == ["3", "1"]
    assert model.counters["memory_evictions"] >= 2


def test_what_is_lost_says_what_it_has_used():
    """Evicted after 10 s of 1.5 cpus with 8 bytes: that work and that memory, not the whole."""
    jobs = [(0, (1.0, 2.0), [(30, 1.5, 8)]), (10, (1.0, 9.0), [(30, 1.0, 9)])]
    case = alone(*jobs, machines=[(4.0, 14.0 / EVICTION_SHARE)])
    model = case.compiled(None)
    cluster = SimulatedCluster(case.cluster, model, case.job)
    for now, job_id in ((0.0, "0"), (10.0, "1")):
        cluster.reports(now)
        cluster.carry_out(Start(job_id, Placement((("all", 1),), (("m0", 1),))), now)
    outcomes = [event.outcome for event in cluster.reports(10.0)]
    used = {each.job_id: dict(each.used) for each in outcomes if each.ended_because in REQUEUED}
    assert used == {"0": pytest.approx({"cpu_time": 15.0, "memory_max": 8.0})}


def test_delay_and_noise_are_of_the_whole_allocation():
    """What is delayed uses nothing at first; noise stretches everything alike."""
    job = (0, (1.0, 10.0), [(10, 2.0, 1), (20, 1.0, 2)])
    conditions = ClusterConditions(start_delay_seconds=5.0, runtime_noise=0.3, seed=3)
    news, ends, _ = told_by(alone(job), conditions)
    delay, factor = conditions.delay_and_runtime(Allocation("0"), 1.0)
    times = [delay, delay + 10.0 * factor, delay + 30.0 * factor]
    assert [row[0] for row in news] == pytest.approx(times)
    assert ends[0][0] == pytest.approx(times[-1])


def test_a_machine_that_shrinks_is_relieved():
    """Two tasks of 2 cpus fit 4 and not 2; one of them does not fit 10 bytes with the other."""
    jobs = [(0, (1.0, 5.0), [(10, 2.0, 6)]), (0, (1.0, 5.0), [(10, 2.0, 6)])]
    case = alone(*jobs)
    model = case.compiled(None)
    for job_id in ("0", "1"):
        placement = Placement((("all", 1),), (("m0", 1),))
        model.started(Allocation(job_id), placement, 0.0)
    assert model.advanced(0.0) == ()
    for amounts, evictions, throttles in (((2.0, 100.0), 0, 2), ((2.0, 10.0), 1, 2)):
        cluster = alone(*jobs, machines=[amounts]).cluster
        model.nodes_changed(cluster, 4.0)
        assert model.next_seconds == 4.0
        model.advanced(4.0)
        assert model.counters == {"cpu_throttles": throttles, "memory_evictions": evictions}


def test_a_place_without_nodes_is_refused():
    """Of a scheduler that only says which partition, it is not known what shares a node."""
    model = alone((0, (1.0, 5.0), [(10, 2.0, 6)])).compiled(None)
    with pytest.raises(InputError, match="this scheduler names none"):
        model.started(Allocation("0"), Placement.whole("all", 1), 0.0)


def test_stages_that_start_together_are_refused():
    """Which of them runs when is not known of a scheduler that starts jobs whole."""
    jobs = [(0, [0], (1.0, 5.0), False, [[(10, 2.0, 6)]])] * 2
    model = Case([(4.0, 100.0)], jobs, [], [("a", "map"), ("a", "reduce")]).compiled(None)
    with pytest.raises(InputError, match="job a has several stages") as caught:
        model.started(Allocation("a"), Placement((("all", 2),), (("m0", 2),)), 0.0)
    assert caught.value.value == "map, reduce"


def test_a_task_that_is_stopped_leaves_when_its_allocation_ends():
    """One that has completed before left then."""
    stopped, done = Allocation("stopped"), Allocation("done")
    known = SimpleNamespace(task_names=[(stopped, 0), (done, 0)], machine_names=["n"])
    news = np.zeros((3, kernel.NEWS_COLUMNS))
    news[:, kernel.NEWS_TIME] = 1.0, 1.0, 4.0
    news[:, kernel.NEWS_KIND] = [
        kernel.KIND_NAMES.index(name) for name in ("changed", "changed", "completed")
    ]
    news[:, kernel.NEWS_TASK] = 0, 1, 1
    use = SharedMachines.use_over_time(known, [news], {stopped: 7.0, done: 9.0})
    assert use.select("job_id", "what", "seconds").rows() == [
        ("stopped", "changed", 1.0),
        ("done", "changed", 1.0),
        ("done", "completed", 4.0),
        ("stopped", "left", 7.0),
    ]
