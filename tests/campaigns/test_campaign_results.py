"""A campaign's folder: durable results, resumption, what makes a run another run."""

import json
from dataclasses import replace

import polars as pl
import pytest

from foresail.campaigns.plan import LogSource
from foresail.campaigns.results import Results, Run, runs_of, workload_digest
from foresail.campaigns.running import carry_out, prepared, replayed
from foresail.model.errors import InputError, UnknownNameError
from foresail.traces.folder import read_folder, write_folder
from made_campaigns import InProcess, carried_out, comparable, made_log, made_plan
from scenario.small_cluster import two_partitions


def _carry_out(plan, results, pool):
    prepared_logs = []
    count = carry_out(
        plan,
        results,
        pool,
        preparing=lambda log: prepared_logs.append(log.name),
        finished=lambda *_: None,
    )
    return count, prepared_logs


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """Six policies on two generated logs."""
    return made_plan(tmp_path_factory.mktemp("logs"))


def test_only_what_is_missing_is_replayed(plan, tmp_path):
    """After an interruption the rest is replayed, and the table is as if nothing had happened."""
    results = Results(tmp_path / "interrupted")
    assert _carry_out(plan, results, InProcess(most=5))[1] == ["log-1", "log-2"]
    assert results.table().height == 5
    pool = InProcess()
    assert _carry_out(plan, results, pool) == (7, [])  # the prepared logs are there already
    assert len(pool.replayed) == 7
    assert _carry_out(plan, results, pool) == (0, [])
    assert comparable(results).equals(comparable(carried_out(plan, tmp_path / "whole")))


def test_a_wider_campaign_keeps_what_is_there(plan, tmp_path):
    """Further policies in the same folder are the only ones replayed; the table has them all."""
    narrow = replace(plan, policies=plan.policies[:2])
    results = carried_out(narrow, tmp_path)
    assert results.table().height == 4
    count, _ = _carry_out(plan, results, InProcess())
    assert count == len(plan.policies) * 2 - 4
    assert results.table()["policy"].unique(maintain_order=True).to_list() == list(plan.policies)


def test_no_half_results(plan, tmp_path):
    """Every file of the folder is whole and has its name's key; no temporary file stays."""
    carried_out(plan, tmp_path)
    files = list((tmp_path / "runs").iterdir())
    assert len(files) == 12
    assert all(json.loads(file.read_text())["key"] == file.stem for file in files)


def test_what_makes_another_run(tmp_path):
    """The key changes with log, filters, processors, policy, conventions and limits, not names."""
    plan = made_plan(tmp_path, seeds=(1,))
    log = plan.logs[0]
    key = runs_of(plan)[0].key
    assert runs_of(replace(plan, logs=(replace(log, name="other"),)))[0].key == key
    changed = [
        replace(plan, logs=(replace(log, processors=64),)),
        replace(plan, logs=(LogSource("log-1", made_log(tmp_path, 2)),)),
        replace(plan, filters=()),
        replace(plan, policies=("fcfs",)),
        replace(plan, conventions="predictsim"),
        replace(plan, enforce_limits=True),
    ]
    assert len({key, *(runs_of(other)[0].key for other in changed)}) == 7


def test_largest_log_first(tmp_path):
    """The log that takes longest is begun first, whatever the order given."""
    logs = tuple(LogSource(str(n), made_log(tmp_path, n, n)) for n in (100, 2000))
    runs = runs_of(replace(made_plan(tmp_path), logs=logs))
    assert [run.log for run in runs] == ["2000"] * 6 + ["100"] * 6


def test_filters_apply(tmp_path):
    """A log is cleaned before it is replayed; filters may have parameters."""
    log = made_plan(tmp_path, seeds=(3,), jobs=3000).logs[0]
    whole = prepared(log, ["replayable"])
    cut = prepared(log, ["keep_first_weeks(weeks=1)"])
    assert 0 < len(cut) < len(whole)
    assert prepared(replace(log, processors=64), []).processors == 64


def test_bad_input(tmp_path):
    """What cannot be used is named before anything is replayed."""
    plan = made_plan(tmp_path, seeds=(1,))
    results = Results(tmp_path / "results")
    with pytest.raises(InputError, match="no campaign here"):
        results.table()
    missing = replace(plan, logs=(LogSource("x", tmp_path / "none.swf"),))
    with pytest.raises(InputError, match=r"none\.swf.*cannot be read"):
        _carry_out(missing, results, InProcess())
    with pytest.raises(UnknownNameError, match="replayable"):
        _carry_out(replace(plan, filters=("replayble",)), results, InProcess())
    with pytest.raises(InputError, match="not a setting"):
        _carry_out(replace(plan, filters=("keep_first_weeks(4)",)), results, InProcess())
    narrow = replace(plan, logs=(replace(plan.logs[0], processors=1),), filters=())
    with pytest.raises(InputError, match="cannot be replayed"):
        _carry_out(narrow, results, InProcess())
    with pytest.raises(InputError, match="no run of this campaign is finished"):
        results.table()


def test_damaged_result(tmp_path):
    """A result that somebody cut off is named, with what to do."""
    results = carried_out(made_plan(tmp_path / "logs", seeds=(1,)), tmp_path / "results")
    file = next((tmp_path / "results" / "runs").iterdir())
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InputError, match=rf"{file.name}.*delete it"):
        results.table()


def test_digest_of_a_file(tmp_path):
    """A log file's digest is of its bytes, not of its name."""
    for name in ("a.swf", "b.swf"):
        (tmp_path / name).write_text("1 0 0 1\n")
    a, b = (workload_digest(LogSource(n, tmp_path / f"{n}.swf"), []) for n in "ab")
    assert a == b
    (tmp_path / "b.swf").write_text("1 0 0 2\n")
    assert workload_digest(LogSource("b", tmp_path / "b.swf"), []) != a


def test_what_is_odd_about_a_log_is_said(tmp_path):
    """Also how partitions are known."""
    plan = made_plan(tmp_path, seeds=(1,))
    plan = replace(plan, policies=plan.policies[:1])
    assert carried_out(plan, tmp_path / "sound").said() == []
    workload = read_folder(plan.logs[0].path)
    half = pl.int_range(pl.len()) % 2 == 0
    named = workload.jobs.with_columns(
        partition=pl.when(half).then(pl.lit("A")).otherwise(pl.lit("B"))
    )
    write_folder(workload.with_jobs(named), tmp_path / "named")
    told = replace(plan, logs=(LogSource("named", tmp_path / "named"),))
    (said,) = carried_out(told, tmp_path / "results").said()
    assert said.startswith(
        "named: All partitions are simulated as one pool of processors: no starts"
    )


def test_campaigns_replay_partitions_as_a_simulation_does():
    """The second job waits for its own partition; in one pool it fits, and the third waits."""
    run = Run("key", "log", "fcfs", "digest", "standard", enforce_limits=False)
    assert replayed(two_partitions(), run).max_wait_seconds == 99.0
    assert replayed(two_partitions(), replace(run, one_pool=True)).max_wait_seconds == 97.0
