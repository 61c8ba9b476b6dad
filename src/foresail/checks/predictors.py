"""The conformance suites of predictors and corrections."""

from __future__ import annotations

import math
import random
from typing import Any, Final

import numpy as np

from foresail.checks.rules import BrokenRuleError, Make, Rule, demand, require_of_entry
from foresail.distributions.basic import Point
from foresail.model.distribution import Distribution
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import Entry

_LEVELS: Final = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
_HISTORY: Final = 300
_ROUNDING: Final = 1e-6


def check_predictor(entry: Entry, parameters: Any = None) -> None:
    """Apply every rule that predictors must keep to a registered one; as ``require_of_entry``."""
    require_of_entry(entry, parameters, PREDICTOR_RULES)


def check_correction(entry: Entry, parameters: Any = None) -> None:
    """Apply every rule that corrections must keep to a registered one; as ``require_of_entry``."""
    require_of_entry(entry, parameters, CORRECTION_RULES)


def finite_belief(make: Make) -> None:
    """Every belief has a finite mean, not negative."""
    for belief in _beliefs(make):
        mean = belief.mean()
        demand(math.isfinite(mean) and mean >= 0, f"a mean of {mean}")


def monotone_quantiles(make: Make) -> None:
    """Quantiles rise with their level and are not negative."""
    for belief in _beliefs(make):
        quantiles = [belief.quantile(level) for level in _LEVELS]
        demand(quantiles == sorted(quantiles), f"quantiles {quantiles}")
        demand(quantiles[0] >= 0, f"a quantile of {quantiles[0]}")


def survival_falls(make: Make) -> None:
    """Survival falls from at most 1 to at least 0."""
    for belief in _beliefs(make):
        times = np.array([0.0, *(belief.quantile(level) for level in _LEVELS), 1e9])
        survival = belief.survival(times)
        demand(survival.shape == times.shape, f"of {times.size} values {survival.shape}")
        demand((np.diff(survival) <= _ROUNDING).all(), f"survival {survival.tolist()}")
        demand(survival.min() >= 0 and survival.max() <= 1, f"survival {survival.tolist()}")


def given_nothing(make: Make) -> None:
    """A belief given 0 elapsed seconds is itself."""
    for belief in _beliefs(make):
        same = belief.given(0.0)
        for level in _LEVELS:
            before, after = belief.quantile(level), same.quantile(level)
            demand(math.isclose(before, after), f"the {level:g} quantile {before} became {after}")


def given_elapsed(make: Make) -> None:
    """A belief given that the job has run for a while has no mass before that."""
    for belief in _beliefs(make):
        for elapsed in (1.0, belief.quantile(0.5), 2.0 * belief.quantile(0.99) + 1.0):
            later = belief.given(elapsed)
            shortest = later.quantile(0.001)
            demand(
                shortest >= elapsed - _ROUNDING * max(1.0, elapsed),
                f"given {elapsed:g} s its 0.001 quantile is {shortest:g} s",
            )
            demand(math.isfinite(later.mean()), f"given {elapsed:g} s its mean is {later.mean()}")


def strangers(make: Make) -> None:
    """Unseen users and missing fields are predicted, before any history and after it."""
    for predictor in (_revealed(make()), _trained(make)):
        for job in (_job("new", user="nobody before"), _bare_job("bare")):
            mean = predictor.predict(job, 9e6).mean()
            demand(math.isfinite(mean), f"a mean of {mean} for {job.job_id!r}")


def history_of_others(make: Make) -> None:
    """Outcomes of jobs it was never asked about (history of an earlier run) are taken."""
    predictor = _revealed(make())
    for number, (job, outcome) in enumerate(_history()):
        predictor.observe(job, outcome)
        if number > 20:
            break
    mean = predictor.predict(_job("new"), 9e6).mean()
    demand(math.isfinite(mean), f"a mean of {mean}")


def deterministic(make: Make) -> None:
    """Two fresh instances that learn the same believe the same."""
    for one, other in zip(_beliefs(make), _beliefs(make), strict=True):
        for level in _LEVELS:
            first, second = one.quantile(level), other.quantile(level)
            demand(first == second, f"the {level:g} quantile is {first} or {second}")


def input_unchanged(make: Make) -> None:
    """Jobs and outcomes are left as they were."""
    predictor = _revealed(make())
    for job, outcome in _history()[:20]:
        before = repr((job, outcome))
        predictor.predict(job, job.submit_seconds)
        predictor.observe(job, outcome)
        demand(repr((job, outcome)) == before, f"{job.job_id!r} is another afterwards")


def preempted_attempts(make: Make) -> None:
    """An attempt that was preempted after a second is not learned as a runtime of a second."""
    untouched, preempted = _trained(make), _trained(make)
    victim = _job("victim", submit=8e6)
    for predictor in (untouched, preempted):
        predictor.predict(victim, 8e6)
        predictor.started(victim, 8e6)
    stopped = Outcome("victim", 8e6, 8e6 + 1.0, EndedBecause.PREEMPTED)
    preempted.observe(victim, stopped)
    preempted.started(victim, 8e6 + 1.0)
    before = untouched.predict(_job("new", submit=9e6), 9e6).mean()
    after = preempted.predict(_job("new", submit=9e6), 9e6).mean()
    demand(after >= before * (1 - 1e-3), f"the next belief falls from {before:g} s to {after:g} s")
    preempted.observe(victim, Outcome("victim", 8e6 + 1.0, 8e6 + 500.0, attempt=2))


def asked_again(make: Make) -> None:
    """To be asked again about a job that waits, if it can be, teaches nothing."""
    unasked, asked = _trained(make), _trained(make)
    if not asked.refreshes_predictions:
        return
    victim = _job("victim", submit=8e6)
    for predictor in (unasked, asked):
        predictor.predict(victim, 8e6)
        for job, outcome in _history()[:20]:
            predictor.observe(job, outcome)
    asked.refreshed(victim, 8e6 + 1.0)
    for predictor in (unasked, asked):
        predictor.observe(victim, Outcome("victim", 8e6 + 1.0, 8e6 + 500.0))
    _demand_same(unasked, asked)


def restored(make: Make) -> None:
    """A fresh instance restored from a snapshot, if it has any, believes the same."""
    trained, fresh = _trained(make), make()
    if trained.keeps_state:
        fresh.restore(trained.snapshot())
        _demand_same(trained, fresh)


def absorbed(make: Make) -> None:
    """A fresh instance that absorbs what another has learned, if it can, believes the same."""
    trained, fresh = _trained(make), make()
    if hasattr(fresh, "absorb"):
        fresh.absorb(trained)
        _demand_same(trained, fresh)


def _demand_same(one: Predictor, other: Predictor) -> None:
    for job in (_job("new"), _job("new", "u3"), _job("new", None), _bare_job("bare")):
        before, after = one.predict(job, 9e6), other.predict(job, 9e6)
        for level in _LEVELS:
            first, second = before.quantile(level), after.quantile(level)
            close = math.isclose(first, second, rel_tol=_ROUNDING)
            demand(close, f"the {level:g} quantile {first} became {second}")


PREDICTOR_RULES: Final[tuple[Rule, ...]] = (
    finite_belief,
    monotone_quantiles,
    survival_falls,
    given_nothing,
    given_elapsed,
    strangers,
    history_of_others,
    deterministic,
    input_unchanged,
    preempted_attempts,
    asked_again,
    restored,
    absorbed,
)


def rises(make: Make) -> None:
    """The next estimate is later than the one that has expired, and finite."""
    for job in _limited_jobs():
        for current in (0.0, 1.0, 59.0, 600.0, 7200.0, 90_000.0):
            for count in (0, 1, 5, 50):
                estimate = _correct(make, job, current, count)
                demand(
                    current < estimate < math.inf,
                    f"{estimate} s after {current:g} s, correction {count}, "
                    f"limit {job.requested_seconds}",
                )


def keeps_the_limit(make: Make) -> None:
    """While the limit lies ahead the next estimate is at most the limit."""
    for job in _limited_jobs():
        limit = job.requested_seconds
        if limit is None:
            continue
        for current in (1.0, 59.0, limit / 2, limit - 1.0):
            if current < limit:
                estimate = _correct(make, job, current, 3)
                demand(estimate <= limit, f"{estimate} s with a limit of {limit:g} s")


def catches_up(make: Make) -> None:
    """Corrections catch up with a job of thirty days within a thousand steps."""
    job = _job("long", requested=None)
    correction = make()
    current = 1.0
    for count in range(1000):
        if current >= 30 * 86_400.0:
            return
        current = correction.correct(job, Point(1.0), 1.0, current, count)
    raise BrokenRuleError(f"after 1000 corrections the estimate is {current:g} s")


def same_correction(make: Make) -> None:
    """The same question has the same answer."""
    job = _job("1", requested=86_400.0)
    answers = {_correct(make, job, 600.0, 2) for _ in range(3)}
    demand(len(answers) == 1, f"answers {sorted(answers)}")


CORRECTION_RULES: Final[tuple[Rule, ...]] = (rises, keeps_the_limit, catches_up, same_correction)


def _correct(make: Make, job: Job, current: float, count: int) -> float:
    initial = current / (count + 1)
    estimate: float = make().correct(job, Point(initial), initial, current, count)
    return estimate


def _limited_jobs() -> list[Job]:
    return [_job("1", requested=limit) for limit in (None, 60.0, 7200.0, 86_400.0)]


def _job(
    job_id: str,
    user: str | None = "u0",
    requested: float | None = 7200.0,
    submit: float = 9e6,
    cpus: int = 4,
) -> Job:
    return Job.gang(job_id, submit, cpus, requested, user)


def _bare_job(job_id: str) -> Job:
    return Job.gang(job_id, 9e6, 1)


def _history() -> list[tuple[Job, Outcome]]:
    """Jobs of a few users with habits, in order of submission, and how they ended."""
    draw = random.Random(6)
    history = []
    submit = 0.0
    for number in range(_HISTORY):
        submit += draw.randint(1, 3600)
        user = draw.randint(0, 5)
        runtime = min(7200.0, 60.0 * (user + 1) * draw.lognormvariate(0.0, 0.7))
        job = _job(f"h{number}", f"u{user}", 7200.0, submit, draw.choice([1, 2, 4, 8]))
        start = submit + draw.randint(0, 600)
        history.append((job, Outcome(job.job_id, start, start + runtime)))
    return history


def _revealed(predictor: Predictor) -> Predictor:
    """The predictor; an oracle is handed the truth of every job that the rules ask about."""
    if predictor.needs_truth:
        truth = {job.job_id: outcome.runtime_seconds for job, outcome in _history()}
        predictor.reveal(truth | dict.fromkeys(("new", "bare", "victim"), 100.0))
    return predictor


def _trained(make: Make) -> Predictor:
    """A fresh predictor after the history, in the order in which a run would report it."""
    predictor = _revealed(make())
    history = _history()
    events = [
        (time, what, number)
        for number, (job, outcome) in enumerate(history)
        for what, time in enumerate(
            (job.submit_seconds, outcome.start_seconds, outcome.end_seconds)
        )
    ]
    for time, what, number in sorted(events):
        job, outcome = history[number]
        if what == 0:
            predictor.predict(job, time)
        elif what == 1:
            predictor.started(job, time)
        elif what == 2:
            predictor.observe(job, outcome)
    return predictor


def _beliefs(make: Make) -> list[Distribution]:
    """Beliefs of a fresh and of a trained instance, about known and unknown users."""
    jobs = [_job("new"), _job("new", "u3"), _job("new", None), _bare_job("bare")]
    return [
        predictor.predict(job, 9e6)
        for predictor in (_revealed(make()), _trained(make))
        for job in jobs
    ]
