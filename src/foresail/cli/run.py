"""``foresail run``: real commands on this machine, under any policy."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from foresail.cli.log_options import Plugins
from foresail.cli.progress import stop_showing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.live.run_directory import RunDirectory
    from foresail.live.source import LineInput
    from foresail.traces.schedule import Schedule


_POLICY: Final = "easy(order=shortest),recent,incremental"
_GRACE: Final = "10s"


def run(
    jobs: str | None = None,
    /,
    policy: str | None = None,
    cpus: int | None = None,
    cluster: str | None = None,
    directory: Path | None = None,
    resume: Path | None = None,
    grace: str | None = None,
    history: Path | None = None,
    no_history: bool = False,
    learned: Path | None = None,
    report: bool = False,
    plugins: Plugins = None,
) -> None:
    """Run real commands on this machine's cpus, or on another cluster, under any policy.

    The first Ctrl-C starts nothing new and waits for what runs; the second stops that as well, and
    --resume goes on later. Exit status: 0 all completed, 1 some did not, 2 bad input,
    130 interrupted with work left.

    Options:
        jobs: Jobs file (.toml, .csv, .jsonl), or - for lines of standard input.
        policy: Scheduler, predictor and correction. [easy(order=shortest),recent,incremental]
        cpus (1..): Cpus to use. [all that this machine has]
        cluster: Cluster to run on, that of a plug-in for example. [local]
        directory: Run directory to make. [foresail-run-DATE-TIME]
        resume: Go on with what is left of the run in this directory.
        grace: Time from the gentle to the firm signal to a job. [10s]
        history: File in which outcomes are kept for later runs. [user's state folder]
        no_history: Recall nothing and keep nothing.
        learned FILE: Begin with what the predictor knows from this file, and keep it there.
        report: Write an HTML report as well.
    """
    from foresail.cli.run_progress import observer_for, summarise
    from foresail.live.cluster_plugin import require_linux
    from foresail.live.run_directory import RunDirectory, default_path
    from foresail.scenario.by_daemon import begin_commands, run_commands

    del plugins  # they are loaded
    require_linux()
    lines: LineInput | None = None
    if resume is not None:
        given = (jobs, policy, cpus, cluster, directory, grace, history, learned)
        if any(each is not None for each in given):
            raise InputError(
                "a resumed run keeps its jobs and its settings",
                expected="--resume with no other option than --report and --plugin",
            )
        place = RunDirectory.open(resume)
    elif jobs is None:
        raise InputError("no jobs", expected="a jobs file, - for standard input, or --resume")
    else:
        place, lines = begin_commands(
            jobs,
            policy=policy or _POLICY,
            cluster=_cluster(cluster, cpus, grace),
            directory=directory or Path(time.strftime("foresail-run-%Y%m%d-%H%M%S")),
            history=None if no_history else (history or default_path()).absolute(),
            learned=None if learned is None else learned.absolute(),
        )
        if lines is not None and sys.stdin.isatty():
            typer.echo("one command a line, or a JSON object; Ctrl-D ends the list", err=True)
    stop_showing()
    with observer_for(place) as observer:
        result = run_commands(place, observer, lines)
    typer.echo(summarise(result, place))
    if report:
        _write_report(result.schedule, place)
    raise typer.Exit(result.exit_status)


def _cluster(cluster: str | None, cpus: int | None, grace: str | None) -> str:
    """Return the short form of the cluster; of this machine with the cpus that it has today."""
    from foresail.live.adapters.local.machine import machine_cpus
    from foresail.model.words import duration_of

    if cluster is None:
        width = len(machine_cpus()) if cpus is None else cpus
        return f"local(cpus={width},grace_seconds={duration_of(grace or _GRACE, '--grace')!r})"
    if cpus is not None or grace is not None:
        raise InputError(
            "--cpus and --grace are of this machine",
            field="--cluster",
            value=cluster,
            expected="--cluster without them, as in --cluster 'local(cpus=4,grace_seconds=10)'",
        )
    return cluster


def _write_report(schedule: Schedule, run: RunDirectory) -> None:
    from foresail.reports.comparison.page import write_report

    write_report([schedule], run.report, command=f"foresail run {schedule.meta.workload} --report")
    typer.echo(f"report in {run.report / 'report.html'}")
