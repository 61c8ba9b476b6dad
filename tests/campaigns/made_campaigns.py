"""Small campaigns for tests: generated logs, a pool without processes, hand-made results."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from foresail.campaigns.plan import CampaignPlan, LogSource, policies_of
from foresail.campaigns.results import Measured, Results, Run
from foresail.campaigns.running import carry_out, replayed
from foresail.traces.folder import read_folder, write_folder
from foresail.traces.generating import generate
from foresail_studies.generators.lublin import LublinParameters

POLICIES = (
    "easy",
    "easy++",
    "easy(order=shortest),clairvoyant",
    "easy,clairvoyant",
    "easy,regression",
    "easy(order=shortest),regression(under=squared,weight=const),doubling",
)


class InProcess:
    """A pool that replays at once, and counts."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.replayed: list[Run] = []

    def replay(self, runs: Sequence[Run], results: Results) -> Iterator[tuple[Run, Measured]]:
        for run in runs[: self.most]:
            self.replayed.append(run)
            yield run, replayed(read_folder(results.workload_folder(run.workload)), run)


def made_log(folder: Path, seed: int, jobs: int = 300) -> Path:
    """A generated workload folder."""
    workload = generate("lublin", LublinParameters(jobs=jobs, processors=32), seed)
    path = folder / f"log-{seed}"
    write_folder(workload, path)
    return path


def made_plan(folder: Path, seeds: Sequence[int] = (1, 2), jobs: int = 300) -> CampaignPlan:
    """``POLICIES`` on generated logs."""
    logs = tuple(LogSource(f"log-{seed}", made_log(folder, seed, jobs)) for seed in seeds)
    return CampaignPlan(logs, policies_of(POLICIES, triples=False))


def carried_out(plan: CampaignPlan, folder: Path) -> Results:
    """Results of a plan, replayed in this process."""
    results = Results(folder)
    carry_out(plan, results, InProcess(), preparing=lambda _: None, finished=lambda *_: None)
    return results


def comparable(results: Results) -> pl.DataFrame:
    """The table of a campaign without what the clock says."""
    return results.table().drop("replay_seconds")


def results_table(
    scores: dict[str, dict[str, float]], waits: dict[str, dict[str, float]] | None = None
) -> pl.DataFrame:
    """A results table from scores (and longest waits, 100 s unless given) by log and policy."""
    return pl.DataFrame(
        [
            {
                "log": log,
                "policy": policy,
                "average_bounded_slowdown": score,
                "max_wait_seconds": (waits or {}).get(log, {}).get(policy, 100.0),
            }
            for log, policies in scores.items()
            for policy, score in policies.items()
        ]
    )
