"""Carrying out a campaign: prepare the logs, replay what is missing, keep each result at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from foresail.campaigns.measuring import Measured, measure
from foresail.campaigns.plan import CampaignPlan, LogSource
from foresail.campaigns.results import Results, Run, runs_of, workload_digest
from foresail.control.policy import parse_policy
from foresail.model.conventions import CONVENTIONS
from foresail.model.plug_in_errors import blaming_plug_ins
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.truth import real_runtimes
from foresail.traces.filtering import choices_of
from foresail.traces.folder import load_workload, write_folder
from foresail.traces.plausibility import clean_and_check
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


class Pool(Protocol):
    """Workers that replay; each result is handed over as soon as it is there."""

    def replay(self, runs: Sequence[Run], results: Results) -> Iterator[tuple[Run, Measured]]:
        """Replay runs on logs prepared in the results folder, in any order."""
        ...


def carry_out(
    plan: CampaignPlan,
    results: Results,
    pool: Pool,
    *,
    preparing: Callable[[LogSource], None],
    finished: Callable[[Run, Measured], None],
) -> int:
    """Replay the runs of a plan that are not finished; returns how many these were.

    Every result is stored in the campaign's folder when it arrives; ``preparing`` is called before
    a log is read, ``finished`` after a result was stored.

    Raises
    ------
    InputError
        If a log cannot be read or replayed, or the folder cannot be written to.
    UnknownNameError
        If a filter does not exist.
    """
    runs = runs_of(plan)
    results.begin(runs)
    missing = [run for run in runs if not results.is_finished(run)]
    if not missing:
        return 0
    wanted = {run.log for run in missing}
    for log in plan.logs:
        folder = results.workload_folder(workload_digest(log, plan.filters))
        if log.name in wanted and not folder.exists():
            preparing(log)
            folder.parent.mkdir(exist_ok=True)
            write_folder(prepared(log, plan.filters), folder)
    warm_up(plan)
    for run, measured in pool.replay(missing, results):
        results.keep(run, measured)
        finished(run, measured)
    return len(missing)


def prepared(log: LogSource, filters: Sequence[str]) -> Workload:
    """A log, read and cleaned, known to be replayable.

    Raises
    ------
    InputError
        If it cannot be read or replayed, holds what cannot be, or a filter's parameters do not fit.
    UnknownNameError
        If a reader or filter does not exist.
    """
    options: dict[str, Any] = {}
    if log.processors is not None:
        options["processors"] = log.processors
    workload = load_workload(log.path, log.reader, **options)
    workload = clean_and_check(workload, choices_of(filters))
    real_runtimes(workload)
    return workload


@blaming_plug_ins()
def replayed(workload: Workload, run: Run) -> Measured:
    """What a campaign keeps of one run."""
    scenario = Scenario(
        workload,
        parse_policy(run.policy),
        conventions=CONVENTIONS[run.conventions],
        enforce_limits=run.enforce_limits,
    )
    return measure(run_scenario(scenario))


def warm_up(plan: CampaignPlan) -> None:
    """Compile every step of the plan's policies once, so that no two workers compile the same."""
    jobs = jobs_table(
        {
            "job_id": ["1", "2"],
            "submit_seconds": [0.0, 1.0],
            "runtime_seconds": [10.0, 20.0],
            "requested_seconds": [60.0, 60.0],
            "tasks": [1, 1],
            "user": ["1", "1"],
        }
    )
    workload = Workload(jobs, WorkloadMeta("warm-up", "none", processors=1))
    for policy in plan.policies:
        conventions = CONVENTIONS[plan.conventions]
        run_scenario(Scenario(workload, parse_policy(policy), conventions=conventions))
