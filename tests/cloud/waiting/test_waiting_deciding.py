"""One decision: what each rule wants, and the simulation decides the same."""

import math
from dataclasses import dataclass
from enum import IntEnum

import numba
import numpy as np
import pytest
from drawn_traces import proportional_family
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs
from foresail.cloud.waiting.kernels import waiting_choice
from foresail.cloud.waiting.kernels.waiting import FIXED, RENTED
from foresail.cloud.waiting.kernels.waiting_choice import DelayCosts
from foresail.cloud.waiting.simulating import (
    Beliefs,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical

waiting_gain = numba.njit(lambda *given: waiting_choice.waiting_gain(*given))


class ArrivalChoice(IntEnum):
    """Places that a job can go to, as the kernel numbers them."""

    START = waiting_choice.START
    WAIT = waiting_choice.WAIT
    RENT = waiting_choice.RENT
    SPECULATE = waiting_choice.SPECULATE


@dataclass(frozen=True)
class ArrivalCase:
    """Facts about a job when it is decided on; money is per hour."""

    fits: bool
    rent_per_hour: float
    delay_per_hour: float = 0.0
    tried: bool = False


BUSY = ArrivalCase(fits=False, rent_per_hour=1.0)
FREE = ArrivalCase(fits=True, rent_per_hour=1.0)
HOUR = 3600.0
TRYING = WaitingPolicy(900.0, speculation_seconds=60.0)


def decide(policy, case, runtime, wait):
    """The choice for beliefs that are distributions: a median runtime, twenty quantiles of waits.

    A policy that weighs costs takes the mean runtime, which what is paid grows with.
    """
    believed = runtime.mean() if policy.weighing else runtime.quantile(0.5)
    waits = np.array([wait.quantile(float(level)) for level in (np.arange(20) + 0.5) / 20])
    choose = waiting_choice.choose_again if case.tried else waiting_choice.choose
    costs = DelayCosts(case.rent_per_hour, 0.0, case.delay_per_hour)
    return ArrivalChoice(choose(policy.rules, costs, case.fits, float(believed), waits))


@pytest.mark.parametrize(
    ("policy", "case", "runtime", "wait", "choice"),
    [
        (waiting_policy("all-jobs-wait"), BUSY, 10.0, 1e9, ArrivalChoice.WAIT),
        (waiting_policy("all-jobs-wait"), FREE, 10.0, 0.0, ArrivalChoice.START),
        (waiting_policy("no-jobs-wait"), BUSY, 10.0, 0.0, ArrivalChoice.RENT),
        (waiting_policy("compound", 900.0, 60.0), BUSY, 10.0, 0.0, ArrivalChoice.RENT),
        (waiting_policy("compound", 900.0, 60.0), FREE, 10.0, 0.0, ArrivalChoice.START),
        (waiting_policy("compound", 900.0, 60.0), BUSY, 60.0, 900.0, ArrivalChoice.WAIT),
        (waiting_policy("compound", 900.0, 60.0), BUSY, 60.0, 901.0, ArrivalChoice.RENT),
        (waiting_policy("speculative", 900.0, 60.0), BUSY, 1e6, 1e6, ArrivalChoice.SPECULATE),
        (
            waiting_policy("speculative", 900.0, 60.0),
            ArrivalCase(False, 1.0, tried=True),
            1e6,
            1e6,
            ArrivalChoice.RENT,
        ),
        (TRYING, BUSY, 69.0, 0.0, ArrivalChoice.SPECULATE),
        (WaitingPolicy(900.0, 60.0, conserving=False), FREE, 10.0, 0.0, ArrivalChoice.RENT),
        (WaitingPolicy(900.0, 60.0, conserving=False), FREE, 99.0, 0.0, ArrivalChoice.START),
    ],
)  # fmt: skip
def test_thresholds(policy, case, runtime, wait, choice):
    """In order: a free machine, a short job, a trial, a long wait, the queue."""
    assert decide(policy, case, Point(runtime), Point(wait)) is choice


def test_what_waiting_is_worth():
    """An hour on a machine for 1 saves 1; a delay worth 2 an hour takes that after half an hour."""
    delay_costs = DelayCosts(1.0, 0.0, 2.0)
    assert waiting_gain(delay_costs, HOUR, np.array([0.0]), math.inf) == pytest.approx(1.0)
    assert waiting_gain(delay_costs, HOUR, np.array([HOUR / 2]), math.inf) == pytest.approx(0.0)
    # Half of the time it waits in vain: two hours, and then rents.
    mixed = np.array([0.0, 9 * HOUR])
    assert waiting_gain(delay_costs, HOUR, mixed, 2 * HOUR) == pytest.approx(0.5 - 2.0)
    power = DelayCosts(1.0, 0.25, 2.0)
    assert waiting_gain(power, HOUR, np.array([0.0]), math.inf) == pytest.approx(0.75)


def test_who_weighs_looks_at_the_whole_distribution():
    """Of two waits with one mean, the one that may be in vain is not worth it."""
    policy = waiting_policy("weighing", 4 * HOUR)
    case = ArrivalCase(False, 1.0, delay_per_hour=0.6)
    sure, unsure = Point(3 * HOUR), Empirical([0.0, 6 * HOUR])
    runtime = Point(2.2 * HOUR)
    assert decide(policy, case, runtime, sure) is ArrivalChoice.WAIT
    assert decide(policy, case, runtime, unsure) is ArrivalChoice.RENT
    assert (
        decide(waiting_policy("short-waits-wait", 4 * HOUR), case, runtime, unsure)
        is ArrivalChoice.WAIT
    )


@given(st.floats(0.0, 5.0), st.floats(0.0, 5.0), st.floats(1.0, 1e5))
def test_a_dearer_delay_never_makes_a_job_wait(delay, more, latest):
    """Who rents goes on renting when his time becomes more valuable."""
    policy = waiting_policy("weighing", 86400.0)
    wait = Uniform(0.0, latest)
    chosen = [
        decide(policy, ArrivalCase(False, 1.0, delay_per_hour=value), Point(5000.0), wait)
        for value in (delay, delay + more)
    ]
    assert chosen != [ArrivalChoice.RENT, ArrivalChoice.WAIT]


def test_as_the_simulation_decides():
    """Busy machine, then jobs of many kinds: the simulation puts each where ``decide`` says."""
    random = np.random.default_rng(5)
    count = 200
    jobs = TraceJobs(
        np.concatenate(([0.0], np.full(count, 1.0))),
        np.concatenate(([1e7], random.exponential(1000.0, count))),
        np.ones(count + 1, dtype=np.int64),
    )
    estimates = np.concatenate(([1e7], random.exponential(1000.0, count)))
    waits = random.exponential(1000.0, count + 1)
    delays = random.exponential(0.05, count + 1)
    policy = WaitingPolicy(2000.0, 300.0, patience_seconds=5e6, weighing=True)
    family = proportional_family()
    found = simulate(jobs, FixedMachines(1, 1), family, policy, Beliefs(estimates, waits, delays))
    rent = family[0].price_per_hour
    chosen = [
        decide(
            policy,
            ArrivalCase(False, rent, delay_per_hour=float(delays[job])),
            Point(float(estimates[job])),
            Point(float(waits[job])),
        )
        for job in range(1, count + 1)
    ]
    at_once = (found.place == RENTED)[1:]
    assert found.place[0] == FIXED
    assert [choice is ArrivalChoice.RENT for choice in chosen] == at_once.tolist()
    assert 10 < at_once.sum() < count - 10
