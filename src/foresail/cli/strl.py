"""``foresail strl``: files of requests checked and solved."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foresail.cli.formats import Format, FormatOption, print_json, print_table
from foresail.cli.log_options import CommandGroup
from foresail.cli.progress import doing
from foresail.model.words import count, duration, number

if TYPE_CHECKING:
    from foresail.strl.expression import Document, Reading, Remark
    from foresail.strl.solving import SolvedRequest


app = CommandGroup("Check and solve files of requests in STRL, the space-time request language.")


RequestFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="Requests as text: nodes there are, sets, expressions."),
]


@app.named("check")
def check(path: RequestFile, output_format: FormatOption = Format.TABLE) -> None:
    """Check requests: errors with line and column, and what can never count.

    Exit status 2 if anything cannot be understood; what is only odd leaves it at 0.
    """
    from foresail.model.documents import text_of
    from foresail.strl.expression import remarks as remarks_of
    from foresail.strl.parser import examine

    reading = examine(text_of(path), path)
    odd = remarks_of(reading)
    if output_format == Format.JSON:
        names = ("line", "column", "problem", "value", "expected")
        errors = [{name: getattr(each, name) for name in names} for each in reading.errors]
        places = [asdict(each.position) if each.position else {} for each in odd]
        remarks = [
            {"line": at.get("line"), "column": at.get("column"), "text": each.text}
            for at, each in zip(places, odd, strict=True)
        ]
        requests = [*reading.document.requests]
        print_json({"errors": errors, "remarks": remarks, "requests": requests})
    else:
        _print_check(reading, odd)
    if reading.errors:
        raise typer.Exit(2)


def _print_check(reading: Reading, odd: tuple[Remark, ...]) -> None:
    for error in reading.errors:
        typer.echo(f"error: {error}")
    for remark in odd:
        at = remark.position
        where = f"line {at.line}, column {at.column}: " if at else ""
        typer.echo(f"odd: {where}{remark.text}")
    requests = count(len(reading.document.requests), "request")
    problems = f"{count(len(reading.errors), 'error')}, {count(len(odd), 'remark')}"
    typer.echo(f"{requests} of {count(len(reading.document.supply.nodes), 'node')}: {problems}")


@app.named("solve")
def solve(
    path: RequestFile,
    slot: float | None = None,
    solver: str = "highs",
    time_limit: float = 60.0,
    gap: float = 1e-6,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Find the most valuable plan: what each request is given, and how far it may be from the best.

    Without a slot, here or in the file, it is the longest that all starts and durations are
    multiples of. A solver that finds nothing in time leaves the plan it was to begin with.

    Options:
        slot SECONDS: Slot of the plan, instead of the file's.
        solver NAME: Which solver.
        time_limit SECONDS: The solver stops with what it has.
        gap SHARE: Good enough: so near to the bound.
    """
    from foresail.milp.solver import Limits
    from foresail.strl.expression import leaves
    from foresail.strl.parser import read
    from foresail.strl.slots import common_slot_seconds
    from foresail.strl.solving import solve

    document = read(path)
    expression = document.expression
    seconds = slot if slot is not None else document.supply.slot_seconds
    if seconds is None:
        seconds = common_slot_seconds(leaves(expression))
    with doing(f"solving {path.name}"):
        solved = solve(
            expression, document.supply, seconds, solver=solver, limits=Limits(time_limit, gap)
        )
    rows = _given(document, solved)
    if output_format == Format.JSON:
        known = asdict(solved)
        del known["allocation"]
        extra = {"gap": solved.gap, "program": known.pop("size"), "status": solved.status.value}
        print_json({"given": rows, "slot_seconds": seconds} | known | extra)
    else:
        _print_plan(solved, rows, seconds, len(document.requests))


def _given(document: Document, solved: SolvedRequest) -> list[dict[str, Any]]:
    """A record for every leaf that is given nodes, by start."""
    from foresail.strl.expression import NChooseK, leaves

    numbered = [(name, leaf) for name, asked in document.requests.items() for leaf in leaves(asked)]
    rows = []
    for place, nodes in solved.allocation.items():
        name, leaf = numbered[place]
        share = 1.0 if isinstance(leaf, NChooseK) else len(nodes) / leaf.count
        rows.append(
            {
                "request": name,
                "leaf": place,
                "nodes": sorted(nodes),
                "start_seconds": leaf.start_seconds,
                "end_seconds": leaf.end_seconds,
                "value": leaf.value * share,
            }
        )
    return sorted(rows, key=lambda row: (row["start_seconds"], row["leaf"]))


def _print_plan(
    solved: SolvedRequest, rows: list[dict[str, Any]], slot_seconds: float, requests: int
) -> None:
    from foresail.strl.tokens import compress

    def when(seconds: float) -> str:
        return duration(seconds) if seconds else "now"

    if rows:
        print_table(
            ("request", "nodes", "start", "end", "value"),
            [
                (
                    row["request"],
                    f"{len(row['nodes'])}: {compress(row['nodes'])}",
                    when(row["start_seconds"]),
                    when(row["end_seconds"]),
                    f"{row['value']:.6g}",
                )
                for row in rows
            ],
            right=3,
        )
        typer.echo()
    served = len({row["request"] for row in rows})
    typer.echo(f"{served} of {number(requests)} requests are given nodes")
    gap = f"gap {solved.gap:.2%}" if isfinite(solved.gap) else "gap unknown"
    typer.echo(
        f"value {solved.value:.6g}, at most {solved.bound:.6g} ({solved.status.value}, {gap});"
        f" quick plan {solved.quick_value:.6g}"
    )
    size = solved.size
    typer.echo(
        f"{number(size.columns)} variables, {number(size.rows)} rows,"
        f" slots of {duration(slot_seconds)};"
        f" built in {solved.build_seconds:.3f} s, solved in {solved.solve_seconds:.3f} s"
    )
