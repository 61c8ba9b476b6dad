"""Plans of transient machines as they are printed, and as pages are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from foresail.cli.cloud._options import made_by
from foresail.cli.cloud._prices import print_json, print_numbers
from foresail.cli.formats import Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foresail.reports.renting.page import CloudPage
    from foresail.reports.renting.tiers_page import TieredAnswer
    from foresail.reports.renting.transient_page import TransientAnswer


def show(answer: TransientAnswer, output_format: Format, output: Path | None) -> None:
    """Print a plan, and write the page about it where one is asked for."""
    from foresail.reports.renting.transient_page import transient_page, transient_record

    if output_format is Format.JSON:
        print_json(transient_record(answer))
    else:
        _print(answer)
    if output is not None:
        _write_page(transient_page(answer), answer.plan.to_record(), output)


def show_tiers(answer: TieredAnswer, output_format: Format, output: Path | None) -> None:
    """Print the plans of tiers, and write the page about them where one is asked for."""
    from foresail.reports.renting.tiers_page import (
        tier_record,
        tier_sentences,
        tier_tables,
        tiers_page,
        tiers_table,
    )

    if output_format is Format.JSON:
        print_json(tier_record(answer))
    else:
        for table in (*tier_tables(answer.plan), tiers_table(answer.plan)):
            typer.echo(table.title)
            print_numbers(table)
            typer.echo()
        for sentence in tier_sentences(answer):
            _echo(sentence)
    if output is not None:
        _write_page(tiers_page(answer), answer.plan.to_record(), output)


def _print(answer: TransientAnswer) -> None:
    from foresail.reports.renting.transient_page import plan_table, sentences, windows_table

    tables = [plan_table(answer.plan)]
    if answer.windows:
        tables.append(windows_table(answer.windows))
    for table in tables:
        print_numbers(table)
        typer.echo()
    for sentence in sentences(answer):
        _echo(sentence)


def _echo(sentence: str) -> None:
    import textwrap

    typer.echo(textwrap.fill(sentence, 100, break_on_hyphens=False))


def _write_page(page: CloudPage, record: Mapping[str, Any], folder: Path) -> None:
    """The page, its numbers, and the plan for a machine to apply."""
    from foresail.reports.files import make_folder, write_whole
    from foresail.reports.renting.page import write_cloud_page

    make_folder(folder)
    content = json.dumps(record, indent=2, allow_nan=False)
    write_whole(folder / "plan.json", content.encode())
    path = write_cloud_page(page, folder, command=made_by())
    typer.echo(f"report: {path}; plan: {folder / 'plan.json'}", err=True)
