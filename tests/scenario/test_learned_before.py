"""What predictors know before the first job, wherever they have it from."""

from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.control.policy import parse_policy
from foresail.live.run_directory import RunDirectory, RunSettings
from foresail.model.errors import InputError
from foresail.predictors.saving import StateHeader, save_state
from foresail.predictors.training import train
from foresail.scenario.beginning import controller_of
from foresail.scenario.by_events import run_by_events
from foresail.scenario.learned_before import EarlierRun, HistoryWorkload, SavedState
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.folder import write_folder
from foresail.traces.schedule import read_schedule
from scenario.small_cluster import history, workload

simulate = app_of("simulate")

POLICIES = ("easy,recent", "prio,similar", "easy,history,doubling", "easy,regression")


def first_prediction(policy, learned):
    """The belief about the first job."""
    schedule = run_scenario(Scenario(workload(), parse_policy(policy), learned_before=learned))
    return schedule.jobs["predicted_seconds"][0]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_saved_state_is_its_history(policy, tmp_path):
    """What was learned from a log and kept in a file is the same as the log."""
    part = parse_policy(policy).predictor
    predictor = part.build()
    train(history(), predictor)
    save_state(tmp_path / "state", predictor, StateHeader(part.text))
    told = first_prediction(policy, HistoryWorkload(history()))
    assert first_prediction(policy, SavedState(tmp_path / "state")) == told
    assert told != first_prediction(policy, None)


def test_a_state_of_another_predictor_is_refused(tmp_path):
    """Its numbers would mean something else."""
    part = parse_policy("easy,recent").predictor
    save_state(tmp_path / "state", part.build(), StateHeader(part.text))
    with pytest.raises(InputError, match="another predictor"):
        first_prediction("easy,similar", SavedState(tmp_path / "state"))


@pytest.mark.parametrize("policy", POLICIES)
def test_an_earlier_run_teaches_what_it_taught(policy, tmp_path):
    """After the log of a run is told, every prediction is that of the run's own predictor."""
    scenario = Scenario(workload(), parse_policy(policy), event_log=tmp_path / "events.jsonl")
    run_scenario(scenario)
    controller = controller_of(replace(scenario, event_log=None))
    run_by_events(scenario, controller)
    predictor = scenario.policy.predictor.build()
    EarlierRun(tmp_path / "events.jsonl").teach(scenario.policy, predictor)
    for job in history().specifications():
        told, own = (each.predict(job, 500.0) for each in (predictor, controller.predictor))
        assert (told.mean(), told.quantile(0.9)) == (own.mean(), own.quantile(0.9))


def test_an_event_log_that_cannot_have_been(tmp_path):
    """A job that ends without having been submitted is named."""
    path = tmp_path / "events.jsonl"
    run_scenario(Scenario(workload(), parse_policy("easy,recent"), event_log=path))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"Submitted"' not in line))
    with pytest.raises(InputError, match="not submitted"):
        first_prediction("easy,recent", EarlierRun(path))


def test_the_command_line_tells_them_apart(tmp_path):
    """A log, a state, an event log, and the directory of a run."""
    policy = parse_policy("easy,recent")
    write_folder(workload(), tmp_path / "small")
    write_folder(history(), tmp_path / "history")
    predictor = policy.predictor.build()
    train(history(), predictor)
    save_state(tmp_path / "state", predictor, StateHeader(policy.predictor.text))
    run_scenario(Scenario(history(), policy, event_log=tmp_path / "events.jsonl"))
    settings = RunSettings("jobs.toml", None, policy.text, "local(cpus=4)", None)
    run = RunDirectory.create(tmp_path / "run", settings, [])
    run.events.write_bytes((tmp_path / "events.jsonl").read_bytes())
    for name in ("history", "state", "events.jsonl", "run"):
        options = ["--with", policy.text, "--learn-from", str(tmp_path / name)]
        result = tmp_path / "result"
        command = [str(tmp_path / "small"), *options, "--output", str(result)]
        told = CliRunner().invoke(simulate, command, catch_exceptions=False)
        assert told.exit_code == 0, told.output
        jobs = read_schedule(result / "schedule-1.parquet").jobs
        assert jobs["predicted_seconds"][0] == 3.5


def test_wide_jobs_and_unknown_machines_are_learned_from(tmp_path):
    """Jobs that are wider than the history's machine, or of an unknown one, teach like all."""
    write_folder(workload(), tmp_path / "small")
    for processors in (1, None):
        wide = history().jobs.with_columns(tasks=pl.lit(3, pl.Int64))
        learned = history().with_jobs(wide).with_meta(processors=processors)
        write_folder(learned, tmp_path / "history")
        result = tmp_path / "result"
        options = ["--with", "easy,recent", "--learn-from", str(tmp_path / "history")]
        command = [str(tmp_path / "small"), *options, "--output", str(result)]
        told = CliRunner().invoke(simulate, command, catch_exceptions=False)
        assert told.exit_code == 0, told.output
        assert "drop" not in told.output
        jobs = read_schedule(result / "schedule-1.parquet").jobs
        assert jobs["predicted_seconds"][0] == 3.5


def test_an_oracle_learns_nothing():
    """It is handed the truth, and a file that is none is not even opened."""
    assert first_prediction("easy,clairvoyant", SavedState("no-such-file")) == 10.0
