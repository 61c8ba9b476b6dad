"""``foresail slurm``: starts of a Slurm cluster's jobs, and lifting of holds, with no service."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import typer

from foresail.cli.formats import print_json, print_table
from foresail.cli.log_options import CommandGroup
from foresail.cli.progress import doing
from foresail.explain import start_words as words
from foresail.model.errors import InputError
from foresail.model.words import count, duration, duration_of, percent

if TYPE_CHECKING:
    from foresail.explain.forecast import WaitingForecast
    from foresail.service.store.protocol import ForecastOutcome
    from foresail_slurm.state import SlurmState

app = CommandGroup(
    "A Slurm cluster: starts of its jobs, as foreseen and as they were, and its holds."
)


@app.named("start")
def start(job_id: str | None = None, /, as_json: bool = False) -> None:
    """Foresee when waiting jobs start, by how long the like have run; beside it Slurm's estimate.

    Options:
        job_id [JOB]: Only this one, or the tasks of this array.
        as_json --json: As JSON.
    """
    from foresail_slurm.advice import foreseen_starts, read_slurm

    with doing("reading Slurm"):
        state, forecaster, _, remark = read_slurm()
    asked = _asked(state, job_id)
    starts, answers = foreseen_starts(state, forecaster), []
    for answer in asked:
        waits = answer["job_id"]
        aside = state.aside.get(waits)
        answer |= {"left_to_slurm": aside, "by_slurm": state.estimates[waits]}
        answers.append(answer | _foreseen(None if aside else starts.get(waits), state.now))
    answers.sort(key=lambda each: math.inf if each["start"] is None else each["start"]["p50"])
    if as_json:
        print_json({"made_seconds": state.now, "jobs": answers, "remark": remark})
        return
    for each in answers if job_id is not None else ():
        if each["start"] is not None:
            typer.echo(f"{each['job_id']} starts {words.range_words(each['start'], state.now)}")
    headings = ("JOB", "NAME", "USER", "STARTS", "WITHIN AN HOUR", "BY SLURM")
    print_table(headings, [_cells(each, state.now) for each in answers])
    if remark:
        typer.echo(f"foresail: {remark}", err=True)


@app.named("advise")
def advise(
    job_id: str | None = None, /, risk: float = 0.05, *, as_lua: bool = False, as_json: bool = False
) -> None:
    """Advise on waiting jobs: time limits, shapes that start sooner, what cannot run. Only said.

    Options:
        job_id [JOB]: Only this one, or the tasks of this array; changes are then tried.
        risk: Chance that the limit ends a job too soon.
        as_lua --lua: Limits by user and name of a job, as a table for job_submit.lua.
        as_json --json: As JSON.
    """
    from foresail_slurm.advice import Adviser, read_slurm

    if not 0.0 < risk < 1.0:
        raise InputError("no chance", field="--risk", value=risk, expected="above 0, below 1")
    with doing("reading Slurm"):
        state, forecaster, past, remark = read_slurm()
    adviser = Adviser(past, forecaster, state.now, risk)
    if as_lua:
        typer.echo(adviser.lua_table(past.submitted.values()), nl=False)
    else:
        answers = _asked(state, job_id)
        for each in answers:
            each |= asdict(adviser.advice(state, each["job_id"], with_starts=job_id is not None))
        if as_json:
            print_json({"made_seconds": state.now, "jobs": answers, "remark": remark})
            return
        headings = ("JOB", "NAME", "USER", "ADVICE")
        rows = [(*map(each.get, ("job_id", "name", "user")), each["sentences"]) for each in answers]
        print_table(headings, [(*map(str, who), "; ".join(said)) for *who, said in rows])
    if remark:
        typer.echo(f"foresail: {remark}", err=True)


@app.named("order")
def order(partition: str, /, most: int = 1000, *, is_tried: bool = False) -> None:
    """Let jobs of a partition that are likely short go first: adds to their priority (SiteFactor).

    It takes an operator's rights, and priority/multifactor; all else of a priority is Slurm's.

    Options:
        partition [PARTITION]: The partition.
        most: Added for a job of no length; half for one of 100 minutes, 0 for a week. 0 undoes it.
        is_tried --dry-run: Say only what would be added.
    """
    from foresail_slurm.advice import Adviser, read_slurm
    from foresail_slurm.orders import set_site_factors

    if not 0 <= most <= 1_000_000_000:
        raise InputError("out of range", field="--most", value=most, expected="0 to 1000000000")
    with doing("reading Slurm"):
        state, forecaster, past, remark = read_slurm()
    adviser = Adviser(past, forecaster, state.now, 0.5)
    waiting = {each: state.jobs[each] for each in state.reasons}
    wanted = {
        each: adviser.site_factor(job, most)
        for each, job in waiting.items()
        if job.partition == partition
    }
    if not wanted:
        raise InputError("no job waits there", field="PARTITION", value=partition)
    try:
        changed = set_site_factors(wanted, is_tried=is_tried)
    except ConnectionError as error:
        raise InputError(str(error), source="Slurm") from error
    said = ", ".join(f"{each} {factor}" for each, factor in changed.items())
    done = "would set" if is_tried else "set"
    typer.echo(f"{done} {count(len(changed), 'job')}{': ' * bool(said)}{said}")
    if remark:
        typer.echo(f"foresail: {remark}", err=True)


@app.named("report")
def report(source: Path, /, weeks: float = 2.0, as_json: bool = False) -> None:
    """Compare forecasts of an observing service, and Slurm's own, with when jobs started.

    Options:
        source STATE: State folder of the service, or its configuration file (TOML).
        weeks: So many weeks back.
        as_json --json: As JSON.
    """
    from foresail.cli.db import opened_store
    from foresail.service.store.protocol import ForecastKind

    now = time.time()
    with opened_store(source) as store, doing("reading the store"):
        outcomes = store.forecast_outcomes(1_000_000, now)
    by_partition: dict[str, list[ForecastOutcome]] = {}
    for each in outcomes:
        row = each.forecast
        is_due = each.has_started or row.high_seconds < now
        is_new = row.made_seconds >= now - weeks * 7 * 86_400.0
        if is_due and is_new and row.kind != ForecastKind.UNKNOWN:
            for name in (row.partition or "", "all"):
                by_partition.setdefault(name, []).append(each)
    if not by_partition:
        raise InputError("no forecast has come about", source=source, field="--weeks", value=weeks)
    names = sorted(by_partition, key=lambda name: (name == "all", name))
    answers = [{"partition": name} | _compared(by_partition[name]) for name in names]
    if as_json:
        print_json({"made_seconds": now, "weeks": weeks, "partitions": answers})
        return
    headings = ("PARTITION", "FORECASTS", "WITHIN 80 %", "SLURM'S TOO", "ERROR", "SLURM'S ERROR")
    rows = [
        (name, f"{total:,}", percent(within), f"{both:,}", duration(ours), duration(slurms))
        for name, total, within, both, ours, slurms in map(dict.values, answers)
    ]
    print_table(headings, rows)


def _compared(outcomes: Sequence[ForecastOutcome]) -> dict[str, Any]:
    """Return what became of forecasts, and of Slurm's where there were both."""
    ours, slurms, held = list[float](), list[float](), list[bool]()
    for each in outcomes:
        row, start = each.forecast, each.seconds
        held.append(each.has_started and row.low_seconds <= start <= row.high_seconds)
        if each.has_started and row.by_cluster_seconds:
            ours.append(abs(row.median_seconds - start))
            slurms.append(abs(max(row.by_cluster_seconds, row.made_seconds) - start))
    found = {"forecasts": len(held), "within_range": fmean(held), "compared": len(ours)}
    means = [fmean(each) if each else None for each in (ours, slurms)]
    return found | dict(zip(("error_seconds", "slurm_error_seconds"), means, strict=True))


def _asked(state: SlurmState, job_id: str | None) -> list[dict[str, Any]]:
    """Return id, name and user of jobs that wait: all, or a job or the tasks of an array."""
    asked = [each for each in state.estimates if job_id in (None, each, each.partition("_")[0])]
    if job_id is not None and not asked:
        raise InputError("does not wait", field="JOB", value=job_id, expected="an id of squeue")
    jobs = [(each, state.jobs[each]) for each in asked]
    names = ["".join(c for c in job.name or "" if c.isprintable()) for _, job in jobs]
    return [
        {"job_id": each, "name": name, "user": job.user}
        for (each, job), name in zip(jobs, names, strict=True)
    ]


def _foreseen(found: WaitingForecast | None, now: float) -> dict[str, Any]:
    """Return what JSON has of a start; one at no known time is not known."""
    if found is None or math.isinf(found.start.median):
        return {"start": None, "within_hour": None}
    points = (found.start.low, found.start.median, found.start.high)
    moments = [None if math.isinf(each) else each for each in points]
    start = dict(zip(words.LEVELS, moments, strict=True))
    return {"start": start, "within_hour": words.chance_by(start, found.never, now, now + 3_600.0)}


def _cells(answer: Mapping[str, Any], now: float) -> tuple[str, ...]:
    said, within, by_slurm = answer["left_to_slurm"] or words.UNKNOWN, "", answer["by_slurm"]
    if answer["start"] is not None:
        said, within = words.range_cell(answer["start"], now), percent(answer["within_hour"])
    moments = dict.fromkeys(words.LEVELS, max(by_slurm or now, now))
    estimate = "" if by_slurm is None else words.range_cell(moments, now)
    return answer["job_id"], answer["name"], answer["user"] or "", said, within, estimate


@app.named("release-all")
def release_all(state: Path, /, *, is_tried: bool = False) -> None:
    """Leave all jobs to Slurm that Foresail holds there; this takes no service.

    It takes an operator's rights. What others hold, or a person by foresail hold, stays held.

    Options:
        state [STATE]: The folder of the service's state.
        is_tried --dry-run: Say only which these are.
    """
    from foresail_slurm import orders

    try:
        released = orders.release_all(state, is_tried=is_tried)
    except ConnectionError as error:
        raise InputError(str(error), source="Slurm") from error
    done = "would let go of" if is_tried else "let go of"
    typer.echo(f"{done} {count(len(released), 'job')}{': ' * bool(released)}{', '.join(released)}")


@app.named("watch")
def watch(state: Path, /) -> None:
    """Watch over a service that decides on Slurm; if it falls silent, release-all within a minute.

    It runs until it is ended, as a process of its own, with the rights of the service.

    Options:
        state [STATE]: The folder of the service's state.
    """
    from foresail_slurm import orders

    orders.watch(state, lambda sentence: typer.echo(f"foresail: {sentence}", err=True))


@app.named("burst")
def burst(
    state: Path,
    fixed: str,
    rented: str,
    /,
    policy: str = "speculative",
    tried: str = "",
    wait_limit: str = "24h",
    short: str = "15min",
    *,
    is_tried: bool = False,
) -> None:
    """Move jobs that find no room to rented nodes, as a waiting policy decides; until it is ended.

    It takes an operator's rights, and touches jobs of these partitions alone. It may be ended at
    any moment, and begun anew.

    Options:
        state [STATE]: Folder in which decisions are noted.
        fixed [FIXED]: Partition of the nodes that are there anyway, to which jobs are submitted.
        rented [RENTED]: Partition of nodes that Slurm starts when they are needed.
        policy POLICY: Of foresail cloud: who waits, who is rented a node, who is tried first.
        tried PARTITION: One of the same rented nodes, with a limit, for jobs that are tried.
        wait_limit TIME: Longest wait (b).
        short TIME: Runtime below which a job is short, and after which a trial is cut (t).
        is_tried --dry-run: Say only what would be done now.
    """
    from foresail.cloud.waiting.simulating import waiting_policy
    from foresail_slurm.bursting import Bursting, Journal, limit_of_partition
    from foresail_slurm.renting import Rounds, require_operator

    limits = [limit_of_partition(each) for each in (fixed, rented, tried) if each]
    times = duration_of(wait_limit, "--wait-limit"), duration_of(short, "--short")
    bursting = Bursting(fixed, rented, tried, waiting_policy(policy, *times), limits[-1])
    journal = Journal(state)
    rounds = Rounds(bursting, journal, lambda said: typer.echo(f"foresail: {said}", err=True))
    try:
        if is_tried:
            rounds.round(is_tried=True)
            return
        require_operator()
        with journal.alone():
            rounds.round()
            rounds.go_on()
    except ConnectionError as error:
        raise InputError(str(error), source="Slurm") from error


@app.named("burst-cost")
def burst_cost(
    state: Path,
    /,
    per_cpu_hour: float = 0.0,
    per_node_hour: float = 0.0,
    weeks: float = 2.0,
    as_json: bool = False,
) -> None:
    """Show what rented nodes have cost, and waits, beside what was foreseen of both.

    Money is for the time that jobs ran; how long nodes boot or idle is not known to accounting.

    Options:
        state [STATE]: Folder in which burst has noted its decisions.
        per_cpu_hour PRICE: Price of a cpu for an hour.
        per_node_hour PRICE: Price of a node for an hour, whoever else is on it.
        weeks: So many weeks back.
        as_json --json: As JSON.
    """
    from foresail_slurm.bursting import Journal
    from foresail_slurm.renting import costs_of, read_runs

    now, decisions = time.time(), Journal(state).decisions
    for field, value in (("--per-cpu-hour", per_cpu_hour), ("--per-node-hour", per_node_hour)):
        if not 0.0 <= value < math.inf:
            raise InputError("no price", field=field, value=value, expected="0 or more")
    if not decisions:
        raise InputError("nothing was decided here", source=state, expected="the STATE of burst")
    with doing("reading Slurm"):
        places = sorted({mark.place for _, mark in decisions})
        runs = read_runs(now - weeks * 7 * 86_400.0, *places)

    prices = per_cpu_hour, per_node_hour
    found = [*costs_of(runs, decisions, prices, now)]
    if as_json:
        print_json({"made_seconds": now, "weeks": weeks, "decisions": [*map(asdict, found)]})
        return
    headings = ("DECISION", "RUNS", "CPU HOURS", "COST", "FORESEEN", "MEAN WAIT", "FORESEEN THERE")
    table = []
    for each in found:
        amounts = (f"{value:,.2f}" for value in (each.cpu_hours, each.cost, each.cost_foreseen))
        waits = duration(each.wait), duration(each.wait_foreseen)
        table.append((each.went, f"{each.runs:,}", *amounts, *waits))
    print_table(headings, table)
