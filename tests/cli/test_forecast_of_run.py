"""``foresail forecast RUN JOB``: a job of a run, simulated or real, by its log."""

from __future__ import annotations

import json
import re
from unittest.mock import Mock

import pytest

from calling import call
from foresail.checks.rules import tiny_workload
from foresail.cli.main import app_of
from foresail.explain import run_forecast
from foresail.live.command_job import CommandJob
from foresail.live.run_directory import RunDirectory, RunSettings
from foresail.model.errors import InputError
from foresail.scenario.by_daemon import run_commands
from foresail.traces.folder import write_folder

forecast = app_of("forecast")
simulate = app_of("simulate")

POLICY = "easy,requested"


@pytest.fixture
def log(tmp_path):
    """Jobs of 4, 4 and 1 cpus of four: the second waits for the first, the third for both."""
    jobs = [(0, 4, 60, 60), (1, 4, 600, 600), (2, 1, 60, 60)]
    write_folder(tiny_workload(jobs), tmp_path / "made")
    call(
        simulate,
        *(tmp_path / "made", "--policy", POLICY, "--events", tmp_path / "events.jsonl"),
    )
    return tmp_path / "events.jsonl"


def test_a_job_that_waits(log):
    """At its submission, unless another moment is named; at the end of the log all have ended."""
    assert re.match(
        r"then +starts in \d+ s to \d+ min, .*\nthen +ends between now and 11 min of the run",
        call(forecast, log, "3"),
    )
    # The second ends at its limit, if it has not before.
    at_last = call(forecast, log, "3", "--at", "650s")
    assert re.match(r"then +starts (within|in about|now|in \d+ s to)", at_last)
    with pytest.raises(InputError, match="does not wait"):
        call(forecast, log, "3", "--at", "720s")


def test_the_same_for_programs(log):
    """Times since the start of the run, as many futures as are asked for, another policy."""
    answer = json.loads(call(forecast, log, "3", "--json", "--futures", "40"))["then"]
    assert answer["job_id"] == "3"
    assert answer["made_seconds"] == 2.0
    # Nothing has ended yet: runtimes are drawn, up to what was requested.
    start, end = answer["start"], answer["end"]
    assert 2.0 < start["p10"] < 0.5 * start["p50"] < 0.5 * start["p90"] <= 330.0
    assert start["p50"] < end["p50"] <= start["p50"] + 60.0
    assert (answer["never"], answer["misses"]) == (0.0, None)
    shortest = ("--policy", "easy(queue=requested),requested", "--at", "30s", "--json")
    assert json.loads(call(forecast, log, "3", *shortest))["then"]["start"]["p90"] <= 60.0


def test_how_earlier_starts_were_forecast_is_said_where_few_were_in_their_range(log, monkeypatch):
    """By enough of them, and under the policy that the run had."""
    held = [True] * 10 + [False] * 30
    monkeypatch.setattr(run_forecast, "past_ranges", lambda *given: held)
    said = "only 25 % were within their range"
    assert said in call(forecast, log, "3")
    answer = json.loads(call(forecast, log, "3", "--json"))["then"]
    assert answer["held"] == 0.25
    assert said not in call(forecast, log, "3", "--policy", "fcfs,requested")
    held[:] = [True] * 30 + [False] * 10
    assert "within their range" not in call(forecast, log, "3")
    held[:] = [False] * 29
    answer = json.loads(call(forecast, log, "3", "--json"))["then"]
    assert (answer["held"], "remarks" in answer) == (None, False)


def test_when_a_job_of_a_run_should_have_been_submitted(log):
    """What ends first is on top: the third fits beside the first two if these ask for less."""
    shown = call(forecast, log, "2", "--when-should-i-submit")
    assert re.search(r"SUBMIT +CPUS +LIMIT +STARTS +ENDS +NEEDS LONGER", shown)
    assert "of the run" in shown
    tried = json.loads(call(forecast, log, "2", "--when-should-i-submit", "--json"))["tried"]
    asked = {(each["submitted_in"], each["cpus"], each["requested_time"]) for each in tried}
    assert {(0.0, 4.0, 600.0), (0.0, 2.0, 600.0), (0.0, 4.0, 300.0), (3600.0, 4.0, 600.0)} <= asked
    assert not any(each["cpus"] > 4.0 for each in tried)
    starts = {each["submitted_in"]: each["then"]["start"]["p10"] for each in tried}
    assert starts[3600.0] == 3601.0
    safe = [each["then"]["end"]["p50"] for each in tried if each["then"]["overruns"] <= 0.1]
    assert safe == sorted(safe)


def test_a_job_that_runs(log):
    """Of what it may take, no more than it asked for: nothing is known of its kind."""
    said = call(forecast, log, "1", "--at", "20s")
    assert re.match(r"then +ends in \d+ s to 40 s, most likely about \d+ s; 1 in 10 later\n", said)


def test_a_run_of_real_commands(tmp_path):
    """What its predictor had learned before is known, and its clock is not told."""
    settings = RunSettings("test", None, POLICY, "local(cpus=2,grace_seconds=1.0)", None)
    jobs = [CommandJob("a", "a", "true", "/", requested_seconds=600.0)]
    run = RunDirectory.create(tmp_path / "run", settings, jobs)
    run_commands(run, Mock(refresh_seconds=float("inf")))
    assert re.match(r"then +ends in \d+ s to \d min, most likely", call(forecast, run.path, "a"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("4",), "does not know this job"),
        (("3", "--cpus", "2"), "--cpus"),
        (("3", "--no-arrivals"), "--no-arrivals"),
        (("3", "--at", "2 h"), "after the end of the run"),
        (("3", "--policy", "easy,clairvoyant"), "not known before"),
    ],
)
def test_what_is_refused(log, arguments, said):
    with pytest.raises(InputError, match=said):
        call(forecast, log, *arguments)


def test_a_service_is_asked_of_no_past_moment():
    with pytest.raises(InputError, match="--at"):
        call(forecast, "17", "--at", "1 h")
