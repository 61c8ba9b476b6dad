"""``foresail experiment node-use``: the use of a shared node, written beside the event log."""

from __future__ import annotations

import polars as pl
import pytest

from calling import call
from foresail.cli.main import app_of
from foresail.model.errors import InputError, UnknownNameError
from foresail.traces import schema
from foresail.traces.folder import write_folder
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.node_use import show_node
from foresail_studies.use_record import GONE, read_use

simulate = app_of("simulate")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Two jobs that ask for one cpu and need two, and one more that is stopped at its limit."""
    place = tmp_path_factory.mktemp("shared")
    jobs = jobs_table(
        {
            "job_id": ["a", "b", "c"],
            "submit_seconds": [0.0, 0.0, 300.0],
            "runtime_seconds": [100.0, 100.0, 100.0],
            "requested_seconds": [900.0, 900.0, 50.0],
            "tasks": [1, 1, 1],
            "cpus_per_task": [1.0, 1.0, 1.0],
            "memory_bytes_per_task": [1.0, 1.0, 1.0],
        }
    )
    nodes = pl.DataFrame(
        [
            {"node": name, "partition": "all", "count": 1, "cpus": cpus, "memory_bytes": 100.0}
            for name, cpus in (("n0", 2.0), ("spare", 0.5))
        ],
        schema=schema.NODES,
    )
    used = {"average_cpus": 2.0, "average_memory_bytes": 5.0}
    rows = [
        {"job_id": job, "task": 0, "start_seconds": 0.0, "end_seconds": 100.0, **used}
        for job in "abc"
    ]
    usage = pl.DataFrame(rows, schema=schema.USAGE)
    meta = WorkloadMeta("made", "hand", 4)
    write_folder(Workload(jobs, meta, nodes, None, usage), place / "made")
    options = ("--policy", "priority", "--on-nodes", "--share-nodes", "--enforce-limits")
    call(simulate, place / "made", *options, "--events", place / "run.jsonl")
    return place / "run.jsonl"


def test_tasks_that_get_in_each_others_way_are_told_of(log, tmp_path, capsys):
    """Four cpus are needed of two; the page is written."""
    show_node(log, "n0", tmp_path, png=False)
    told = capsys.readouterr().out
    assert "tasks were throttled for" in told
    assert "by up to 50 % of what" in told
    assert "nothing was evicted" in told
    assert (tmp_path / "node.html").is_file()


def test_every_task_has_gone_in_the_end(log):
    """Also the one that was stopped, which the machines have no news of."""
    last = read_use(log).group_by("job_id", maintain_order=True).last()
    assert set(last["what"]) <= set(GONE)
    assert last.filter(job_id="c").select("what", "seconds").row(0) == ("left", 350.0)


def test_nodes_that_are_none_are_refused(log):
    """A name that no node has, a node without tasks, a run without a record of use."""
    with pytest.raises(UnknownNameError, match="n0"):
        show_node(log, "n00", None, png=False)
    with pytest.raises(InputError, match="No task has run there"):
        show_node(log, "spare", None, png=False)
    with pytest.raises(InputError, match="only with --output"):
        show_node(log, "n0", None, png=True)
    other = log.with_name("other.jsonl")
    other.write_bytes(log.read_bytes())
    with pytest.raises(InputError, match="no record of what tasks used"):
        show_node(other, "n0", None, png=False)
