"""Situations that people reported of replays, each with its right answer on the command line."""

from __future__ import annotations

import json

import pytest

from foresail.traces.schedule import read_schedule
from shared import shared


@pytest.fixture
def told(foresail):
    """Call a command on a log; returns its words, in one line, and its JSON."""

    def call(command, log, *options):
        asked = (command, shared(f"cases/replay/{log}"), *options)
        status, words, errors = foresail(*asked)
        assert status == 0, errors
        return " ".join(words.split()), json.loads(foresail(*asked, "--format", "json")[1])

    return call


@pytest.mark.parametrize("options", [(), ("--on-nodes", "--policy", "priority")])
def test_a_step_without_length_leaves_its_chain_whole(told, tmp_path, options):
    """What waits for it starts once that has ended for which it waited."""
    _, found = told("simulate", "zero-step-in-chain/w", *options, "--output", tmp_path)
    rows = read_schedule(tmp_path / "schedule-1.parquet").jobs
    assert dict(rows.select("job_id", "start_seconds").iter_rows())["post"] == 1000.0
    assert found["policies"][0]["max_eligible_wait_seconds"] == 0.0
    assert found["policies"][0]["max_wait_seconds"] == 994.0


@pytest.mark.parametrize("case", ["shrink", "grow"])
@pytest.mark.parametrize("policy", ["easy", "priority"])
def test_nodes_that_are_not_there_are_not_idle(told, case, policy):
    """Three of four nodes leave, or come: all of what there was is used."""
    folder = "cases/replay/capacity-that-leaves"
    changes = ("--on-nodes", "--node-changes", shared(f"{folder}/{case}.csv"), "--policy", policy)
    words, found = told("simulate", f"capacity-that-leaves/{case}", *changes)
    assert " 100 % " in words
    only = found["policies"][0]
    assert (only["utilization"], only["avoidable_idle_share"]) == (1.0, 0.0)


def test_recorded_and_simulated_are_of_the_same_jobs(told):
    """Waits are known of 150 of 200: the others are on neither side, and nobody has a star."""
    words, found = told("compare", "recorded-for-some/log2.swf")
    assert (found["recorded"]["jobs"], found["recorded"]["of_jobs"]) == (150, 200)
    assert "Do not use this model of the machine" in words
    assert words.count("*") == 1  # of the caption
    assert "recorded" not in [each["policy"] for each in found["policies"]]
    words, _ = told("compare", "recorded-for-some/log2.swf", "--processors", "5", "--with", "easy")
    assert "of 4 processors, not of 5: it is not compared" in words


def test_one_job_of_forty_days_is_not_in_what_is_used(told):
    """The steady figure is that of the log without it."""
    used = [told("simulate", f"tail-job/{log}.swf") for log in "ab"]
    for words, found in used:
        assert found["policies"][0]["steady_utilization"] == pytest.approx(0.77, abs=0.005)
        assert " 77.2 % " in words


def test_killed_jobs_are_said_to_be_killed(told):
    """Two of three: that the third waits less than recorded is no better service."""
    words, found = told("compare", "killed-at-limit/log.swf", "--enforce-limits")
    assert "2 of 3 jobs under every policy" in words
    assert "is no better service" in words
    assert words.count("*") == 1  # of the caption
    assert found["recorded"]["jobs"] == 1


@pytest.mark.parametrize("policy", ["easy", "priority", "3sigma"])
def test_maintenance_can_be_known_beforehand(told, tmp_path, policy):
    """The long job waits, the short one goes first, and the time away is not idle."""
    lines = shared("cases/replay/maintenance/maint.csv").read_text().split()
    known = [f"{line},{'0' if 'removed' in line else ''}" for line in lines[1:]]
    changes = tmp_path / "known.csv"
    changes.write_text("\n".join([f"{lines[0]},known_from_seconds", *known]) + "\n")
    options = ("--on-nodes", "--node-changes", changes, "--policy", policy, "--output", tmp_path)
    _, found = told("simulate", "maintenance/w", *options)
    rows = read_schedule(tmp_path / "schedule-1.parquet").jobs
    starts = dict(rows.select("job_id", "start_seconds").iter_rows())
    assert rows.height == 3
    assert (starts["short"], min(starts["long"], starts["after"])) == (10.0, 2000.0)
    assert found["policies"][0]["avoidable_idle_share"] == 0.0
    assert found["policies"][0]["lost_attempts"] == 0


def test_work_that_is_lost_is_not_used(told):
    """The long job is stopped thirty times for short ones: 9 cpu hours held for nothing."""
    _, found = told("simulate", "thrash/thrash", "--on-nodes", "--policy", "priority")
    only = found["policies"][0]
    done = only["goodput_hours"]
    assert only["preemptions"] == 30
    assert only["utilization"] == pytest.approx(done * 3600 / (8 * only["makespan_seconds"]))
    assert only["lost_hours"] > 2 * done
