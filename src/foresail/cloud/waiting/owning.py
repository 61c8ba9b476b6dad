"""How many machines to own, and which jobs wait for them: the question as a whole, on a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from foresail.cloud.waiting.blocks import block_seconds
from foresail.cloud.waiting.certainty import AdviceCertainty, Draws, drawn, interval, shares_best
from foresail.cloud.waiting.frontier import FrontierPoint
from foresail.cloud.waiting.metrics import WaitingMetrics
from foresail.cloud.waiting.owning_answer import OwningAnswer, answered
from foresail.cloud.waiting.settings import Sweep, WaitingSetting
from foresail.cloud.waiting.sweep_inputs import SweepInputs
from foresail.cloud.waiting.trying import TrialResult, try_settings
from foresail.cloud.waiting.worth import Worth


def own_or_rent(
    inputs: SweepInputs,
    sweep: Sweep,
    worth: Worth,
    *,
    workers: int = 1,
    kept: Path | None = None,
    done: Callable[[int, int], None] = lambda _, __: None,
) -> OwningAnswer:
    """Simulate every setting on a log, and say which is best.

    ``workers`` and ``kept`` are as for ``try_settings``; ``done`` is called after each setting with
    how many are done and how many are known of.

    Raises
    ------
    InputError
        If no setting is as asked, or a kept result cannot be used.
    """
    results: dict[WaitingSetting, TrialResult] = {}

    def try_all(asked: Sequence[WaitingSetting]) -> OwningAnswer:
        new = [each for each in dict.fromkeys(asked) if each not in results]
        total = len(results) + len(new)
        for setting, tried in try_settings(inputs, new, workers=workers, kept=kept):
            results[setting] = tried
            done(len(results), total)
        return _of_simulations(results, inputs, sweep, worth)

    answer = try_all(sweep.settings())
    if not sweep.refine:
        return answer
    best = [answer.advised, *([answer.unaided] if answer.unaided else [])]
    return try_all(sweep.between(best))


def _of_simulations(
    results: Mapping[WaitingSetting, TrialResult], inputs: SweepInputs, sweep: Sweep, worth: Worth
) -> OwningAnswer:
    """The answer, with intervals from blocks that all settings draw alike."""
    hour_value = worth.hour_value if inputs.own_values is None else None
    draws = {
        setting: drawn(tried.sums, hour_value)
        for setting, tried in results.items()
        if tried.sums is not None
    }
    own_mean = None if inputs.own_values is None else worth.hour_value
    points = {
        setting: _point(setting, results[setting].metrics, draws.get(setting), own_mean)
        for setting in sorted(results, key=lambda each: each.place)
    }
    span, jobs = inputs.jobs.span_seconds, len(inputs.jobs)
    answer = answered(points, sweep, worth, span, jobs, inputs.mean_machines, inputs.told_truths)
    length = block_seconds(inputs.jobs.submit_seconds)
    if length is None:
        return answer
    blocks = next(each.sums.jobs.size for each in results.values() if each.sums is not None)
    return replace(answer, certainty=_certainty(answer, points, draws, length, blocks))


def _point(
    setting: WaitingSetting, result: WaitingMetrics, draws: Draws | None, own_mean: float | None
) -> FrontierPoint:
    """``own_mean``: mean of the jobs' own values of an hour, if they have such."""
    prices = waits = None
    if draws is not None:
        prices, waits = interval(draws.price), interval(draws.wait_seconds)
    hours = result.jobs * result.mean_wait_seconds / 3600.0
    if own_mean:
        hours = result.delay_cost / own_mean
    return FrontierPoint(
        **asdict(setting),
        cost=result.total_cost,
        on_demand_cost=result.on_demand_cost,
        mean_wait_seconds=result.mean_wait_seconds,
        waiting_hours=hours,
        rented_work=result.rented_work,
        rented_jobs=result.rented_jobs,
        fixed_utilisation=result.fixed_utilisation,
        prices=prices,
        waits=waits,
    )


def _certainty(
    answer: OwningAnswer,
    points: Mapping[WaitingSetting, FrontierPoint],
    draws: Mapping[WaitingSetting, Draws],
    length: float,
    blocks: int,
) -> AdviceCertainty:
    """Of the advice, against the settings that were allowed; costs are per hour of work rented."""
    scale = answer.jobs / answer.advised.on_demand_cost
    totals = {
        setting: draws[setting].price + scale * draws[setting].delay_cost
        for setting, point in points.items()
        if point.is_lasting and point.mean_wait_seconds <= answer.worth.longest_wait_seconds
    }
    chosen = next(setting for setting in totals if points[setting] is answer.advised)
    saving = None
    if answer.today is not None:
        today = next(setting for setting, point in points.items() if point is answer.today)
        saving = interval(draws[today].price - draws[chosen].price)
    return AdviceCertainty(length, blocks, *shares_best(chosen, totals), saving)
