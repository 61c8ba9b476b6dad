"""``foresail predict evaluate``: how good predictors are on recorded logs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from foresail.cli import _replaying as replaying
from foresail.cli.formats import Format, FormatOption, console, made_by, print_json
from foresail.cli.log_options import LogOptions
from foresail.cli.progress import doing, in_shares
from foresail.model.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from foresail.evaluation.replaying import Evaluation
    from foresail.model.short_form import PlugIn
    from foresail.traces.workload import Workload

STANDARD: Final = ("requested", "recent", "quantile_regression", "similar", "history", "combined")
"""What is evaluated when no predictor is named."""

FILTERS: Final = ("drop_no_processors", "fill_processors", "drop_no_runtime")
"""What a log is cleaned by when no filter is named."""

_PREDICTOR_HELP: Final = (
    f'Such as "recent(k=2)"; the first is the baseline [{", ".join(STANDARD)}].'
)
_FILTER_HELP: Final = (
    f"Cleaning filters, in order [{', '.join(FILTERS)}]; see foresail trace filter."
)


class LearnedWhen(StrEnum):
    """When a job is learned."""

    ON_COMPLETION = "on_completion"
    IN_ORDER = "in_order"


def command(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG [LOG ...]", help="Job logs, or workload folders.")
    ],
    predictors: Annotated[
        list[str] | None, typer.Option("--predictor", metavar="PREDICTOR", help=_PREDICTOR_HELP)
    ] = None,
    quantity: Annotated[
        str,
        typer.Option(
            "--quantity",
            help="What is predicted: runtime, cpu, memory, cpu_time, memory_time, cpu_max, ...",
        ),
    ] = "runtime",
    learning: Annotated[
        LearnedWhen,
        typer.Option(
            "--learning",
            help="A job is learned once it has ended, or right after it was predicted.",
        ),
    ] = LearnedWhen.ON_COMPLETION,
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="NAME(PARAMETER=VALUE,...)", help=_FILTER_HELP),
    ] = None,
    log_options: LogOptions = LogOptions(),
    output_format: FormatOption = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Write a report and tables; a folder for each log where there are several.",
        ),
    ] = None,
) -> None:
    """Replay predictions in order of submission, learning as jobs end, and score them."""
    from foresail.evaluation.replaying import evaluate

    parts = _parts(predictors or STANDARD, quantity)
    folders = _folders(logs, output)
    told: list[Any] = []
    for log, folder in zip(logs, folders, strict=True):
        workload = replaying.load(log, log_options, filters or FILTERS)
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
            _print_table(evaluations)
        else:
            told += _as_json(evaluations)
        if folder is not None:
            with doing("writing the report"):
                _write(workload, evaluations, folder)
    if output_format is Format.JSON:
        print_json({"predictors": told})


def _parts(predictors: Sequence[str], quantity: str) -> list[PlugIn]:
    """All that can be refused before a long log is read."""
    from foresail.model.short_form import part_of
    from foresail.traces.quantities import QUANTITIES

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


def _print_table(evaluations: Sequence[Evaluation]) -> None:
    from foresail.evaluation.scores import scores
    from foresail.reports.evaluation.table import terminal_table

    console().print(terminal_table([scores(each) for each in evaluations]))
    typer.echo()


def _as_json(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    from foresail.evaluation.scores import scores
    from foresail.evaluation.tables import detail

    return [
        scores(each).as_json() | {name: table.to_dicts() for name, table in detail(each).items()}
        for each in evaluations
    ]


def _write(workload: Workload, evaluations: Sequence[Evaluation], folder: Path) -> None:
    from foresail.reports.evaluation.report import write_report

    write_report(workload, evaluations, folder, command=made_by())
    typer.echo(f"report: {folder / 'report.html'}", err=True)
