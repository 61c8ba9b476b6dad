"""Commands about jobs of a service: submit, jobs, show, wait, logs, cancel, hold and release."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from typer.core import TyperCommand

from foresail.cli import _service as service
from foresail.cli.formats import print_json
from foresail.client.connection import job_ids
from foresail.model.errors import InputError
from foresail.model.words import duration

if TYPE_CHECKING:
    from foresail.client.job_options import AskedJobs
    from foresail.client.service_client import ServiceClient


submit_app = typer.Typer(rich_markup_mode=None, add_completion=False)


class _AsTyped(TyperCommand):
    """A command that reads its words itself: by the table that scripts are read by too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all words as they are, unless help is asked for."""
        return super().parse_args(ctx, args if args[:1] == ["--help"] else ["--", *args])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """Say what stands behind the command's name."""
        return ["[OPTIONS] SCRIPT [ARGUMENTS] | JOBS | -- COMMAND..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """The options of the table."""
        from foresail.client.job_options import OPTIONS

        with formatter.section("Options"):
            formatter.write_dl(
                [(", ".join(each.names.split()) + f" {each.form}", each.says) for each in OPTIONS]
            )


@submit_app.command(cls=_AsTyped)
def submit(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Submit a job script, a jobs file (.toml, .csv, .jsonl) or a command; prints the id.

    The options are those of sbatch, also on #SBATCH and #FORESAIL lines of a script; what is typed
    wins. Without a script, or with -, it is read from standard input. What was understood is said
    on standard error.
    """
    from foresail.client.job_options import asked_jobs

    asked = asked_jobs(words or [], time.time())
    for line in asked.call.get("late", ()):
        typer.echo(f"foresail: line {line} is behind the first command: ignored", err=True)
    with service.connected() as client:
        _require_one_node(client, asked)
        if asked.call.get("test_only"):
            for job in asked.jobs:
                forecast = client.what_if({"job": dict(job)})["then"]
                typer.echo(f"would start: {service.start_words(forecast, time.time())}")
            return
        submitted = client.submit(asked.jobs, client_key=asked.call.get("key"))
        ids = list(dict.fromkeys(job["job_id"].partition("_")[0] for job in submitted))
        is_quiet = asked.call.get("quiet")
        for job_id in () if is_quiet else ids:
            typer.echo(job_id)
        noted = set[tuple[str, ...]]()
        for job in submitted:
            understood = (
                *(() if is_quiet else (service.asked_for(job),)),
                *job.get("warnings", ()),
            )
            for said in () if understood in noted else understood:
                typer.echo(f"foresail: job {job['job_id']}: {said}", err=True)
            noted.add(understood)
        if asked.call.get("wait"):
            wait_for(client, ids)


def _require_one_node(client: ServiceClient, asked: AskedJobs) -> None:
    if asked.needs_one_node and len(client.nodes()) > 1:
        raise InputError(
            "tasks of a job may be on several nodes here",
            field="--nodes",
            value=1,
            expected="one task, with --cpus-per-task for how much it needs",
        )


def wait(jobs: service.JobIds) -> None:
    """Block until jobs finish; the exit status is the job's, the highest of several.

    It is 1 of one that has none of its own: stopped at a limit, cancelled, or by a signal.
    """
    with service.connected() as client:
        ids = job_ids(jobs)
        for job in client.jobs(job_ids=ids, states=["pending"], most=1):
            for warning in job["warnings"]:
                typer.echo(f"foresail: job {job['job_id']}: {warning}", err=True)
        wait_for(client, ids)


def wait_for(client: ServiceClient, job_ids: Sequence[str]) -> None:
    """Wait, say what did not complete, and end with the highest exit status."""
    ended = client.wait(job_ids)
    for job in ended:
        if _status(job):
            state, why = job["state"], job.get("because") or ""
            says = why if why.startswith(state) else f"{state}, {why}" if why else state
            typer.echo(f"foresail: job {job['job_id']}: {says}", err=True)
    status = max(map(_status, ended), default=0)
    if status:
        raise typer.Exit(status)


def _status(job: Mapping[str, Any]) -> int:
    """The exit status of a job; 1 where it has none, as sbatch has it."""
    if job["state"] == "completed":
        return 0
    code = job.get("exit_code")
    return code if job["state"] == "failed" and code is not None and 0 < code < 256 else 1


def jobs(
    state: list[str] | None = None,
    user: list[str] | None = None,
    me: bool = False,
    name: list[str] | None = None,
    job: list[str] | None = None,
    everything: bool = False,
    most: int = 50,
    each_member: bool = False,
    no_headings: bool = False,
    as_json: bool = False,
) -> None:
    """List jobs: what runs, then what starts next; or, of any state or by id, newest first.

    Options:
        state --states --state -t: In these states: R,PD or running. [not finished]
        user --user -u: Of this user.
        me: One's own.
        name --name -n: Of this name.
        job --jobs --job -j JOB,...: These.
        everything --all -a: In any state.
        most --limit --most (0..): At most so many; 0 for all.
        each_member --array -r: A line for each member of an array.
        no_headings --noheader -h: No headings.
        as_json --json: As JSON, a line each.
    """
    from foresail.client.service_client import LIVING_STATES

    states = service.states_of(state) if state else () if everything or job else LIVING_STATES
    is_of_queue = bool(states) and set(states) <= set(LIVING_STATES)
    with service.connected() as client:
        wanted: dict[str, Any] = {
            "states": states,
            "users": [*_separated(user), *([client.whoami()["user"]] if me else [])],
            "names": _separated(name),
            "job_ids": job_ids(job) if job else None,
        }
        order: Literal["next", "newest"] = "next" if is_of_queue else "newest"
        found = list(client.jobs(**wanted, order=order, most=most or None))
        left = client.count_jobs(**wanted) - most if len(found) == most else 0
    if as_json:
        for each in found:
            typer.echo(json.dumps(each))
    elif found:
        service.print_jobs(found, with_headings=not no_headings, each_member=each_member)
    else:
        typer.echo("no jobs", err=True)
    if left > 0:
        typer.echo(f"foresail: {left:,} more: --limit N shows more, --limit 0 all", err=True)


def _separated(words: list[str] | None) -> list[str]:
    return [each for word in words or () for each in word.split(",")]


def show(jobs: service.JobIds, as_json: bool = False) -> None:
    """Show everything known of jobs, and at last why each waits or has ended.

    Options:
        as_json --json: As JSON.
    """
    with service.connected() as client:
        for number, job_id in enumerate(service.members_of(client, jobs)):
            job = client.job(job_id)
            if as_json:
                print_json(job)
                continue
            lines = list(_lines(job, service.now_of(job)))
            width = max(len(name) for name, _ in lines)
            typer.echo("\n" * (number > 0), nl=False)
            for name, value in lines:
                plain = "".join(each if each.isprintable() else "?" for each in value)
                typer.echo(f"{name:<{width}}  {plain}")


def _lines(job: Mapping[str, Any], now: float) -> Iterator[tuple[str, str]]:
    yield "job", f"{job['job_id']}  {job['name']}  of {job['user']}"
    attempt = job.get("attempt", 0)
    yield "state", job["state"] + (f" (attempt {attempt})" if attempt > 1 else "")
    yield "asks for", service.asked_for(job)
    for warning in job.get("warnings", ()):
        yield "note", warning
    forecast = service.start_words(job.get("forecast"), now)
    if forecast:
        yield "starts", forecast
        for remark in job["forecast"]["remarks"]:
            yield "", remark
    for name in ("submit", "start", "end"):
        at = job.get(f"{name}_seconds")
        if at is not None:
            far = f"{duration(abs(now - at))} {'ago' if at <= now else 'on'}"
            yield name, f"{service.clock_time(at)}  ({far})"
    if job.get("belief"):
        yield "should run for", service.runs_for(job["belief"])
    for name in ("places", "command", "directory"):
        if job.get(name) not in (None, ""):
            yield name, str(job[name])
    files = [job[name] for name in ("output", "errors") if job.get(name)]
    yield "logs", " and ".join(files) or f"foresail logs {job['job_id']}"
    if job.get("log_is_cut"):
        yield "log cut", "it wrote more than is kept: what stood in the middle is lost"
    code = job.get("exit_code")
    if code is not None:
        yield "exit code", str(code)
    if service.why(job):
        yield "why", service.why(job)


def cancel(
    jobs: list[str] | None = None,
    /,
    user: str | None = None,
    me: bool = False,
    name: str | None = None,
    state: str | None = None,
) -> None:
    """Cancel jobs: withdrawn if they wait, stopped if they run.

    Options together, and with ids, mean the jobs that all of them mean. Exit status 1 says that
    one was not cancelled.

    Options:
        jobs JOB...: Ids, also 18 or 18_[1-3] of arrays.
        user --user -u: All of this user.
        me: All of one's own.
        name --name -n: All of this name.
        state --state -t: All in this state: PD, R or running.
    """
    from foresail.client.service_client import LIVING_STATES

    ids = job_ids(jobs or ())
    is_chosen = any(each is not None for each in (user, name, state)) or me
    if not ids and not is_chosen:
        raise InputError("which jobs?", expected="JOB..., --user, --me, --name or --state")
    with service.connected() as client:
        if is_chosen:
            asked = service.states_of([state]) if state else LIVING_STATES
            wanted: dict[str, Any] = {
                "users": [client.whoami()["user"]] if me else [user] if user else [],
                "names": [name] if name else [],
                "states": [each for each in asked if each in LIVING_STATES],
            }
            found = client.jobs(**wanted, job_ids=ids or None) if wanted["states"] else ()
            ids = [job["job_id"] for job in found]
        service.for_each(ids, client.cancel)


def hold(jobs: service.JobIds) -> None:
    """Hold jobs: what waits does not start until it is released."""
    with service.connected() as client:
        service.for_each(job_ids(jobs), client.hold)


def release(jobs: service.JobIds) -> None:
    """Release held jobs: they start when their turn comes."""
    with service.connected() as client:
        service.for_each(job_ids(jobs), client.release)


_LOOK_EVERY_SECONDS: Final = 0.3
_STREAMS: Final = ("out", "err")
"""There is something in the latter only of jobs of former versions."""

_AT_ONCE_BYTES: Final = 1_000_000
_CONFLICT: Final = 409
"""Status of the refusal to show a file of the user's."""


def logs(jobs: service.JobIds, follow: bool = False) -> None:
    """Print what jobs have written, their errors among it.

    Options:
        follow --follow -f: Go on until the job has ended.
    """
    with service.connected() as client:
        meant = service.members_of(client, jobs)
        for job_id in meant:
            if len(meant) > 1:
                typer.echo(f"==> {job_id} <==")
            if not _is_reported(client, job_id, follow=follow):
                typer.echo(f"foresail: job {job_id} has written nothing", err=True)


def _is_reported(client: ServiceClient, job_id: str, *, follow: bool) -> bool:
    """Print what a job has written so far, or until it has ended; whether there was anything.

    Of what it writes to files of its user that cannot be read here it is said where they are.
    """
    from foresail.client.service_client import ServiceRefusal

    ends, elsewhere = dict.fromkeys(_STREAMS, 0), dict[str, None]()
    while True:
        before, is_all = dict(ends), True
        for stream in before:
            try:
                text, ends[stream], has_ended = _written(client, job_id, stream, ends[stream])
            except ServiceRefusal as refusal:
                if refusal.status != _CONFLICT:
                    raise
                elsewhere[str(refusal)] = None
                del ends[stream]
                continue
            typer.echo(text, nl=False, err=stream == "err")
            is_all &= has_ended
        if ends == before:
            if is_all or not follow:
                break
            time.sleep(_LOOK_EVERY_SECONDS)
    for sentence in elsewhere:
        typer.echo(f"foresail: {sentence}", err=True)
    return bool(elsewhere) or any(ends.values())


def _written(client: ServiceClient, job_id: str, stream: str, offset: int) -> tuple[str, int, bool]:
    """Return the text of a job from a byte on, where it ends, and if that is all.

    A file of its user's is read as whoever asks may read it, where the service is on this machine.
    """
    job = client.job(job_id) if client.is_here else {}
    path, output = job.get("output" if stream == "out" else "errors"), job.get("output")
    if stream == "err" and output is not None and path in (None, output):
        return "", offset, True
    if path is None:
        return client.output(job_id, stream, offset)
    has_ended = job["end_seconds"] is not None
    try:
        content = _read(path, job["user"], offset)
    except (OSError, InputError) as error:
        if has_ended or not isinstance(error, FileNotFoundError):
            return client.output(job_id, stream, offset)
        content = b""
    return content.decode(errors="replace"), offset + len(content), has_ended and not content


def _read(path: str, user: str, offset: int) -> bytes:
    """Some of a plain file of a user's; raises ``OSError`` if there is none that can be read.

    What a job's user has put in its place is not shown to others who look for its log.
    """
    from foresail.live.accounts import account_of

    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != account_of(user).uid:
            raise PermissionError(path)
        return os.pread(file, _AT_ONCE_BYTES, offset)
    finally:
        os.close(file)
