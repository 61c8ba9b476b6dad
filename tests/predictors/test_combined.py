"""The predictor made of predictors against a slow obvious reference, and what it promises."""

import math

import numpy as np
import pytest

from compiled import believe, take
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, REQUESTED, SUMMARY_COLUMNS, USER
from foresail.model.cluster import Resources
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.event import Outcome
from foresail.model.job import Job, Stage
from foresail.model.registry import find
from foresail.predictors.kernels.members import ANCHORS, point_belief
from random_history import END, START, SUBMIT, History, random_history

LEVELS = np.array(BELIEF_LEVELS)
MEMBERS = ("similar", "quantile_regression", "recent")


def built(name, **changes):
    entry = find("predictor", name)
    return entry.build(entry.parameters(**changes))


def beliefs(predictor, past):
    """The belief about every job at its submission, a row of quantiles each."""
    specs = past.specs()
    steps, state = predictor.compiled(specs)
    summaries = np.empty((len(past.jobs), SUMMARY_COLUMNS))
    rows = np.empty((len(past.jobs), BELIEF_COLUMNS))
    for now, kind, i in past.events:
        step = {SUBMIT: steps.predict, START: steps.started, END: steps.observe}[kind]
        take(step, i, now, past.runtime[i] if kind == END else math.nan, specs, *state, summaries)
        if kind == SUBMIT:
            believe(steps.belief or point_belief, i, specs, *state, summaries, rows[i])
    return rows


class Regrets:
    """What following the combination cost against following each member, anchor by anchor."""

    def __init__(self, members):
        self.jobs = 0
        self.sums = np.zeros((len(ANCHORS), members))
        self.squares = np.zeros((len(ANCHORS), members))
        self.largest = np.zeros(len(ANCHORS))

    def weights(self, prior, eagerness):
        """Weights by anchor and member."""
        members = self.sums.shape[1]
        rate = np.zeros_like(self.sums)
        known = self.squares > 0
        second_order = np.sqrt(np.log(members) / np.where(known, self.squares, 1.0))
        first_order = 0.5 / np.where(self.largest > 0, self.largest, 1.0)[:, np.newaxis]
        rate[known] = eagerness * np.minimum(first_order, second_order)[known]
        raw = np.log(prior) + rate * self.sums
        shares = np.exp(raw - raw.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def add(self, truth, combined, single):
        """Learn from one job: roots of its runtime, of the combination and of the members."""
        level = LEVELS[list(ANCHORS)]
        slope = np.where(truth < combined, 1.0 - level, -level)
        regret = slope[:, np.newaxis] * (combined[:, np.newaxis] - single)
        self.jobs += 1
        self.sums += regret
        self.squares += regret**2
        self.largest = np.maximum(self.largest, np.abs(regret).max(axis=1))


def reference(past, members, eagerness, patience):
    """What ``combined`` should believe, from the members' beliefs."""
    rows = np.stack([beliefs(built(name), past) for name in members])
    specs = past.specs()
    count = len(members)
    general, personal = Regrets(count), {}
    out = np.empty((len(past.jobs), BELIEF_COLUMNS))
    longest = 0.0
    for _, kind, i in past.events:
        own = personal.setdefault(specs[i, USER], Regrets(count))
        if kind == SUBMIT:
            if longest > 0.0:
                rows[:, i] = np.minimum(rows[:, i], 1.5 * longest)
            trust = own.jobs / (own.jobs + patience)
            all_weights = general.weights(np.full((len(ANCHORS), count), 1 / count), eagerness)
            all_weights = np.maximum(all_weights, 1e-3 / count)
            weights = (1 - trust) * all_weights + trust * own.weights(all_weights, eagerness)
            spread = np.stack(
                [np.interp(LEVELS, LEVELS[list(ANCHORS)], weights[:, k]) for k in range(count)]
            )
            mixed = (spread * np.sqrt(rows[:, i])).sum(axis=0) ** 2
            out[i] = np.sort(np.clip(mixed, 0.0, specs[i, REQUESTED]))
        elif kind == END:
            at = list(ANCHORS)
            longest = max(longest, past.runtime[i])
            for record in (general, own):
                record.add(
                    math.sqrt(past.runtime[i]), np.sqrt(out[i][at]), np.sqrt(rows[:, i][:, at]).T
                )
    return out


def test_combination_is_that_of_the_reference():
    """Every quantile of every belief, over users with much and with little history."""
    past = random_history(seed=21, jobs=400, users=9)
    predictor = built("combined", members=MEMBERS, patience=5.0)
    expected = reference(past, MEMBERS, 3.0, 5.0)
    assert np.allclose(beliefs(predictor, past), expected, rtol=1e-9, atol=1e-9)


def pinball(rows, past):
    """Mean pinball loss over all levels, in roots of seconds."""
    truth = np.sqrt(np.array(past.runtime))[:, np.newaxis]
    off = truth - np.sqrt(rows)
    return float(np.maximum(LEVELS * off, (LEVELS - 1) * off).mean())


def test_it_is_near_the_best_member_or_better():
    """On a stream where one member is far better, the combination is nearly as good."""
    past = random_history(seed=22, jobs=1500, users=5)
    single = [pinball(beliefs(built(name), past), past) for name in MEMBERS]
    together = pinball(beliefs(built("combined", members=MEMBERS), past), past)
    assert together < 1.02 * min(single)


def test_a_predictor_of_predictors_of_predictors():
    """Composites are members like all others."""
    past = random_history(seed=23, jobs=200)
    predictor = built("combined", members=("calibrated", "recent"))
    rows = beliefs(predictor, past)
    assert np.isfinite(rows).all()
    assert (np.diff(rows, axis=1) >= 0).all()


@pytest.mark.parametrize(
    ("name", "changes", "error", "words"),
    [
        ("combined", {"members": ("recent",)}, InputError, "two or more"),
        ("combined", {"members": ("recent", "recent")}, InputError, "two or more"),
        ("combined", {"members": ("recent", "clairvoyant")}, InputError, "cannot be a member"),
        ("combined", {"members": ("recent", "resent")}, UnknownNameError, "recent"),
        ("calibrated", {"of": "clairvoyant"}, InputError, "cannot be a member"),
    ],
)
def test_bad_parameters(name, changes, error, words):
    """Each is refused with what was expected."""
    with pytest.raises(error, match=words):
        built(name, **changes)


def covered(rows, past, low, high):
    """Share of runtimes between two levels, in order of submission, after a beginning."""
    truth = np.array(past.runtime)
    inside = (rows[:, BELIEF_LEVELS.index(low)] <= truth) & (
        truth <= rows[:, BELIEF_LEVELS.index(high)]
    )
    return inside[len(inside) // 4 :].mean()


@pytest.mark.parametrize("of", ["recent", "requested", "quantile_regression", "similar"])
def test_stated_shares_hold(of):
    """Whatever is calibrated, a point too: 90 % intervals hold 90 %, and half of them half."""
    past = random_history(seed=24, jobs=4000, users=8, unknown=1.0)
    rows = beliefs(built("calibrated", of=of), past)
    assert covered(rows, past, 0.05, 0.95) == pytest.approx(0.9, abs=0.03)
    assert covered(rows, past, 0.25, 0.75) == pytest.approx(0.5, abs=0.07)


def test_the_quantiles_of_calibrated_follow_a_change():
    """When all runtimes become ten times as long, coverage is back after some hundred jobs."""
    past = random_history(seed=25, jobs=4000, users=1, unknown=1.0)
    order = np.argsort([job.submit_seconds for job in past.jobs], kind="stable")
    for i in order[len(order) // 2 :]:
        past.runtime[i] *= 10.0
    rows = beliefs(built("calibrated", of="similar"), past)
    assert covered(rows, past, 0.05, 0.95) == pytest.approx(0.9, abs=0.04)


def crowds(seed, count, size, users):
    """Crowds of alike jobs of a length of their own, submitted at once before any of them ends."""
    random = np.random.default_rng(seed)
    jobs, start, runtime, events = [], [], [], []
    stage = Stage(1, Resources(cpus=1.0))
    for crowd in range(count):
        submit = 200_000.0 * crowd
        middle = random.normal(7.0, 1.5)
        for _ in range(size):
            i = len(jobs)
            ran = float(np.ceil(np.exp(random.normal(middle, 0.2))))
            jobs.append(Job(f"job{i}", submit, (stage,), None, f"user{crowd % users}"))
            start.append(submit)
            runtime.append(ran)
            events += [(submit, 1, i), (submit, 2, i), (submit + ran, 0, i)]
    kinds = {0: END, 1: SUBMIT, 2: START}
    ordered = [(time, kinds[kind], i) for time, kind, i in sorted(events)]
    return History(jobs, start, runtime, ordered)


def test_ranges_hold_for_crowds():
    """A crowd is right or wrong as one: ranges hold over many, though none tells of the next."""
    past = crowds(seed=26, count=400, size=50, users=4)
    rows = beliefs(built("calibrated", of="similar"), past)
    assert covered(rows, past, 0.05, 0.95) == pytest.approx(0.9, abs=0.04)
    assert covered(rows, past, 0.25, 0.75) == pytest.approx(0.5, abs=0.08)


def test_ranges_reach_past_limits_that_do_not_bind():
    """Where a fifth of the jobs run past their limit, the 90 % range reaches them."""
    past = random_history(seed=27, jobs=4000, users=6, unknown=0.0)
    random = np.random.default_rng(27)
    over = random.random(len(past.jobs)) < 0.2
    for i in np.flatnonzero(over):
        past.runtime[i] = past.jobs[i].requested_seconds * random.uniform(1.05, 1.5)
    rows = beliefs(built("calibrated", of="similar"), past)
    assert covered(rows, past, 0.05, 0.95) == pytest.approx(0.9, abs=0.03)
    limits = np.array([job.requested_seconds for job in past.jobs])
    assert (rows[1000:, BELIEF_LEVELS.index(0.95)] > limits[1000:]).mean() > 0.5


def test_limits_that_bind_are_not_passed():
    """Where every job ends by its limit, no belief goes beyond it."""
    past = random_history(seed=28, jobs=600, users=6, unknown=0.0)
    rows = beliefs(built("calibrated", of="similar"), past)
    limits = np.array([job.requested_seconds for job in past.jobs])
    assert (rows.max(axis=1) <= limits + 1e-6).all()


def test_many_that_were_submitted_at_once_do_not_move_quantiles_below_what_any_took():
    """Each of three hundred ends is the same surprise, as of before the first of them."""
    predictor = built("calibrated")
    jobs = [Job.gang(f"{number}", 0.0, 1, 300.0, "u") for number in range(300)]
    for job in jobs:
        predictor.predict(job, 0.0)
    for ended, job in enumerate(jobs[:200], start=1):
        predictor.observe(job, Outcome(job.job_id, float(ended), ended + 1.0))
        if ended in (4, 40, 200):
            belief = predictor.predict(Job.gang("new", float(ended), 1, 300.0, "u"), float(ended))
            assert 0.6 < belief.quantile(0.1) <= belief.quantile(0.5) < 1.5
            predictor.withdrawn(Job.gang("new", 0.0, 1, 300.0, "u"), float(ended))
