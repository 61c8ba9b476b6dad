"""Plans of transient machines as they are printed, and as pages are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from foresail.cli.cloud._options import AnswerOptions
from foresail.cli.cloud._prices import echo, print_numbers
from foresail.cli.formats import Format, print_json

if TYPE_CHECKING:
    from foresail.reports.renting.tiers_page import TieredAnswer
    from foresail.reports.renting.transient_page import TransientAnswer


def show(answer: TransientAnswer, answering: AnswerOptions) -> None:
    """Print a plan, and write the page about it where one is asked for."""
    from foresail.reports.renting.transient_page import (
        plan_table,
        sentences,
        transient_page,
        transient_record,
        windows_table,
    )

    if answering.output_format is Format.JSON:
        print_json(transient_record(answer))
    else:
        print_numbers(plan_table(answer.plan))
        typer.echo()
        if answer.windows:
            print_numbers(windows_table(answer.windows))
            typer.echo()
        for sentence in sentences(answer):
            echo(sentence)
    if answering.output is not None:
        answering.write_record("plan.json", answer.plan.to_record())
        answering.write(transient_page(answer))


def show_tiers(answer: TieredAnswer, answering: AnswerOptions) -> None:
    """Print the plans of tiers, and write the page about them where one is asked for."""
    from foresail.reports.renting.tiers_page import (
        tier_record,
        tier_sentences,
        tier_tables,
        tiers_page,
        tiers_table,
    )

    if answering.output_format is Format.JSON:
        print_json(tier_record(answer))
    else:
        for table in (*tier_tables(answer.plan), tiers_table(answer.plan)):
            typer.echo(table.title)
            print_numbers(table)
            typer.echo()
        for sentence in tier_sentences(answer):
            echo(sentence)
    if answering.output is not None:
        answering.write_record("plan.json", answer.plan.to_record())
        answering.write(tiers_page(answer))
