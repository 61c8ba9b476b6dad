"""``foresail simulate --on-nodes``: a generated workload on its own racks, and its story."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from foresail.cli.simulate import app as simulate
from foresail.cli.story import app as story
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail.traces.folder import write_folder
from foresail.traces.generating import generate
from foresail.traces.schedule_file import read_schedule


@pytest.fixture
def workload(tmp_path):
    """Twelve minutes of jobs that like gpus or racks, on eighty nodes."""
    entry = find("generator", "gs_het")
    made = generate("gs_het", entry.parameters(hours=0.2), 5)
    write_folder(made, tmp_path / "made")
    return tmp_path / "made"


def call(app, *arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


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
    assert "rack" in call(story, events, first)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cycle", "4"), "only with --on-nodes"),
        (("--on-nodes", "--cycle", "-1"), "cycle_seconds"),
        (("--on-nodes", "--enforce-limits"), "not with other"),
    ],
)
def test_options_that_do_not_fit(workload, options, words):
    """Each is refused with what was expected."""
    with pytest.raises(InputError, match=words):
        call(simulate, workload, *options)


def test_a_log_without_nodes(tmp_path):
    """It says what is missing."""
    log = tmp_path / "small.swf"
    log.write_text("; MaxProcs: 4\n1 0 0 10 1 -1 -1 1 20 -1 1 7 1 -1 -1 -1 -1 -1\n")
    with pytest.raises(InputError, match="nodes"):
        call(simulate, log, "--on-nodes")
