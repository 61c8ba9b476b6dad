"""``foresail campaign``: many policies on many logs, and the choice among them by leave-one-out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foresail.cli._scenarios import ConventionsName, EnforceLimits
from foresail.cli.formats import TableFormat, TableFormatOption, made_by, print_json, print_table
from foresail.cli.log_options import CommandGroup, FilterNames, Plugins
from foresail.cli.progress import doing
from foresail.model.errors import InputError
from foresail.model.words import number, percent

if TYPE_CHECKING:
    import polars as pl

    from foresail.campaigns.plan import CampaignPlan, LogSource
    from foresail.campaigns.results import Results, Run
    from foresail.campaigns.running import Pool
    from foresail.campaigns.selection import SelectionRule

app = CommandGroup("Replay many policies on many logs, and choose by leave-one-out.")

Folder: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", help="A campaign's folder.")]


@dataclass(frozen=True)
class ChoiceOptions:
    """By what a policy is chosen, and how the answer is printed.

    Options:
        normalised: Choose by the mean of ratios to the baseline, not the sum.
        longest_wait RATIO (0.0..): Choose only policies whose longest wait on the other logs is at
            most this multiple of the baseline's.
        baseline POLICY: What policies are measured against.
    """

    normalised: bool = False
    longest_wait: float | None = None
    baseline: str = "easy"
    output_format: TableFormatOption = TableFormat.TABLE
    plugins: Plugins = None

    def rule(self) -> SelectionRule:
        """Return how to choose."""
        from foresail.campaigns.selection import SelectionRule
        from foresail.control.policy import parse_policy

        combine: Any = "ratios" if self.normalised else "sum"
        return SelectionRule(combine, self.longest_wait, parse_policy(self.baseline).text)

    def print(
        self,
        table: pl.DataFrame,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        right: int,
    ) -> None:
        """A table for people, or everything in it as JSON (unknown is null) or CSV."""
        if self.output_format is TableFormat.JSON:
            print_json({"rows": table.to_dicts()})
        elif self.output_format is TableFormat.CSV:
            typer.echo(table.write_csv(), nl=False)
        else:
            print_table(headings, rows, right=right)


@app.named("run")
def run(
    sources: list[Path],
    /,
    output: Path,
    triples: bool = False,
    policies: list[str] | None = None,
    filters: FilterNames = None,
    conventions: ConventionsName = "standard",
    enforce_limits: EnforceLimits = False,
    workers: int | None = None,
    dask: str | None = None,
    plugins: Plugins = None,
) -> None:
    """Replay every policy on every log; go on where an earlier start was interrupted.

    Options:
        sources FILE.toml | LOG...: A campaign file, or logs.
        output DIR: Results; what is there is not run again.
        triples: The study's 128 triples and 2 clairvoyant ones.
        policies --with POLICY: A policy; see foresail policies.
        workers (1..): Processes on this machine [one per processor].
        dask ADDRESS: Run on the Dask cluster of this scheduler.
    """
    from foresail.campaigns.results import Results
    from foresail.campaigns.running import carry_out

    _require_found_by_workers(plugins, dask)
    if len(sources) == 1 and sources[0].suffix == ".toml":
        given = triples or policies or filters or enforce_limits or conventions != "standard"
        plan = _from_file(sources[0], bool(given))
    else:
        plan = _from_options(sources, triples, policies, filters, conventions, enforce_limits)
    results = Results(output)
    total = len(plan.logs) * len(plan.policies)
    with _progress(plan, results) as (preparing, finished):
        replayed = carry_out(
            plan, results, _pool(workers, dask), preparing=preparing, finished=finished
        )
    _say(results.said())
    already = f", {total - replayed:,} were there" if replayed < total else ""
    typer.echo(f"{replayed:,} of {total:,} runs replayed{already}; results: {output}")


@app.named("report")
def report(folder: Folder, options: ChoiceOptions = ChoiceOptions()) -> None:
    """Write report.html and the tables behind it into the folder; print slowdowns per log."""
    from foresail.campaigns.page import HEADINGS, write_report
    from foresail.campaigns.results import Results

    rule = options.rule()
    command = made_by()
    with doing("writing the report"):
        written = write_report(Results(folder), rule, command=command)
    rows = [
        (row["log"], *(number(row[column]) for column in HEADINGS))
        for row in written.headline.iter_rows(named=True)
    ]
    _say(written.said)
    options.print(written.headline, ("log", *HEADINGS.values()), rows, right=len(HEADINGS))
    typer.echo(f"report: {folder / 'report.html'}", err=True)


@app.named("choose")
def choose(
    folder: Folder, among: list[str] | None = None, options: ChoiceOptions = ChoiceOptions()
) -> None:
    """Choose for each log the policy that the results on the other logs recommend.

    Options:
        among POLICY: Choose among these only.
    """
    from foresail.campaigns.results import Results
    from foresail.campaigns.selection import SCORE, candidates, leave_one_out, ranking
    from foresail.control.policy import parse_policy

    rule = options.rule()
    results = Results(folder).table()
    policies = [parse_policy(text).text for text in among or candidates(results)]
    with doing("choosing"):
        chosen = leave_one_out(results, rule, policies)
    rows = [
        (
            row["log"],
            row["policy"],
            number(row["baseline"]),
            number(row[SCORE]),
            percent(row["reduction"]),
            f"{number(row['longest_wait_ratio'])}×",
        )
        for row in chosen.iter_rows(named=True)
    ]
    headings = ("log", "chosen by the others", rule.baseline, "chosen", "reduction", "longest wait")
    options.print(chosen, headings, rows, right=4)
    best = ranking(results, rule, policies)
    mean = float(chosen["reduction"].to_numpy().mean())
    typer.echo(f"mean reduction: {percent(mean)}", err=True)
    if not best.is_empty():
        typer.echo(f"for another log like these: {best['policy'][0]}", err=True)


def _say(said: Sequence[str]) -> None:
    for words in said:
        typer.echo(words, err=True)


def _require_found_by_workers(plugins: list[Path] | None, dask: str | None) -> None:
    if plugins and dask is not None:
        raise InputError(
            "the workers of a Dask cluster have no files of yours",
            field="--plugin",
            value=str(plugins[0]),
            expected="--workers, or a package with an entry point foresail.plugins on each of them",
        )


def _from_file(path: Path, options_given: bool) -> CampaignPlan:
    from foresail.campaigns.plan import read_plan

    if options_given:
        raise InputError(
            "a campaign file says all of the campaign itself",
            source=path,
            expected="no --triples, --with, --filter, --conventions, --enforce-limits beside it",
        )
    return read_plan(path)


def _from_options(
    logs: Sequence[Path],
    triples: bool,
    policies: Sequence[str] | None,
    filters: Sequence[str] | None,
    conventions: str,
    enforce_limits: bool,
) -> CampaignPlan:
    from foresail.campaigns.plan import CampaignPlan, LogSource, log_name, policies_of

    return CampaignPlan(
        tuple(LogSource(log_name(log), log) for log in logs),
        policies_of(policies or (), triples=triples),
        conventions,
        tuple(filters or ["replayable"]),
        enforce_limits,
    )


def _pool(workers: int | None, dask: str | None) -> Pool:
    if dask is None:
        from foresail.campaigns.running import LocalPool

        return LocalPool(workers or os.cpu_count() or 1)
    if workers is not None:
        raise InputError("a Dask cluster has its own workers", expected="--workers or --dask")
    from foresail.campaigns.running import DaskPool

    return DaskPool(dask)


@contextmanager
def _progress(
    plan: CampaignPlan, results: Results
) -> Iterator[tuple[Callable[[LogSource], None], Callable[[Run, Any], None]]]:
    """Yield functions to call for a log that is read and a run that is done."""
    from foresail.campaigns.results import runs_of

    runs = runs_of(plan)
    before = sum(results.is_finished(each) for each in runs)
    lines = not sys.stderr.isatty()
    with doing("replaying") as entered:
        entered.progressed(before, len(runs))
        done = before

        def preparing(log: LogSource) -> None:
            entered.what = f"reading {log.name}"
            if lines:
                typer.echo(f"reading {log.name}", err=True)

        def finished(run: Run, measured: Any) -> None:
            nonlocal done
            done += 1
            entered.what = f"replaying {run.log}"
            entered.progressed(done, len(runs))
            if lines:
                score = number(measured.average_bounded_slowdown)
                typer.echo(f"{done} of {len(runs)}: {run.log}: {run.policy}: {score}", err=True)

        yield preparing, finished
