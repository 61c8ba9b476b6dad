"""``foresail serve``: the live service."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import typer

from foresail.cli.progress_line import stop_showing

app = typer.Typer(rich_markup_mode=None)


@app.command()
def serve(
    configuration: Annotated[
        Path | None, typer.Argument(help="Configuration file (TOML). [everything by default]")
    ] = None,
    shared_account: Annotated[
        bool,
        typer.Option(
            "--shared-account",
            help="Serve users with tokens whose jobs all run as the account that this runs as.",
        ),
    ] = False,
) -> None:
    """Run jobs that are submitted over HTTP, under any policy, until SIGTERM; jobs run on.

    Root, and who may become it, serves every account of the machine as itself; others their own.

    SIGHUP reads the policy of the configuration file anew.
    """
    stop_showing()  # what is on standard error is the log's
    gc.disable()  # until the run is recovered: what is loaded until then is no garbage
    from foresail.live.accounts import go_on_as_root_where_permitted
    from foresail.live.cluster_plugin import require_linux
    from foresail.service.configuration import read_configuration
    from foresail.service.logs import log_to_standard_error
    from foresail.service.running import RunningService

    require_linux()
    chosen = read_configuration(configuration)
    if shared_account:
        chosen = chosen.model_copy(update={"shared_account": True})
    if not chosen.shared_account:
        go_on_as_root_where_permitted()
    log_to_standard_error(chosen.log_format)
    RunningService(chosen, configuration, typer.echo).work()
