"""SLearn: a job's first tasks show how long the others will take (NSDI 2022, section 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from foresail.model.errors import require, require_at_least, require_positive
from foresail.model.registry import register
from foresail.schedulers.kernels import pilots, task_queues
from foresail.schedulers.kernels.task_jobs import SAMPLING
from foresail.schedulers.of_tasks import scheduler

_STATISTICS: Final = {
    "mean": pilots.MEAN,
    "posterior": pilots.POSTERIOR,
    "log_posterior": pilots.LOG_POSTERIOR,
}


@dataclass(frozen=True, slots=True)
class SLearnParameters(scheduler.QueueParameters):
    """Parameters of ``slearn``."""

    source: Literal["pilots", "surer", "proved"] = "pilots"
    """Source of a job's estimate: its ``pilots``, or whichever is expected to err less (``surer``),
    the predictor's belief about its tasks or their mean (from history if its variance is below that
    of tasks over the number of pilots), or history as far as it has proved itself (``proved``): a
    job that would be in the same queue whatever is likely is not sampled, and tasks of others wait
    in the queue for the most that is likely as soon as the pilots have started, not only when they
    have ended. Likely is what is within a standard deviation of what history believes, in
    logarithms, by how far off such beliefs have been."""
    pilot_percent: float | None = None
    """Percent of a job's tasks that are pilots; learned from the jobs that have ended if not
    given. Parts of a pilot do not count; one task at least is a pilot."""
    statistic: Literal["mean", "posterior", "log_posterior"] = "mean"
    """Statistic that stands for all tasks: the ``mean`` of the pilots, or what follows when the
    predictor's belief is joined with them: the mean if all is normal (``posterior``), the median if
    it is log-normal (``log_posterior``)."""
    later_stages: Literal["sampled", "history"] = "sampled"
    """Runtimes assumed of the stages after the first: each task as long as those of the first
    (``sampled``), or as the predictor says, corrected by how wrong it was of the first
    (``history``; so too with the posteriors, and where history may do without pilots)."""
    thin_below: int = 3
    """Jobs of fewer tasks go to the first queue, without being sampled."""
    deadlines: Literal["ignored", "by_odds"] = "ignored"
    """With ``by_odds`` a job with a deadline waits in the first queue, by its deadline, among
    others by when they entered it; its tasks need not wait for its pilots. If its turn comes and
    the odds that its other tasks are in time, on the slots that the queue shares out to it, are
    below 0.05, it goes to the queue for its size; one without an estimate once it is late."""
    trials: int = 100
    """Trials of the learned ratio: jobs that each of the first ratios is tried with, and outcomes
    of a ratio that count."""
    seed: int = 0
    """Seed of the draw of pilots."""

    def __post_init__(self) -> None:
        scheduler.QueueParameters.__post_init__(self)
        require(self.queues >= 2, self, "queues", "2 or more, for one has the pilots")
        require((self.pilot_percent or 0.0) <= 100.0, self, "pilot_percent", "above 0, to 100")
        require_positive(self, "pilot_percent")
        require_at_least(self, 1, "thin_below", "trials")
        require(0 <= self.seed < 2**32, self, "seed", "from 0 to 2^32 - 1")


_SAMPLING_QUEUE: Final = 1
_MARGIN: Final = 1.1
_HOPELESS_BELOW: Final = 0.05
_LIKELY_SPREADS: Final = 1.0


@register("task_scheduler", "slearn", parameters=SLearnParameters)
class SLearn(scheduler.TaskScheduler):
    """Runs some tasks of a job first, and puts it into the queue that follows from them."""

    def __init__(self, parameters: SLearnParameters) -> None:
        rules = parameters.rules()
        rules[task_queues.SAMPLING_QUEUE] = _SAMPLING_QUEUE
        numbers = np.zeros(pilots.PILOT_NUMBERS)
        numbers[pilots.PERCENT] = parameters.pilot_percent or 0.0
        numbers[pilots.STATISTIC] = _STATISTICS[parameters.statistic]
        numbers[pilots.SEED] = parameters.seed
        numbers[pilots.TRIALS] = parameters.trials
        numbers[pilots.MARGIN] = _MARGIN
        numbers[pilots.CHOOSES] = parameters.source == "surer"
        by_odds = parameters.deadlines == "by_odds"
        rules[task_queues.BY_DUE] = by_odds
        numbers[pilots.HOPELESS_BELOW] = _HOPELESS_BELOW if by_odds else 0.0
        numbers[pilots.SPREADS] = _LIKELY_SPREADS if parameters.source == "proved" else 0.0
        asks = (
            parameters.statistic in {"posterior", "log_posterior"}
            or parameters.later_stages == "history"
            or parameters.source != "pilots"
        )
        super().__init__(
            scheduler.CompiledTaskScheduler(
                rules,
                parameters.costs(),
                scheduler.way(SAMPLING, parameters.thin_below),
                numbers,
                parameters.trials,
                asks_predictor=asks,
            )
        )
