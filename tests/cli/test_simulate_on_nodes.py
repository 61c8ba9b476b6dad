"""``foresail simulate --on-nodes``: a generated workload on its own racks, and its story."""

from __future__ import annotations

import json

import polars as pl
import pytest

from calling import call
from foresail.cli.main import app_of
from foresail.metrics.summary import deadline_metrics
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail.traces import schema
from foresail.traces.folder import read_folder, write_folder
from foresail.traces.generating import generate
from foresail.traces.schedule import read_schedule
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from reading_pages import page_faults

compare = app_of("compare")
explain = app_of("explain")
simulate = app_of("simulate")


@pytest.fixture
def workload(tmp_path):
    """Twelve minutes of jobs that like gpus or racks, on eighty nodes."""
    entry = find("generator", "gs_het")
    made = generate("gs_het", entry.parameters(hours=0.2), 5)
    write_folder(made, tmp_path / "made")
    return tmp_path / "made"


def test_jobs_are_placed_on_nodes_in_cycles(workload, tmp_path):
    """Starts are multiples of the cycle, placements name nodes, and the story tells them."""
    events = tmp_path / "events.jsonl"
    folder = tmp_path / "result"
    options = ("--policy", "prio,requested", "--on-nodes", "--cycle", "4")
    call(simulate, workload, *options, "--events", events, "--output", folder)
    jobs = read_schedule(folder / "schedule-1.parquet").jobs
    assert (jobs["start_seconds"] % 4 == 0).all()
    assert jobs["placement"].str.contains("rack").all()
    first = jobs["job_id"][0]
    assert "rack" in call(explain, events, first)


def test_policies_are_compared_in_the_same_surroundings(workload, tmp_path):
    """The numbers of deadlines are in the table, the CSV and the report; words come first."""
    folder = tmp_path / "result"
    options = ("--on-nodes", "--cycle", "10", "--noise", "0.2", "--start-delay", "2")
    options += ("--outages", "20000,300", "--conditions-seed", "4")
    policies = ("--with", "prio,requested,doubling", "--with", "prio,recent,incremental")
    told = json.loads(
        call(compare, workload, *options, *policies, "--format", "json", "--output", folder)
    )["policies"]
    first, second = told
    assert first["slo_jobs"] == second["slo_jobs"] > 0
    assert first["lost_attempts"] > 0
    against_first = ("slowdown_saved", "longest_wait_ratio", "held_up")
    own = ("policy", "corrections", "replay_seconds", *against_first)
    equal = [key for key in first if not key.startswith(own)]
    assert second["held_up_share"] == 0.0
    for key in equal:  # prio asks for no runtimes, and the conditions are the same
        if "predict" not in key and "error" not in key and "within" not in key:
            assert first[key] == second[key], key
    page = (folder / "report.html").read_text()
    assert not page_faults(page, folder)
    assert page.index("missed deadlines") < page.index("Are deadlines met")
    assert "slo_miss_rate" in (folder / "deadlines.csv").read_text()
    assert "deadlines" in call(compare, workload, *options, *policies)
    schedule = read_schedule(folder / "schedule-1.parquet")
    assert deadline_metrics(schedule).slo_missed == first["slo_missed"]


def test_surroundings_say_what_happens(workload):
    """Delays lengthen what jobs experience; another seed gives other outages."""
    outages = ("--outages", "20000,300", "--conditions-seed")

    def lost(seed):
        options = ("--policy", "prio", "--on-nodes", *outages, seed, "--format", "json")
        return json.loads(call(simulate, workload, *options))["policies"][0]

    assert lost("1")["mean_flow_seconds"] != lost("2")["mean_flow_seconds"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--on-nodes", "--conditions-seed", "1"), "nothing to draw"),
        (("--on-nodes", "--outages", "7"), "not a pair"),
        (("--on-nodes", "--outages", "0,7"), "out of range"),
        (("--on-nodes", "--noise", "-1"), "'--noise'"),
        (("--on-nodes", "--cycle", "-1"), "'--cycle'"),
        (("--outages", "100,7"), "only with --on-nodes"),
        (("--node-changes", "file.csv"), "only with --on-nodes"),
    ],
)
def test_options_that_do_not_fit(workload, options, words):
    """Each is refused with what was expected."""
    with pytest.raises(InputError, match=words):
        call(simulate, workload, *options)


def test_nodes_come_and_go(workload, tmp_path):
    """A rack that grows is used, one that goes is not any more; the log and its page tell both."""
    racks = read_folder(workload).nodes
    gone = [f"{row['node']}-{n + 1}" for row in racks[:1].to_dicts() for n in range(row["count"])]
    lines = ["seconds,change,node,partition,cpus"]
    lines += [f"200,removed,{name},," for name in gone]
    lines += [f"100,added,new-{n},new,4" for n in range(20)]
    changes = tmp_path / "changes.csv"
    changes.write_text("\n".join(lines) + "\n")
    events, folder = tmp_path / "events.jsonl", tmp_path / "result"
    options = ("--policy", "prio,requested", "--on-nodes", "--node-changes", changes)
    call(simulate, workload, *options, "--events", events, "--output", folder)
    jobs = read_schedule(folder / "schedule-1.parquet").jobs
    late = jobs.filter(pl.col("start_seconds") > 200)["placement"]
    assert jobs["placement"].str.contains("new-").any()
    assert not any(f"{name}:" in f"{each}:" for name in gone for each in late)
    lost = jobs.filter(pl.col("ended_because") == "lost")
    assert lost.height > 0
    assert (lost["end_seconds"] == 200).all()
    assert "that work is lost" in call(explain, events, lost["job_id"][0])
    cpus = sum(row["count"] * row["cpus"] for row in racks[1:].to_dicts()) + 20 * 4
    assert f" of {cpus:g} cpus" in call(explain, events, "--at", "210s", "--output", folder)


def test_jobs_that_never_start_are_told(tmp_path):
    """How many, under which policy, printed, on the page and in JSON; nothing where all start."""
    jobs = jobs_table(
        {
            "job_id": ["plain", "wider than a partition"],
            "submit_seconds": [0.0, 1.0],
            "runtime_seconds": [10.0, 10.0],
            "requested_seconds": [10.0, 10.0],
            "tasks": [1, 12],
            "cpus_per_task": [1.0, 1.0],
        }
    )
    row = {"count": 2, "cpus": 4.0, "memory_bytes": None, "model": None}
    without = row | {"node": "n", "partition": None, "gpus": 0.0}
    apart = row | {"node": "g", "partition": "apart", "gpus": 1.0}
    nodes = pl.DataFrame([without, apart], schema=schema.NODES)
    write_folder(Workload(jobs, WorkloadMeta("made", "made", 16), nodes), tmp_path / "log")
    policies = ("--on-nodes", "--with", "prio", "--with", "easy")
    folder = tmp_path / "result"
    words = "Never started, and in no figure of waits or use: 1 job under easy."
    assert words in " ".join(call(compare, tmp_path / "log", *policies, "--output", folder).split())
    assert words in (folder / "report.html").read_text()
    told = json.loads(call(compare, tmp_path / "log", *policies, "--format", "json"))["policies"]
    assert [each["never_started"] for each in told] == [0, 1]
    assert "Never started" not in call(compare, tmp_path / "log", *policies[:3])


def test_a_log_without_nodes(tmp_path):
    """It says what is missing."""
    log = tmp_path / "small.swf"
    log.write_text("; MaxProcs: 4\n1 0 0 10 1 -1 -1 1 20 -1 1 7 1 -1 -1 -1 -1 -1\n")
    with pytest.raises(InputError, match="nodes"):
        call(simulate, log, "--on-nodes")
    with pytest.raises(InputError, match="which nodes"):
        call(compare, log, "--on-nodes", "--with", "prio", "--outages", "100,10")


def test_predictors_learn_from_another_log_first(tmp_path):
    """Beliefs at the first submission are those of the history; an oracle needs none."""
    entry = find("generator", "e2e")
    for part in ("run", "history"):
        settings = entry.parameters(part=part, hours=0.1, nodes=16, history_hours=1.0)
        write_folder(generate("e2e", settings, 3), tmp_path / part)
    first = {}
    for learned in ((), ("--learn-from", tmp_path / "history")):
        options = ("--with", "prio,history", "--with", "prio,clairvoyant", "--on-nodes", *learned)
        call(compare, tmp_path / "run", *options, "--output", tmp_path / "result")
        jobs = read_schedule(tmp_path / "result" / "schedule-1.parquet").jobs
        first[bool(learned)] = jobs.sort("submit_seconds")["predicted_seconds"][0]
    assert first[True] != first[False]
