"""Green hours in words: what waiting for them saves and costs, and what that rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from foresail.cloud.waiting.green_hours import GreenAnswer, GreenPoint
from foresail.model.words import count, duration, listed, number, percent

_LITTLE: Final = 0.001
_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class GreenCircumstances:
    """What was asked of, beside the answer."""

    log: str
    series: str
    """Names of their files."""
    runtimes: str
    """What jobs are believed to run for: ``known``, ``requested`` or a predictor."""
    repeat: str | None
    """What of the series goes round, None if it does not."""
    dated: bool
    """Whether the log's date is known, so that hours are of the day in UTC."""

    @property
    def are_known(self) -> bool:
        """Whether the runtimes are the truth."""
        return self.runtimes == "known"


def sentences(answer: GreenAnswer, asked: GreenCircumstances) -> list[str]:
    """What it saves, what it costs, and what it rests on."""
    most = answer.points[-1]
    at_once = most.believed.grams_at_once / 1000.0
    patience = duration(most.patience_seconds)
    if abs(most.believed.saved) < _LITTLE:
        said = [
            f"Waiting for green hours saves nothing worth its name: {percent(most.believed.saved)} "
            f"of {number(at_once)} kg CO2, if jobs wait up to {patience}."
        ]
    else:
        verb = "saves" if most.kilograms_saved > 0.0 else "costs another"
        said = [
            f"If every job starts within {patience} of its submission when it emits least"
            f"{_priced(answer)}, that {verb} {percent(abs(most.believed.saved))} of the CO2 "
            f"({number(abs(most.kilograms_saved))} of {number(at_once)} kg); jobs start "
            f"{duration(most.believed.mean_wait_seconds)} later on average."
        ]
    said += _less_patience(answer)
    said += _certain(answer)
    said.append(_knowledge(most, asked))
    if answer.unbelieved_jobs > 0.0:
        said.append(
            f"{percent(answer.unbelieved_jobs)} of the jobs start at once, because nothing is "
            "believed of their runtime."
        )
    said.append(
        f"Jobs never wait for capacity here: {count(most.most_cores, 'core')} would be in use at "
        f"once at most, {number(answer.most_cores_at_once)} if no job waited. Where there are "
        "fewer, less is saved."
    )
    return said


def _priced(answer: GreenAnswer) -> str:
    if not answer.hour_grams:
        return ""
    return f", and an hour's delay of a job must save {number(answer.hour_grams)} g"


def _less_patience(answer: GreenAnswer) -> list[str]:
    """The patience before the longest, compared."""
    inner = answer.points[1:-1]
    most = answer.points[-1]
    if not inner or most.believed.saved < _LITTLE:
        return []
    each = [
        f"{duration(point.patience_seconds)} of patience {percent(point.believed.saved)} "
        f"({duration(point.believed.mean_wait_seconds)} later on average)"
        for point in inner
    ]
    return [f"Less patience saves less: {listed(each)}."]


def _certain(answer: GreenAnswer) -> list[str]:
    """What weeks drawn anew make of it."""
    sure = answer.points[-1].certainty
    if sure is None:
        return ["The log is too short to say how sure that is: jobs on five days are the least."]
    unit = "week" if answer.block_seconds > _DAY else "day"
    low, high = sure.saved
    brief, long = sure.mean_wait_seconds
    return [
        f"Put together anew from the log's {count(answer.blocks, unit)}, 19 periods of 20 save "
        f"{percent(low)} to {percent(high)}, with a mean delay of {duration(brief)} to "
        f"{duration(long)}."
    ]


def _knowledge(most: GreenPoint, asked: GreenCircumstances) -> str:
    if asked.are_known:
        return "Runtimes are taken to be known, which is a bound: --runtimes says by whom else."
    realised = most.realised
    share = "" if realised is None else f", of which this is {percent(realised)}"
    return (
        f"Starts go by what {asked.runtimes} says of runtimes; known ones would save "
        f"{percent(most.known.saved)}{share}."
    )


def notes(answer: GreenAnswer, asked: GreenCircumstances) -> list[str]:
    """How it was computed."""
    of_watts = "; other watts change the kilograms, not the shares"
    if answer.gpu_hours:
        of_watts = "; other watts change the kilograms, and the shares where jobs differ in gpus"
    if answer.hour_grams:
        of_watts = ", and with other watts other jobs wait"
    return [
        "The intensity is taken to be known in advance. Of starts that emit as little, a job takes "
        "the earliest. Cores that no job uses are not counted: neither their power, nor what "
        "making machines emitted.",
        "Emission is counted over the true runtimes"
        + (
            "."
            if asked.are_known
            else f"; starts are chosen by what {asked.runtimes} believed on submission."
        ),
        f"Power is taken to be {watts(answer)}, whatever it does{of_watts}.",
    ]


def watts(answer: GreenAnswer) -> str:
    """The power that is assumed."""
    gpu = f", {number(1000.0 * answer.kilowatts_per_gpu)} W for a busy gpu"
    core = f"{number(1000.0 * answer.kilowatts_per_core)} W for a busy core"
    return core + (gpu if answer.gpu_hours else "")
