"""The better of several predictors at every level and for every user, learned as jobs end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.kernels.borrowed import block, room
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.steps import (
    PREDICTOR_STEP,
    PredictorInputs,
    PredictorSteps,
    call_belief_step,
    call_predictor_step,
)
from foresail.model.distribution import Floats
from foresail.model.errors import require, require_positive
from foresail.model.registry import register
from foresail.predictors._composite import CompositePredictor, Own, member
from foresail.predictors.kernels import members
from foresail.predictors.kernels.members import (
    ANCHOR_COUNT,
    ANCHORS,
    BELIEF,
    MEMBERS,
    OBSERVE,
    OWN_JOB_COLUMNS,
    OWN_USER_COLUMNS,
    PREDICT,
    REFRESH,
    cut_and_sort,
    inputs_of,
    interpolated,
    member_place,
    summarise_belief,
)
from foresail.predictors.kernels.request import user_row
from foresail.predictors.stepped import RefreshingPredictor

PATIENCE: Final = 0
LONGEST: Final = 1
PRIORS: Final = 2
"""The composite's own numbers: after how many ended jobs a user's own weights count half, the
longest runtime seen, and a prior weight per member; then the record of all jobs."""

_EAGERNESS: Final = 3.0
"""Speed at which weights follow regrets; 1 is the rate with the proved bound."""

STRETCH: Final = 1.5

_SMALLEST_WEIGHT: Final = 1e-3


def _record_size(members: int) -> int:
    """Length of a record of regrets.

    Jobs ended; then per anchor the largest regret, and per member the sum of regrets and of their
    squares.
    """
    return 1 + ANCHOR_COUNT * (1 + 2 * members)


def job_columns(members: int) -> int:
    """Return how many columns of its own a job has.

    The combined belief, then at the anchors the combination's and every member's quantile (roots of
    seconds) that the regrets will be measured by.
    """
    return BELIEF_COLUMNS + ANCHOR_COUNT * (1 + members)


@part
def _write_weights(anchor: int, record: Floats, prior: Floats, weights: Floats) -> None:
    """Fill ``weights`` (summing to 1) at an anchor, from a record of regrets and prior weights."""
    members = weights.size
    at = 1 + anchor * (1 + 2 * members)
    largest = record[at]
    top = -math.inf
    for k in range(members):
        squares = record[at + 1 + 2 * k + 1]
        rate = 0.0
        if squares > 0.0:
            rate = _EAGERNESS * min(0.5 / largest, math.sqrt(math.log(members) / squares))
        weights[k] = math.log(prior[k]) + rate * record[at + 1 + 2 * k]
        top = max(top, weights[k])
    total = 0.0
    for k in range(members):
        weights[k] = math.exp(weights[k] - top)
        total += weights[k]
    for k in range(members):
        weights[k] /= total


@part
def _combine(inputs: PredictorInputs, beliefs: Floats) -> None:
    """Fill the job's belief and its summary from the members' beliefs, in a row."""
    model, slot = inputs.model, inputs.slot
    members = beliefs.size // BELIEF_COLUMNS
    job = block(inputs.jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    user = block(inputs.users, 0, int(model[OWN_USER_COLUMNS]))[user_row(inputs.specs, slot)]
    own = model[member_place(members) :]
    prior = own[PRIORS : PRIORS + members]
    record = own[PRIORS + members : PRIORS + members + user.size]
    trust = user[0] / (user[0] + own[PATIENCE]) if user[0] > 0.0 else 0.0
    general = room(members)
    personal = room(members)
    anchored = room(members * ANCHOR_COUNT)
    weights = room(BELIEF_COLUMNS)
    # Weights at a few anchors, interpolated between: a weight per level would learn too slowly.
    for a in range(ANCHOR_COUNT):
        _write_weights(a, record, prior, general)
        for k in range(members):
            general[k] = max(general[k], _SMALLEST_WEIGHT / members)
        _write_weights(a, user, general, personal)
        for k in range(members):
            mixed = (1.0 - trust) * general[k] + trust * personal[k]
            anchored[k * ANCHOR_COUNT + a] = mixed
    belief = job[:BELIEF_COLUMNS]
    for i in range(BELIEF_COLUMNS):
        belief[i] = 0.0
    for k in range(members):
        interpolated(ANCHORS, anchored[k * ANCHOR_COUNT : (k + 1) * ANCHOR_COUNT], weights)
        for i in range(BELIEF_COLUMNS):
            belief[i] += weights[i] * math.sqrt(max(beliefs[k * BELIEF_COLUMNS + i], 0.0))
    for i in range(BELIEF_COLUMNS):
        belief[i] *= belief[i]
    cut_and_sort(belief, inputs.specs[slot, REQUESTED])
    summarise_belief(belief, inputs.summaries[slot])


@part
def _keep(inputs: PredictorInputs, beliefs: Floats) -> None:
    """Keep the anchors of what was combined, and of what each member believes, for regrets."""
    members = beliefs.size // BELIEF_COLUMNS
    job = block(inputs.jobs, 0, int(inputs.model[OWN_JOB_COLUMNS]))[inputs.slot]
    belief = job[:BELIEF_COLUMNS]
    for a in range(ANCHOR_COUNT):
        at = BELIEF_COLUMNS + a * (1 + members)
        job[at] = math.sqrt(belief[ANCHORS[a]])
        for k in range(members):
            quantile = beliefs[k * BELIEF_COLUMNS + ANCHORS[a]]
            job[at + 1 + k] = math.sqrt(max(quantile, 0.0))


@part
def _bound(belief: Floats, longest: float) -> None:
    """Bring quantiles down to ``longest``, if anything has been seen yet."""
    if longest > 0.0:
        for i in range(BELIEF_COLUMNS):
            belief[i] = min(belief[i], longest)


@part
def _recall(member: int, inputs: PredictorInputs, belief: Floats) -> None:
    """A member's belief as far as the job's row keeps it: at the anchors."""
    members = int(inputs.model[MEMBERS])
    job = block(inputs.jobs, 0, int(inputs.model[OWN_JOB_COLUMNS]))[inputs.slot]
    roots = room(ANCHOR_COUNT)
    for a in range(ANCHOR_COUNT):
        roots[a] = job[BELIEF_COLUMNS + a * (1 + members) + 1 + member]
    interpolated(ANCHORS, roots, belief)
    for i in range(BELIEF_COLUMNS):
        belief[i] *= belief[i]


@part
def _ask(member: int, inputs: PredictorInputs, belief: Floats) -> None:
    """Fill ``belief`` with what a member believes, its quantiles bounded."""
    model = inputs.model
    call_belief_step(model[member_place(member) + BELIEF], inputs_of(member, inputs), belief)
    longest = model[member_place(int(model[MEMBERS])) + LONGEST]
    _bound(belief, STRETCH * longest)


@part
def _regret(runtime: float, members: int, job: Floats, record: Floats) -> None:
    """Add to a record how much better than the combination each member was at each anchor."""
    truth = math.sqrt(runtime)
    record[0] += 1.0
    for a in range(ANCHOR_COUNT):
        level = BELIEF_LEVELS[ANCHORS[a]]
        at = BELIEF_COLUMNS + a * (1 + members)
        slope = 1.0 - level if truth < job[at] else -level
        into = 1 + a * (1 + 2 * members)
        for k in range(members):
            regret = slope * (job[at] - job[at + 1 + k])
            record[into] = max(record[into], abs(regret))
            record[into + 1 + 2 * k] += regret
            record[into + 1 + 2 * k + 1] += regret * regret


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Combine what the members predict."""
    members = int(inputs.model[MEMBERS])
    beliefs = room(members * BELIEF_COLUMNS)
    for k in range(members):
        call_predictor_step(inputs.model[member_place(k) + PREDICT], inputs_of(k, inputs))
        _ask(k, inputs, beliefs[k * BELIEF_COLUMNS : (k + 1) * BELIEF_COLUMNS])
    _combine(inputs, beliefs)
    _keep(inputs, beliefs)


@bare_step(PREDICTOR_STEP)
def refresh(inputs: PredictorInputs) -> None:
    """Combine anew, with the members that refresh; the others stay with what they predicted.

    Regrets stay those of what was predicted: a job teaches the same, however often it was asked of.
    """
    members = int(inputs.model[MEMBERS])
    beliefs = room(members * BELIEF_COLUMNS)
    for k in range(members):
        belief = beliefs[k * BELIEF_COLUMNS : (k + 1) * BELIEF_COLUMNS]
        address = inputs.model[member_place(k) + REFRESH]
        if address != 0.0:
            call_predictor_step(address, inputs_of(k, inputs))
            _ask(k, inputs, belief)
        else:
            _recall(k, inputs, belief)
    _combine(inputs, beliefs)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Update the members, and learn how good they were."""
    slot, runtime, model = inputs.slot, inputs.runtime, inputs.model
    members = int(model[MEMBERS])
    for k in range(members):
        call_predictor_step(model[member_place(k) + OBSERVE], inputs_of(k, inputs))
    if math.isnan(runtime) or runtime < 0.0:
        return
    job = block(inputs.jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    user = block(inputs.users, 0, int(model[OWN_USER_COLUMNS]))[user_row(inputs.specs, slot)]
    own = member_place(members)
    model[own + LONGEST] = max(model[own + LONGEST], runtime)
    general = own + PRIORS + members
    _regret(runtime, members, job, model[general : general + user.size])
    _regret(runtime, members, job, user)


_POINTS: Final = (
    "jvu(features=[user,executable,cpus,queue,user+executable,user+cpus,"
    "requested,user+requested,user+requested+cpus,hour,user+hour])"
)
"""JVuPredict with the requested time among its features: users ask alike for alike jobs."""


@dataclass(frozen=True, slots=True)
class CombinedParameters:
    """Parameters of ``combined``."""

    members: tuple[str, ...] = ("similar", _POINTS, "quantile_regression", "recent")
    """The predictors to combine: names, or short forms with parameters."""
    patience: float = 1000.0
    """Number of a user's jobs after which the user's own weights count half."""

    def __post_init__(self) -> None:
        names = self.members
        different = len(names) > 1 and len(set(names)) == len(names)
        require(different, self, "members", "two or more different predictors")
        require_positive(self, "patience")


@register("predictor", "combined", parameters=CombinedParameters)
class Combined(CompositePredictor, RefreshingPredictor):
    """Predicts a distribution: several, weighted by their past; an end: O(waiting jobs)."""

    def __init__(self, parameters: CombinedParameters) -> None:
        count = len(parameters.members)
        compiled = PredictorSteps(predict, members.started, observe, refresh, members.belief)
        own = Own(_numbers(parameters), _record_size(count), job_columns(count))
        super().__init__(compiled, [member(text, "members") for text in parameters.members], own)


def _numbers(parameters: CombinedParameters) -> Floats:
    count = len(parameters.members)
    numbers = np.zeros(PRIORS + count + _record_size(count))
    numbers[PATIENCE] = parameters.patience
    numbers[PRIORS : PRIORS + count] = 1.0 / count
    return numbers
