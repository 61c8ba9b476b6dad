"""``foresail cancel``: withdraw waiting jobs, or stop running ones."""

from __future__ import annotations

from typing import Annotated, Any

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def cancel(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(metavar="JOB...", help="Ids, also 18 or 18_[1-3] of arrays."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="All of this user.")] = None,
    me: Annotated[bool, typer.Option("--me", help="All of one's own.")] = False,
    name: Annotated[str | None, typer.Option("--name", "-n", help="All of this name.")] = None,
    state: Annotated[
        str | None, typer.Option("--state", "-t", help="All in this state: PD, R or running.")
    ] = None,
) -> None:
    """Cancel jobs: withdrawn if they wait, stopped if they run.

    Options together, and with ids, mean the jobs that all of them mean. Exit status 1 says that
    one was not cancelled.
    """
    from foresail.cli._jobs_table import states_of
    from foresail.cli._service import connected, for_each
    from foresail.client.job_ids import job_ids
    from foresail.client.service_client import LIVING_STATES
    from foresail.model.errors import InputError

    ids = job_ids(jobs or ())
    is_chosen = any(each is not None for each in (user, name, state)) or me
    if not ids and not is_chosen:
        raise InputError("which jobs?", expected="JOB..., --user, --me, --name or --state")
    with connected() as client:
        if is_chosen:
            wanted: dict[str, Any] = {
                "users": [client.whoami()["user"]] if me else [user] if user else [],
                "names": [name] if name else [],
                "states": [
                    each
                    for each in (states_of([state]) if state else LIVING_STATES)
                    if each in LIVING_STATES
                ],
            }
            found = client.jobs(**wanted, job_ids=ids or None) if wanted["states"] else ()
            ids = [job["job_id"] for job in found]
        for_each(ids, client.cancel)
