"""``foresail policies``: what a policy can be made of, with parameters."""

from __future__ import annotations

from itertools import chain

import typer

from foresail.cli.formats import print_table
from foresail.cli.log_options import Plugins


def policies(plugins: Plugins = None) -> None:
    """List schedulers, predictors, corrections, orders and named policies, with parameters."""
    del plugins  # they are loaded

    from foresail.control.policy import FAMILIES_OF_PARTS, named_policies
    from foresail.model.registry import entries, with_short_name
    from foresail.model.short_form import parameter_texts
    from foresail.schedulers.order_expression import FIELD_NAMES, NAMED_ORDERS

    for family in chain.from_iterable(FAMILIES_OF_PARTS.values()):
        typer.echo(f"{family.replace('_', ' ')}s")
        rows = [
            (
                f"  {with_short_name(family, entry.name)}",
                entry.summary,
                " ".join(parameter_texts(entry)),
            )
            for entry in entries(family)
        ]
        print_table(("", "", ""), rows)
        typer.echo()
    typer.echo("orders (smaller values go first)")
    print_table(("", ""), [(f"  {name}", text) for name, text in NAMED_ORDERS.items()])
    typer.echo(f"  or any expression over {', '.join(FIELD_NAMES)}\n")
    typer.echo("named policies")
    print_table(("", ""), [(f"  {name}", text) for name, text in named_policies().items()])
