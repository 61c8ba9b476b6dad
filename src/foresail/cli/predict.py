"""``foresail predict``: predictors evaluated on logs, trained, merged and shown."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from foresail.cli.formats import Format, FormatOption, console, made_by, print_json, print_table
from foresail.cli.log_options import LEARNABLE, CommandGroup, LogOptions, Plugins, load
from foresail.cli.progress import doing, in_shares
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.words import count, number

if TYPE_CHECKING:
    from foresail.evaluation.replaying import Evaluation
    from foresail.model.short_form import PlugIn


app = CommandGroup("Evaluate predictors on logs; train, merge and show their state.")


STANDARD: Final = ("requested", "recent", "quantile_regression", "similar", "history", "combined")
"""Predictors that are evaluated when none is named."""

_PREDICTOR_HELP: Final = (
    f'Such as "recent(k=2)"; the first is the baseline [{", ".join(STANDARD)}].'
)
_FILTER_HELP: Final = (
    f"Cleaning filters, in order [{', '.join(LEARNABLE)}]; see foresail trace filter."
)


class _LearnedWhen(StrEnum):
    """Moment when a job is learned."""

    ON_COMPLETION = "on_completion"
    IN_ORDER = "in_order"


@app.named("evaluate")
def evaluate(
    logs: list[Path],
    /,
    predictors: Annotated[
        list[str] | None, typer.Option("--predictor", metavar="PREDICTOR", help=_PREDICTOR_HELP)
    ] = None,
    quantity: str = "runtime",
    learning: _LearnedWhen = _LearnedWhen.ON_COMPLETION,
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="NAME(PARAMETER=VALUE,...)", help=_FILTER_HELP),
    ] = None,
    log_options: LogOptions = LogOptions(),
    output_format: FormatOption = Format.TABLE,
    output: Path | None = None,
) -> None:
    """Replay predictions in order of submission, learning as jobs end, and score them.

    Options:
        logs LOG [LOG ...]: Job logs, or workload folders.
        quantity: What is predicted: runtime, cpu, memory, cpu_time, memory_time, cpu_max, ...
        learning: A job is learned once it has ended, or right after it was predicted.
        output DIR: Write a report and tables; a folder for each log where there are several.
    """
    from foresail.evaluation.replaying import evaluate
    from foresail.evaluation.scores import scores
    from foresail.reports.evaluation.view import terminal_table

    parts = _parts(predictors or STANDARD, quantity)
    folders = _folders(logs, output)
    facts: list[Any] = []
    for log, folder in zip(logs, folders, strict=True):
        workload = load(log, log_options, filters or LEARNABLE)
        evaluations = []
        for position, part in enumerate(parts, start=1):
            what = f"{log.name}, predictor {position} of {len(parts)}: {part.text}"
            with doing(what, said=in_shares) as entered:
                evaluations.append(
                    evaluate(
                        workload,
                        part,
                        quantity=quantity,
                        learning=cast("Any", learning.value),
                        watch=entered.watch,
                    )
                )
        if output_format is Format.TABLE:
            console().print(terminal_table([scores(each) for each in evaluations]))
            typer.echo()
        else:
            facts += _as_json(evaluations)
        if folder is not None:
            from foresail.reports.evaluation.page import write_report

            with doing("writing the report"):
                write_report(workload, evaluations, folder, command=made_by())
            typer.echo(f"report: {folder / 'report.html'}", err=True)
    if output_format is Format.JSON:
        print_json({"predictors": facts})


def _parts(predictors: Sequence[str], quantity: str) -> list[PlugIn]:
    """All that can be refused before a long log is read."""
    from foresail.model.short_form import part_of
    from foresail.traces.measured import QUANTITIES

    if quantity not in QUANTITIES:
        raise UnknownNameError("quantity", quantity, QUANTITIES)
    parts = [part_of("predictor", text) for text in predictors]
    for part in parts:
        part.build()
    return parts


def _folders(logs: Sequence[Path], output: Path | None) -> list[Path | None]:
    """A folder for the results of each log, which can be made."""
    from foresail.model.whole_files import require_folder

    if output is None:
        return [None] * len(logs)
    names = [log.name.partition(".swf")[0].partition(".csv")[0] for log in logs]
    if len(set(names)) < len(names):
        raise InputError(
            "two logs have the same name", field="LOG", expected="a call for each of them"
        )
    folders = [output] if len(logs) == 1 else [output / name for name in names]
    for folder in folders:
        require_folder(folder)
    return [*folders]


def _as_json(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    from foresail.evaluation.scores import scores
    from foresail.evaluation.tables import detail

    return [
        scores(each).as_json() | {name: table.to_dicts() for name, table in detail(each).items()}
        for each in evaluations
    ]


@app.named("train")
def train(
    log: Path,
    /,
    predictor: str,
    output: Path,
    filters: list[str] | None = None,
    log_options: LogOptions = LogOptions(),
) -> None:
    """Learn from a log, for `foresail run --learned` or to be merged with others.

    Options:
        log LOG: A job log, or a workload folder.
        predictor PREDICTOR: Such as "history(bins=40)".
        output STATE: Where to write what was learned.
        filters --filter NAME(PARAMETER=VALUE,...): Cleaning filters, in order [drop_no_processors,
            fill_processors, drop_no_runtime].
    """
    from foresail.model.short_form import part_of
    from foresail.predictors.saving import StateHeader, require_savable, save_state
    from foresail.predictors.training import train

    part = part_of("predictor", predictor)
    built = part.build()
    header = StateHeader(part.text)
    require_savable(built, part.text)
    if not output.parent.is_dir():
        raise InputError("there is no such folder", source=output.parent)
    workload = load(log, log_options, filters or LEARNABLE)
    with doing(f"learning from {count(len(workload), 'job')}", said=in_shares) as entered:
        jobs = train(workload, built, watch=entered.watch)
        save_state(output, built, header)
    typer.echo(f"{output}: {part.text} after {count(jobs, 'job')}")


@app.named("merge")
def merge(states: list[Path], /, output: Path, plugins: Plugins = None) -> None:
    """Put together what shards of one predictor learned from different jobs.

    Options:
        states STATE STATE [STATE ...]: Learned states.
        output STATE: Where to write all of it.
    """
    del plugins  # they are loaded
    from foresail.model.short_form import part_of
    from foresail.predictors.saving import StateHeader, load_state, merged, read_header, save_state

    if len(states) < 2:
        raise InputError("one state has nothing to be merged with", expected="two or more")
    part = part_of("predictor", read_header(states[0]).predictor)
    parts = []
    with doing(f"merging {len(states)} states"):
        for state in states:
            parts.append(part.build())
            load_state(state, parts[-1], part.text)
        together = merged(parts, part.build())
        save_state(output, together, StateHeader(part.text))
    typer.echo(f"{output}: {part.text} of {len(states)} states")


@app.named("show")
def show(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="A learned state.")],
    output_format: FormatOption = Format.TABLE,
    plugins: Plugins = None,
) -> None:
    """Show which predictor a state belongs to, what it has learned and what memory that takes."""
    del plugins  # they are loaded
    from foresail.model.short_form import part_of
    from foresail.predictors.saving import facts_of_state, read_header

    predictor = part_of("predictor", read_header(state).predictor).build()
    with doing(f"reading {state.name}"):
        facts = facts_of_state(state, predictor)
    if output_format is Format.JSON:
        print_json(facts)
        return
    _print_facts(facts)


def _print_facts(facts: dict[str, Any]) -> None:
    values = facts.pop("feature_values", {})
    best = facts.pop("best_experts", {})
    plain = [
        [name.replace("_", " "), number(value) if isinstance(value, int) else value]
        for name, value in facts.items()
    ]
    print_table(["", ""], plain)
    if values:
        typer.echo()
        print_table(
            ["feature", "best estimator of its values", "values"],
            [[name, best.get(name, ""), number(count)] for name, count in values.items()],
            right=1,
        )
