"""The cost of synchronisation: the published maxima, closed forms, drawn speeds, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.histories import MarketHistory
from foresail.distributions.basic import Point, Uniform
from foresail.model.errors import InputError, UnknownNameError
from foresail_studies.synchronization.models import (
    COMPARED,
    BarrierModel,
    BarrierProgram,
    at_least,
    costs,
    drawn_costs,
    flexible,
    measured_speeds,
)
from foresail_studies.synchronization.named import model_of

ALL = np.arange(1, 65)
EVEN = np.arange(2, 65, 2)


def found(model, workers=ALL, setting=None):
    return costs(model, setting or BarrierProgram(), workers)


MAXIMA = [
    (COMPARED["on demand"], ALL, 4.776, 10, 2.094, 3.089, 6, 1700.0),
    (BarrierModel(), ALL, 0.827, 10, 1.209, 2.473, 1, 9700.0),
    (BarrierModel(replicas="1"), ALL, 1.410, 10, None, 3.332, 3, 5700.0),
    (BarrierModel(replicas="2"), ALL, 1.843, 10, None, 4.238, 4, None),
    (BarrierModel(replicas="4"), ALL, 2.443, 10, None, 5.374, 5, 3300.0),
    (BarrierModel(replicas="8"), ALL, 3.120, 10, None, 6.102, 7, None),
    (BarrierModel(replicas="k"), ALL, 3.442, 13, 0.755, 6.021, 7, 2588.889),
    (BarrierModel(intervals=10), ALL, 0.938, None, None, 2.497, 1, 9070.0),
    (BarrierModel(intervals=100), ALL, 0.978, None, None, 2.500, 1, None),
    (BarrierModel(intervals=500), ALL, 0.983, None, None, 2.500, 1, None),
    (BarrierModel(dropped="1"), ALL, 1.386, None, None, 3.242, 4, None),
    (BarrierModel(dropped="2"), ALL, 1.766, None, None, 3.936, 6, None),
    (BarrierModel(dropped="4"), ALL, 2.196, None, None, 4.427, 9, 4321.6),
    (BarrierModel(dropped="k/2"), EVEN, 2.431, 18, 0.741, 4.359, 10, 4321.6),
    (flexible("k-1"), ALL, 3.340, 14, 0.419, 10.774, 8, 2724.889),
    (flexible("k/2"), EVEN, 2.993, 14, 0.468, 8.231, 8, 3117.6),
]
"""Model, numbers of workers, then the specification's table: largest speed-up, with how many
workers, at what cost; largest ratio, with how many; time with 8 workers. Half of an odd number of
workers is rounded down here, which the table leaves out."""


@pytest.mark.parametrize(
    ("model", "workers", "speedup", "fastest", "cost", "ratio", "best", "baseline"), MAXIMA
)
def test_published_maxima(model, workers, speedup, fastest, cost, ratio, best, baseline):
    """Every row of the specification's table."""
    told = found(model, workers)
    assert told.speedup.max() == pytest.approx(speedup, abs=1.1e-3)
    assert told.ratio.max() == pytest.approx(ratio, abs=1.1e-3)
    assert workers[np.argmax(told.ratio)] == best
    if fastest is not None:
        assert workers[np.argmax(told.speedup)] == fastest
    if cost is not None:
        assert told.cost[np.argmax(told.speedup)] == pytest.approx(cost, abs=1.1e-3)
    if baseline is not None:
        assert told.seconds[workers == 8] == pytest.approx([baseline], abs=0.05)


@pytest.mark.parametrize(
    ("workers", "ratios"),
    [
        (8, (10.774, 9.856, 9.034, 7.720)),
        (4, (8.381, 7.267, 6.388, 5.127)),
        (16, (6.784, 6.483, 6.164, 5.591)),
    ],
)
def test_hybrid_has_no_benefit(workers, ratios):
    """Flexible synchronisation with 0, 1, 2 and 4 backups: worth less with each."""
    for replicas, ratio in zip((0, 1, 2, 4), ratios, strict=True):
        told = found(flexible("k-1", str(replicas)), np.array([workers]))
        assert told.ratio == pytest.approx([ratio], abs=1.1e-3)


def test_published_comparisons():
    """The cross-overs that the thesis and the specification tell of."""
    transient, replicas = found(BarrierModel()), found(BarrierModel(replicas="k"))
    cheap = np.flatnonzero(transient.cost < 1.0)
    assert ALL[cheap].tolist() == list(range(1, 9))
    assert transient.cost[7:9] == pytest.approx([0.970, 1.089], abs=1e-3)
    whole, half = found(BarrierModel(dropped="0")), found(BarrierModel(dropped="k-1"))
    assert half.seconds == pytest.approx(whole.seconds)
    partial = found(BarrierModel(dropped="k/2"))
    overtakes = (partial.ratio > replicas.ratio)[EVEN - 1]
    assert EVEN[np.argmax(overtakes)] == 16
    assert (partial.ratio[15], replicas.ratio[15]) == pytest.approx((3.639, 3.559), abs=1e-3)
    fsp = found(flexible("k-1")).ratio
    others = [found(COMPARED[name]).ratio for name in ("on demand", "transient", "partial")]
    assert all((fsp >= each - 1e-9)[1:].all() for each in [*others, replicas.ratio])
    demand = found(COMPARED["on demand"]).ratio
    worst = (transient.ratio < np.minimum(demand, partial.ratio)) & (
        transient.ratio < np.minimum(fsp, replicas.ratio)
    )
    assert ALL[worst][:37].tolist() == list(range(3, 40))


def double_sum(setting, k, dropped, left):
    """Equations 4.10 and 4.11 as they are printed, with two sums."""
    w, b, n = setting.operations, setting.barriers, setting.network_seconds
    powers = sum((b - i + 1) * left ** (i - 2) for i in range(2, b + 1))
    last = sum(left ** (i - 1) for i in range(1, b + 1))
    return w * (1 + k) / (b * k * (1 + dropped)) * powers + w * (1 + k) / (b * k) * last + n * b * k


@given(st.integers(1, 40), st.integers(0, 39), st.integers(1, 60))
def test_recurrence_is_the_printed_sums(k, dropped, barriers):
    """The recurrence gives what the double sums of the thesis give."""
    dropped = min(dropped, k - 1)
    setting = BarrierProgram(operations=1_000.0, barriers=barriers)
    whole, part = BarrierModel(dropped=str(dropped)), flexible(str(dropped))
    for model, left in ((whole, dropped / k), (part, dropped / (2 * k))):
        told = found(model, np.array([k]), setting)
        assert told.seconds[0] == pytest.approx(double_sum(setting, k, dropped, left))


def slow_run(drawn, setting, k, release, last, dropped, keeps):
    """One run of a program with barriers, told worker by worker."""
    share = setting.operations / setting.barriers
    work, busy = share, 0.0
    for interval in range(setting.barriers):
        speeds = sorted(drawn[interval])
        rank = last if interval == setting.barriers - 1 else release
        took = work / k / speeds[rank - 1]
        busy += took
        left = 0.0
        for speed in speeds[rank - 1 - dropped : rank - 1]:
            left += work / k - (speed * took if keeps else 0.0)
        work = share + left
    return busy + setting.network_seconds * setting.barriers * k


class Recorded:
    """Speeds that were drawn before, for a run that is told slowly as well."""

    def __init__(self, values):
        self.values = values

    def sample(self, random, size):
        assert size == self.values.size
        return self.values.ravel()


@pytest.mark.parametrize(
    ("model", "release", "last", "dropped", "keeps"),
    [
        (BarrierModel(), 1, 1, 0, False),
        (BarrierModel(replicas="2"), 3, 3, 0, False),
        (BarrierModel(dropped="2"), 3, 1, 2, False),
        (flexible("3"), 4, 1, 3, True),
        (flexible("2", "1"), 4, 2, 2, True),
    ],
)
def test_drawn_runs_against_slow_ones(model, release, last, dropped, keeps):
    """Drawn times are those of a run told worker by worker."""
    setting, k = BarrierProgram(operations=60.0, barriers=7), 5
    rented = int(model.rules(np.array([k])).rented[0])
    values = np.random.default_rng(4).uniform(0.1, 1.0, (2, setting.barriers, rented))
    random = np.random.default_rng()
    drawn = drawn_costs(model, setting, np.array([k]), Recorded(values), 2, random)
    expected = [slow_run(run, setting, k, release, last, dropped, keeps) for run in values]
    assert drawn.seconds[0] == pytest.approx(np.mean(expected))


def test_staleness_against_slow_run():
    """Workers run apart by as many intervals as they may, and no further."""
    setting, k, staleness = BarrierProgram(operations=60.0, barriers=9, network_seconds=0.0), 4, 3
    values = np.random.default_rng(6).uniform(0.1, 1.0, (2, setting.barriers, k))
    model = BarrierModel(intervals=staleness)
    random = np.random.default_rng()
    drawn = drawn_costs(model, setting, np.array([k]), Recorded(values), 2, random)
    expected = []
    for run in values:
        ends = np.zeros((setting.barriers + 1, k))
        for interval in range(setting.barriers):
            for worker in range(k):
                begin = ends[interval, worker]
                if interval >= staleness:
                    begin = max(begin, ends[interval - staleness + 1].max())
                took = setting.operations / setting.barriers / k / run[interval, worker]
                ends[interval + 1, worker] = begin + took
        expected.append(ends[-1].max())
    assert drawn.seconds[0] == pytest.approx(np.mean(expected))


def test_drawn_means_are_longer():
    """The mean of work over speed is more than work over the mean speed (section 11, item 12)."""
    speeds, workers = at_least(Uniform(0.0, 1.0), 0.05), np.array([8])
    random = np.random.default_rng(2)
    drawn = drawn_costs(BarrierModel(), BarrierProgram(), workers, speeds, 20, random)
    expected = costs(BarrierModel(), BarrierProgram(), workers)
    assert drawn.seconds[0] > 1.3 * expected.seconds[0]


def test_measured_speeds():
    """The share of each interval that a market was up, by hand."""
    market = MarketHistory(
        "m",
        "m",
        "z",
        np.array([0.0, 10.0, 15.0]),
        40.0,
        prices=np.array([0.5, 2.0, 0.5]),
        on_demand_per_hour=1.0,
    )
    found_speeds = measured_speeds(market, 10.0)
    assert found_speeds.values.tolist() == [0.5, 1.0]
    assert found_speeds.probabilities == pytest.approx([1 / 3, 2 / 3])
    assert at_least(found_speeds, 0.7).values.min() == 0.7
    for bad in (0.0, 41.0):
        with pytest.raises(InputError, match="interval"):
            measured_speeds(market, bad)


@pytest.mark.parametrize(
    ("text", "rented"),
    [
        ("4", [5, 8, 13]),
        ("k", [2, 8, 18]),
        ("k-2", [1, 6, 16]),
        ("k/2", [1, 6, 13]),
        (" k / 3 ", [1, 5, 12]),
    ],
)
def test_amounts(text, rented):
    """Numbers by the number of workers; rounded down, never below 0."""
    assert BarrierModel(replicas=text).rules(np.array([1, 4, 9])).rented.tolist() == rented


@pytest.mark.parametrize("text", ["", "q", "-1", "k+1", "k/0", "1.5"])
def test_no_amounts(text):
    """What is no number of workers is refused, naming the parameter."""
    with pytest.raises(InputError, match="dropped"):
        BarrierModel(dropped=text).rules(np.array([1]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("operations", 0.0),
        ("barriers", 0),
        ("barriers", 1_000_001),
        ("network_seconds", -0.1),
        ("transient_discount", 1.0),
        ("transient_discount", -0.1),
    ],
)
def test_impossible_settings(field, value):
    """A program that cannot be is refused, naming the field."""
    with pytest.raises(InputError) as error:
        BarrierProgram(**{field: value})
    assert error.value.field == field


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("on_demand", BarrierModel(transient=False)),
        ("replicas", BarrierModel(replicas="1")),
        ("replicas(count=k)", BarrierModel(replicas="k")),
        ("staleness", BarrierModel(intervals=10)),
        ("staleness(intervals=3)", BarrierModel(intervals=3)),
        ("partial", BarrierModel(dropped="k/2")),
        ("fsp", flexible("k-1")),
        ("hybrid", flexible("k-1", "1")),
        ("hybrid(dropped=2, replicas=k)", flexible("2", "k")),
    ],
)
def test_names(text, model):
    """Models by their short forms."""
    assert model_of(text) == model


def test_impossible_models_and_runs():
    """Unknown models and parameters, all workers dropped, too few runs, speeds of nothing."""
    with pytest.raises(UnknownNameError, match="fsp"):
        model_of("fps")
    with pytest.raises(UnknownNameError, match="dropped"):
        model_of("fsp(droped=1)")
    with pytest.raises(InputError, match="intervals"):
        model_of("staleness(intervals=0)")
    with pytest.raises(InputError, match="intervals"):
        model_of("staleness(intervals=k)")
    with pytest.raises(InputError, match="all workers are dropped"):
        found(BarrierModel(dropped="k/1"))
    with pytest.raises(InputError, match="lowest"):
        at_least(Uniform(0.0, 1.0), 0.0)
    random = np.random.default_rng(1)
    with pytest.raises(InputError, match="runs"):
        drawn_costs(BarrierModel(), BarrierProgram(), np.array([2]), Point(1.0), 1, random)
