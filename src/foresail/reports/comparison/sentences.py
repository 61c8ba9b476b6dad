"""The words that come first: what changed, how sure that is, and who pays for it."""

from __future__ import annotations

import math
from typing import Final

import polars as pl

from foresail.metrics.comparison import Change, Comparison, Metric, movers
from foresail.metrics.statistics import RUNTIME_LABELS, width_bounds, width_labels
from foresail.metrics.summary import Summary
from foresail.model.words import count, duration, number, percent
from foresail.reports.comparison.change_figures import METRIC_WORDS, said, size_changes
from foresail.reports.comparison.job_figures import said_goodput, said_misses
from foresail.reports.comparison.view import ReportView, killed_words, never_started_words

_HEADLINES: Final[tuple[Metric, ...]] = (
    "median_wait_seconds",
    "mean_wait_seconds",
    "average_bounded_slowdown",
)
_FEWEST_JOBS: Final = 10


def situation(view: ReportView) -> str:
    """Say what was replayed: jobs, machine, time."""
    first = view.baseline
    machine = count(round(first.processors), first.unit)
    if not first.jobs:
        return f"No job of {first.workload} has started on {machine}, so there is nothing to tell."
    replayed = (
        f"{count(first.jobs, 'job')} of {first.workload} on {machine}, over "
        f"{duration(first.makespan_seconds)}."
    )
    lost = " ".join(f"{each[:1].upper()}{each[1:]}." for each in view.schedules[0].meta.lost)
    left_out = never_started_words(view.summaries), killed_words(view.summaries)
    return " ".join(filter(None, (replayed, *left_out, lost)))


def alone(summary: Summary) -> list[str]:
    """A policy by itself: waits, slowdown, use, fairness."""
    if not summary.jobs:
        return ["Replay a log that has jobs."]
    if summary.jobs == 1:
        return [
            f"The only job waited {duration(summary.max_wait_seconds)}; its bounded slowdown is "
            f"{number(summary.max_bounded_slowdown)}.",
            "One job is too little to say anything of a policy.",
        ]
    sentences = []
    if summary.max_wait_seconds <= 0:
        sentences.append("No job waited: every one started the moment it was submitted.")
    else:
        sentences.append(
            f"Half of the jobs wait at most {duration(summary.median_wait_seconds)}, the mean wait "
            f"is {duration(summary.mean_wait_seconds)}, one job in a hundred waits longer than "
            f"{duration(summary.p99_wait_seconds)}, and the longest wait is "
            f"{duration(summary.max_wait_seconds)}."
        )
    sentences.append(
        f"The average bounded slowdown is {number(summary.average_bounded_slowdown)} (median "
        f"{number(summary.median_bounded_slowdown)}); {percent(summary.steady_utilization)} of the "
        f"machine is used."
    )
    sentences.append(
        f"{percent(summary.overtaken_share)} of the jobs were passed by one submitted later; "
        f"{percent(summary.passed_over_share)} would have fitted into its place."
    )
    return sentences


def deadlines_alone(summary: Summary) -> list[str]:
    """Deadlines and goodput of a policy by itself; nothing where no job has a deadline."""
    if not summary.slo_jobs:
        return []
    return [
        f"{said[:1].upper()}{said[1:]}." for said in (said_misses(summary), said_goodput(summary))
    ]


def deadlines_against(before: Summary, after: Summary) -> list[str]:
    """Deadlines and goodput against the baseline; nothing where no job has a deadline."""
    if not before.slo_jobs or not after.slo_jobs:
        return []
    moves = "falls" if after.slo_missed < before.slo_missed else "rises"
    misses = (
        f"The share of missed deadlines stays at {percent(before.slo_miss_rate)}"
        if before.slo_missed == after.slo_missed
        else f"The share of missed deadlines {moves} from "
        f"{percent(before.slo_miss_rate)} to {percent(after.slo_miss_rate)} of "
        f"{count(after.slo_jobs, 'job')}"
    )
    hours = number(before.goodput_hours), number(after.goodput_hours)
    moved = (
        f"stays at {hours[0]}" if hours[0] == hours[1] else f"goes from {hours[0]} to {hours[1]}"
    )
    goodput = (
        f"goodput {moved} cpu hours (on time: {number(before.slo_on_time_goodput_hours)} to "
        f"{number(after.slo_on_time_goodput_hours)}; best effort: "
        f"{number(before.best_effort_goodput_hours)} to {number(after.best_effort_goodput_hours)})"
    )
    return [f"{misses}; {goodput}."]


def against_baseline(comparison: Comparison, pair: pl.DataFrame, unit: str) -> list[str]:
    """A policy against the baseline: headlines, the price, who pays, how sure it is."""
    sentences = [_headline(comparison.change(metric)) for metric in _HEADLINES]
    sentences.append(_longest(comparison.change("max_wait_seconds")))
    sentences += _who_pays(pair, unit)
    sentences += _caveats(comparison)
    return sentences


def _headline(change: Change) -> str:
    name = METRIC_WORDS[change.metric]
    before, after = said(change.metric, change.baseline), said(change.metric, change.other.value)
    if change.difference.value == 0:
        return f"The {name} stays at {before}."
    if before == after:
        return f"The {name} hardly moves from {before}."
    verb = "falls" if change.difference.value < 0 else "rises"
    sentence = f"The {name} {verb} from {before} to {after}"
    if math.isfinite(change.ratio.value):
        sentence += f" ({_relative(change.ratio.value)})"
    if not change.difference.is_known:
        return sentence + "."
    low, high = change.difference.low, change.difference.high
    interval = f"{_difference(change.metric, low)} to {_difference(change.metric, high)}"
    sentence += f"; 95 % interval of the difference: {interval}"
    if change.difference.contains(0):
        sentence += ", which includes no change at all"
    return sentence + "."


def _relative(ratio: float) -> str:
    if ratio > 2:
        return f"{number(ratio)} times as much"
    return f"{percent(abs(ratio - 1))} {'less' if ratio < 1 else 'more'}"


def _difference(metric: str, difference: float) -> str:
    text = said(metric, difference)
    return text if difference <= 0 else f"+{text}"


def _longest(change: Change) -> str:
    before, after = change.baseline, change.other.value
    if before == after:
        return f"The longest wait stays at {duration(before)}."
    verb = "falls" if after < before else "grows"
    return f"The longest wait {verb} from {duration(before)} to {duration(after)}."


def _who_pays(pair: pl.DataFrame, unit: str) -> list[str]:
    difference = pair["wait_seconds_other"] - pair["wait_seconds"]
    gained, lost = (int(moved.sum()) / pair.height for moved in (difference < 0, difference > 0))
    if not gained and not lost:
        return ["Every job waits exactly as long as under the baseline."]
    sentences = [
        f"{percent(gained)} of the jobs wait less, {percent(lost)} wait longer, "
        f"{percent(max(1 - gained - lost, 0.0))} just as long."
    ]
    if not lost:
        return [*sentences, "No job pays for it: none waits longer."]
    bounds = width_bounds(float(pair["cpus"].to_numpy().max()))
    classes = size_changes(pair, bounds).filter(
        (pl.col("jobs") >= _FEWEST_JOBS) & (pl.col("ratio") > 1.1)
    )
    loser = movers(pair, 1)[1].row(0, named=True)
    who = f"job {loser['job_id']} ({count(round(loser['cpus']), unit)}, "
    who += f"{duration(loser['runtime_seconds'])} long) waits "
    who += f"{duration(loser['difference_seconds'])} longer"
    if classes.height:
        worst = classes.sort("ratio", descending=True).row(0, named=True)
        width = width_labels(bounds)[worst["width_class"]]
        sentences.append(
            f"Those who pay most: jobs on {width} {unit}{'' if width == '1' else 's'} running "
            f"{RUNTIME_LABELS[worst['runtime_class']]} ({count(worst['jobs'], 'job')}), whose "
            f"median wait goes from {duration(worst['median_wait_seconds'])} to "
            f"{duration(worst['median_wait_seconds_other'])}; {who}."
        )
    else:
        sentences.append(f"No class of jobs pays as a whole; the single job that pays most: {who}.")
    return sentences


def _caveats(comparison: Comparison) -> list[str]:
    sentences = []
    if comparison.unmatched_jobs:
        sentences.append(
            f"{count(comparison.unmatched_jobs, 'job')} ended in only one of the two schedules, or "
            "was killed at its requested time in only one, and is left out of the comparison."
        )
    if not comparison.blocks:
        sentences.append(
            "Too little data for intervals: the log has jobs on fewer than five days. Take the "
            "differences as what happened here, not as what to expect."
        )
    elif comparison.block_seconds <= 86400:
        sentences.append(
            f"Intervals come from {comparison.blocks} days, fewer than five weeks: one day's queue "
            "reaches into the next, so they are narrower than they should be."
        )
    return sentences
