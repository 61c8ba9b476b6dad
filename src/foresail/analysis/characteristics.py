"""Characteristics of logs by the study: analyses asked, and the verdicts on what they found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from foresail.analysis.finding import Analysis, Finding, Unavailable
from foresail.model.registry import Entry, entries, find
from foresail.model.words import duration, number, percent
from foresail.traces.workload import Workload


@dataclass(frozen=True)
class Analysed:
    """Findings of the analyses on a log, in the order of the study; or the fields it lacks.

    ``span_seconds`` is from the first submission to the last.
    """

    log: str
    jobs: int
    span_seconds: float
    findings: tuple[Finding | Unavailable, ...]

    def finding(self, name: str) -> Finding | None:
        """Return the finding of the analysis of this name, if it was asked and could answer."""
        for found in self.findings:
            if found.name == name and isinstance(found, Finding):
                return found
        return None


def analyse(
    workload: Workload,
    log: str,
    names: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Analysed:
    """Ask a workload of any number of jobs everything, or in this order what is named.

    ``log`` is what to call it; ``progress`` is called with how many are done, and of how many.

    Raises ``UnknownNameError`` if there is no analysis of a name.
    """
    asked = chosen(names)
    findings = []
    for done, entry in enumerate(asked):
        if progress is not None:
            progress(done, len(asked))
        findings.append(_ask(entry, workload))
    submit = workload.jobs["submit_seconds"].drop_nulls().to_numpy()
    return Analysed(
        log=log,
        jobs=len(workload),
        span_seconds=float(submit.max() - submit.min()) if submit.size else 0.0,
        findings=tuple(findings),
    )


def chosen(names: Sequence[str]) -> list[Entry]:
    """The analyses of these names; all of them, by section of the study, if none is named.

    Raises ``UnknownNameError`` if there is no analysis of a name.
    """
    if names:
        return [find("analysis", name) for name in dict.fromkeys(names)]
    return sorted(entries("analysis"), key=lambda entry: (_section(entry), entry.name))


def _ask(entry: Entry, workload: Workload) -> Finding | Unavailable:
    analysis: Analysis = entry.build(entry.parameters())
    return analysis.examine(workload)


def _section(entry: Entry) -> tuple[float, ...]:
    """Return the place in the study; analyses that do not state one come last."""
    section = getattr(entry.build, "section", None)
    return tuple(float(part) for part in section.split(".")) if section else (float("inf"),)


Verdict = Literal["yes", "no", "unknown"]

STUDIED: Final = ("Google", "TwoSigma", "Mustang", "OpenTrinity")
"""The platforms of the study."""

SMALL_JOBS_SHARE: Final = 0.5
"""Least share of jobs below 0.01 % of the machine: a majority; Google has 90 %."""

SHORT_P80_SECONDS: Final = 38 * 60.0
"""Geometric mean of the 80 % quantiles of Google (12 min, yes) and TwoSigma (2 h, no)."""

DAYTIME_SHARE: Final = 0.58
"""Least share submitted between 7 and 19 h: each of these hours has 1.4 times as many as each
other one. Even submission has 0.5, and Google, busiest from 0 to 4 h, has less."""

JOBS_PER_HOUR: Final = 150.0
"""Geometric mean of the rates of Mustang (2.1 M jobs in 61 months) and TwoSigma (3.2 M in 9)."""

OVERCOMMITTED_SHARE: Final = 1.0
"""More is allocated than there is, on average; Google has 1.1, the others at most 0.98."""

SUB_SECOND_SHARE: Final = 0.44
"""The least share of gaps below a second among the platforms, all of which have a yes."""

VARIABLE_USERS_SHARE: Final = 0.5
"""Share of users who deviate at least twofold from their mean: most (60-80 %) of those with a yes,
the minority at Google."""

UNSUCCESSFUL_SHARE: Final = 0.15
"""Chosen: the study gives ratios only (Google has 1.4 to 6.8 times the others' share)."""

UNSUCCESSFUL_CPU_SHARE: Final = 0.2
"""Chosen: the study gives ratios only (34-80 % less at those with a no than at the others)."""

SUCCESS_CHANGE_PER_DECADE: Final = -0.02
"""Chosen: success falls by at least 2 percentage points for every tenfold of the cpu hours."""


@dataclass(frozen=True, slots=True)
class Characteristic:
    """One row of the comparison."""

    name: str
    """Name of the characteristic in the study."""
    analysis: str
    scalar: str
    """The finding's number that decides."""
    threshold: float
    """The value that decides."""
    rule: str
    """Condition for a yes, in words, with ``{}`` for the threshold."""
    studied: tuple[Verdict, Verdict, Verdict, Verdict]
    """The study's verdicts on its platforms, in the order of ``STUDIED``."""
    relation: Literal["at least", "at most", "more than"] = "at least"
    """Comparison of the number with the threshold that is a yes."""
    kind: Literal["share", "duration", "rate", "points"] = "share"
    """Words for the number."""
    local_only: bool = False
    """True if hours must be those of the place."""

    @property
    def yes_if(self) -> str:
        """Return the condition of a yes, in words."""
        return self.rule.format(said(self.threshold, self.kind))


@dataclass(frozen=True, slots=True)
class Cell:
    """A log's verdict on one characteristic and the number behind it, None if there is none."""

    verdict: Verdict
    value: float | None
    said: str


CHARACTERISTICS: Final = (
    Characteristic(
        "Majority of jobs are small",
        "job_sizes",
        "share_below_0.01_percent",
        SMALL_JOBS_SHARE,
        "at least {} of the jobs ask for less than 0.01 % of the machine",
        ("yes", "no", "no", "no"),
    ),
    Characteristic(
        "Majority of jobs are short",
        "job_durations",
        "p80_seconds",
        SHORT_P80_SECONDS,
        "four in five jobs run for at most {}",
        ("yes", "no", "no", "no"),
        relation="at most",
        kind="duration",
    ),
    Characteristic(
        "Diurnal patterns in submissions",
        "hourly_submissions",
        "share_by_day",
        DAYTIME_SHARE,
        "at least {} of the jobs are submitted between 7 and 19 h",
        ("no", "yes", "yes", "yes"),
        local_only=True,
    ),
    Characteristic(
        "High job submission rate",
        "hourly_submissions",
        "mean_jobs_per_hour",
        JOBS_PER_HOUR,
        "at least {} on average over whole days",
        ("yes", "yes", "no", "no"),
        kind="rate",
    ),
    Characteristic(
        "Resource over-commitment",
        "allocation_over_time",
        "mean_allocated_share",
        OVERCOMMITTED_SHARE,
        "more than {} of the cpus are allocated on average",
        ("yes", "no", "no", "no"),
        relation="more than",
    ),
    Characteristic(
        "Sub-second inter-arrival periods",
        "interarrivals",
        "share_below_1_second",
        SUB_SECOND_SHARE,
        "at least {} of the jobs follow within a second",
        ("yes", "yes", "yes", "yes"),
    ),
    Characteristic(
        "User request variability",
        "user_variability",
        "share_of_users_2_times_or_more",
        VARIABLE_USERS_SHARE,
        "at least {} of the users deviate twofold or more from their mean size",
        ("no", "yes", "yes", "yes"),
    ),
    Characteristic(
        "High fraction of unsuccessful jobs",
        "outcome_breakdown",
        "unsuccessful_share_of_jobs",
        UNSUCCESSFUL_SHARE,
        "at least {} of the jobs fail or are aborted",
        ("yes", "yes", "no", "yes"),
    ),
    Characteristic(
        "Unsuccessful jobs consume much",
        "outcome_breakdown",
        "unsuccessful_share_of_cpu_time",
        UNSUCCESSFUL_CPU_SHARE,
        "at least {} of the cpu time goes to unsuccessful jobs",
        ("yes", "yes", "no", "no"),
    ),
    Characteristic(
        "Longer, larger jobs fail more",
        "success_by_cpu_hours",
        "success_change_per_decade",
        SUCCESS_CHANGE_PER_DECADE,
        "the success rate changes by {} or less with every tenfold of cpu hours",
        ("yes", "no", "no", "no"),
        relation="at most",
        kind="points",
    ),
)
"""Rows of the dissertation's table 3.1, in its order."""


def verdict(characteristic: Characteristic, analysed: Analysed) -> Cell:
    """Return the verdict on a characteristic; unknown where the analysis could not answer."""
    found = analysed.finding(characteristic.analysis)
    value = None if found is None else found.scalars.get(characteristic.scalar)
    if found is None or value is None:
        return Cell("unknown", None, "–")
    text = said(value, characteristic.kind)
    if characteristic.local_only and not found.scalars.get("hours_are_local"):
        return Cell("unknown", value, f"{text}, zone unknown")
    holds = {
        "at least": value >= characteristic.threshold,
        "at most": value <= characteristic.threshold,
        "more than": value > characteristic.threshold,
    }[characteristic.relation]
    return Cell("yes" if holds else "no", value, text)


def compared(logs: Sequence[Analysed]) -> list[tuple[Characteristic, tuple[Cell, ...]]]:
    """Every characteristic with a cell per log."""
    return [(row, tuple(verdict(row, log) for log in logs)) for row in CHARACTERISTICS]


def said(value: float, kind: str) -> str:
    """The number that decides, as people say it."""
    if kind == "share":
        return percent(value)
    if kind == "duration":
        return duration(value)
    if kind == "rate":
        return f"{number(value)} jobs/h"
    return f"{number(100 * value)} points"
