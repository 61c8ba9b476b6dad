"""``foresail compare``, ``simulate`` and ``policies``, as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from foresail.control.policy import named_policies
from foresail.model.errors import InputError
from foresail.traces.schedule import read_schedule, write_schedule

EXAMPLES = Path(__file__).parents[2] / "examples"
PROMISED = {
    "jobs",
    "average_bounded_slowdown",
    "mean_wait_seconds",
    "median_wait_seconds",
    "max_wait_seconds",
    "utilization",
    "makespan_seconds",
    "replay_seconds",
}
JOB = "{id} {submit} 0 {run} {cpus} -1 -1 {cpus} {limit} -1 1 {user} 1 -1 -1 -1 -1 -1\n"
GOLDEN = [(0, 2, 100, 150), (0, 2, 50, 100), (1, 4, 60, 120), (2, 2, 50, 60), (3, 2, 30, 90)]
GOLDEN += [(4, 2, 20, 40)]


def write_log(path, jobs, processors=4):
    rows = (
        JOB.format(id=number, submit=submit, run=run, cpus=cpus, limit=limit, user=number % 3)
        for number, (submit, cpus, run, limit) in enumerate(jobs, start=1)
    )
    path.write_text(f"; MaxProcs: {processors}\n" + "".join(rows))
    return path


@pytest.fixture
def log(tmp_path):
    return write_log(tmp_path / "golden.swf", GOLDEN)


def test_simulate_as_json(foresail, log):
    """One record with the figures that are promised, and the golden ones are right."""
    status, out, _ = foresail("simulate", log, "--policy", "easy-sjbf", "--format", "json")
    told = json.loads(out)
    assert (next(iter(told)), told["version"]) == ("version", 1)
    (record,) = told["policies"]
    assert status == 0
    assert record.keys() >= PROMISED
    assert record["jobs"] == 6
    assert record["average_bounded_slowdown"] == pytest.approx(2.923889, abs=5e-7)
    assert record["mean_wait_seconds"] == pytest.approx((119 + 68 + 177 + 46) / 6)
    assert record["max_wait_seconds"] == 177
    assert record["makespan_seconds"] == 210
    assert record["utilization"] == pytest.approx(2 * (100 + 50 + 120 + 50 + 30 + 20) / 4 / 210)


def test_wide_jobs_stay_where_tasks_start_apart(foresail, tmp_path):
    """Ten tasks on four processors run as slots become free, unless a policy needs them at once."""
    wide = write_log(tmp_path / "wide.swf", [*GOLDEN, (5, 10, 7, 9)])
    status, out, _ = foresail("simulate", wide, "--policy", "task_fifo", "--format", "json")
    assert (status, json.loads(out)["policies"][0]["jobs"]) == (0, 7)
    both = ("--with", "easy", "--with", "task_fifo", "--format", "json")
    status, out, err = foresail("compare", wide, *both)
    assert (status, {each["jobs"] for each in json.loads(out)["policies"]}) == (0, {6})
    assert "drop_wider_than_machine 1" in err


def test_wide_jobs_stay_where_their_tasks_are_known(foresail, tmp_path):
    """Under any scheduler that starts these apart; of a job without, all start together.

    Its event log is in a folder that was not there.
    """
    log = tmp_path / "wide"
    made = ("packing", "--set", "machines=2", "--set", "jobs=8", "--seed", "3", "-o", log)
    assert foresail("trace", "generate", *made)[0] == 0
    on_nodes = ("--policy", "distsched", "--on-nodes", "--share-nodes", "--cycle", "15")
    told = ("--format", "json", "--events", tmp_path / "new" / "run" / "events.jsonl")
    status, out, err = foresail("simulate", log, *on_nodes, *told)
    assert (status, json.loads(out)["policies"][0]["jobs"]) == (0, 8)
    assert "drop" not in err
    assert (tmp_path / "new" / "run" / "events.jsonl").is_file()
    (log / "tasks.parquet").unlink()
    (log / "usage.parquet").unlink()
    status, out, err = foresail("simulate", log, *on_nodes[:3], "--format", "json")
    assert status == 0
    assert "drop_wider_than_machine" in err


def test_conventions_reach_the_replay(foresail, tmp_path):
    """Two jobs end in one second: a pass after each lets job 4 slip in before job 3."""
    jobs = [(0, 2, 10, 20), (0, 2, 10, 20), (1, 4, 5, 5), (2, 2, 5, 5)]
    log = write_log(tmp_path / "ends.swf", jobs)
    longest = []
    for conventions in ("standard", "predictsim"):
        _, out, _ = foresail("simulate", log, "--conventions", conventions, "--format", "json")
        longest.append(json.loads(out)["policies"][0]["max_wait_seconds"])
    assert longest == [13, 14]


def test_limits_reach_the_replay(foresail, tmp_path):
    """With ``--enforce-limits`` a job ends at its request."""
    log = write_log(tmp_path / "long.swf", [(0, 1, 100, 40)])
    spans = []
    for options in ([], ["--enforce-limits"]):
        _, out, _ = foresail(
            "simulate", log, "--filter", "drop_no_runtime", "--format", "json", *options
        )
        spans.append(json.loads(out)["policies"][0]["makespan_seconds"])
    assert spans == [100, 40]


def test_compare_has_four_standard_policies(foresail, log):
    """Nothing asked for: the classic first, and what Foresail recommends."""
    _, out, _ = foresail("compare", log, "--format", "json")
    shown = [record["policy"] for record in json.loads(out)["policies"]]
    assert len(shown) == 4
    assert shown[0] == "easy"
    assert {"easy-sjbf", "easy++", "foresail"} <= set(shown)


def test_compare_as_csv(foresail, log):
    """A row per policy, a column per figure."""
    _, out, _ = foresail("compare", log, "--with", "fcfs", "--with", "sjf", "--format", "csv")
    table = pl.read_csv(out.encode())
    assert table["policy"].to_list() == ["fcfs", "sjf"]
    assert set(table.columns) >= PROMISED


def test_compare_as_a_table(foresail, log):
    """Fits a page and has no escape codes when it is not a terminal that looks."""
    _, out, err = foresail("compare", log)
    assert "average" in out
    assert "easy++" in out
    assert "\x1b" not in out + err
    assert max(map(len, out.splitlines())) <= 100


def test_output_folder(foresail, log, tmp_path):
    """A report, tables, and the schedules, which read back as they were."""
    folder = tmp_path / "deep" / "results"
    status, _, err = foresail(
        "compare", log, "--with", "easy", "--with", "fcfs", "--output", folder
    )
    assert status == 0
    assert f"report: {folder / 'report.html'}" in err
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert list(folder.glob("*.csv"))
    schedule = read_schedule(folder / "schedule-1.parquet")
    assert schedule.meta.policy == "easy"
    assert schedule.jobs["start_seconds"].to_list() == [0, 0, 100, 50, 160, 160]
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    again = tmp_path / "again.parquet"
    write_schedule(schedule, again)
    back = read_schedule(again)
    assert back.meta == schedule.meta
    assert back.jobs.equals(schedule.jobs)


def test_policies_lists_everything(foresail):
    """Schedulers, predictors, corrections, orders and named policies, with parameters."""
    status, out, _ = foresail("policies")
    assert status == 0
    for word in ("easy", "reservations=1", "recent", "incremental", "smallest_area", "probe"):
        assert word in out
    for name in named_policies():
        assert name in out


@pytest.mark.parametrize(
    ("file", "policy"),
    [
        ("mean_of_width.py", "easy,mean_of_width,doubling"),
        ("shortest_likely.py", "shortest_likely(level=0.9)"),
    ],
)
def test_a_plug_in_of_ones_own(foresail, log, file, policy):
    """A scheduler or predictor in a file, without compiled steps."""
    status, out, err = foresail(
        "simulate", log, "--plugin", EXAMPLES / file, "--policy", policy, "--format", "json"
    )
    assert status == 0, err
    assert json.loads(out)["policies"][0]["policy"] == policy
    assert json.loads(out)["policies"][0]["jobs"] == 6


COMPILED_PLUGIN = '''
"""Half the request: a predictor with compiled steps."""

from foresail.kernels.compile import bare_step
from foresail.kernels.columns import REQUESTED
from foresail.predictors.kernels.request import ignore
from foresail.kernels.steps import PREDICTOR_STEP, PredictorSteps
from foresail.distributions.kernels.summary import summarise_point
from foresail.model.registry import NoParameters, register
from foresail.predictors.stepped import Layout, SteppedPredictor

import numpy as np


@bare_step(PREDICTOR_STEP)
def predict(inputs):
    half = inputs.specs[inputs.slot, REQUESTED] / 2
    summarise_point(half, inputs.summaries[inputs.slot])


@register("predictor", "half")
class Half(SteppedPredictor):
    """Predicts half of what was requested."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(PredictorSteps(predict, ignore, ignore), Layout(np.zeros(1), 1))
'''


def test_a_compiled_plug_in_of_ones_own(foresail, log, tmp_path):
    """It runs inside the compiled replay, and its predictions are in the schedule."""
    file = tmp_path / "half.py"
    file.write_text(COMPILED_PLUGIN)
    folder = tmp_path / "results"
    status, _, err = foresail(
        "simulate", log, "--plugin", file, "--policy", "half", "--output", folder
    )
    assert status == 0, err
    jobs = read_schedule(folder / "schedule-1.parquet").jobs
    assert jobs["predicted_seconds"].to_list() == [75, 50, 60, 30, 45, 20]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--with", "esy"], "did you mean 'easy'"),
        (["--with", "easy(ordr=shortest)"], "did you mean 'order'"),
        (["--with", "easy(order=shortst)"], "did you mean 'shortest'"),
        (["--with", "easy(reservations=-1)"], "0 or more"),
        (["--with", "easy(plan=1 +)"], "not an expression"),
        (["--with", ""], "a part is empty"),
        (["--conventions", "predict"], "did you mean 'predictsim'"),
        (["--filter", "replayble"], "did you mean 'replayable'"),
        (["--plugin", "missing.py"], "missing.py: not a Python file"),
        (["--processors", "2", "--filter", "drop_no_runtime"], "job '3'"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "simulate"])
def test_bad_input_is_one_line_and_status_2(foresail, log, command, arguments, words):
    """Whatever is wrong with what was asked, and nothing on standard output."""
    status, out, err = foresail(command, log, *arguments)
    assert status == 2
    assert out == ""
    *said, refused = err.splitlines()
    assert all(line.startswith("odd: ") for line in said), "of a machine that is too small"
    assert refused.startswith("foresail: ")
    assert words in refused


@pytest.mark.parametrize("command", ["compare", "simulate"])
def test_files_that_cannot_be_used(foresail, log, tmp_path, command):
    """A log that is not there, one that is none, and an output folder that is a file."""
    binary = tmp_path / "picture.png"
    binary.write_bytes(bytes(range(256)))
    for arguments in ([tmp_path / "none.swf"], [binary], [log, "--output", log]):
        status, out, err = foresail(command, *arguments)
        assert (status, out) == (2, "")
        assert err.startswith("foresail: ")
        assert len(err.splitlines()) == 1


def test_what_is_asked_is_checked_before_the_log_is_read(foresail, tmp_path):
    """A long log is not read for a policy that does not exist."""
    _, _, err = foresail("simulate", tmp_path / "none.swf", "--policy", "esy")
    assert "did you mean 'easy'" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--png",), "--png"),
        (("--noise", "1e308"), "field '--noise': out of range"),
        (("--start-delay", "1e100"), "field '--start-delay': out of range"),
        (("--cycle", "1e-300"), "field '--cycle': out of range"),
    ],
)
def test_options_that_lead_nowhere_are_refused(foresail, log, options, words):
    """Pictures of no report; times beyond all measure, which ended in a traceback or never."""
    status, _, err = foresail("simulate", log, *options)
    assert status == 2
    assert words in err
    assert len(err.splitlines()) == 1


NOBODY = """
from foresail.model.decision import Decision, Placement, Start
from foresail.model.protocols import Scheduler
from foresail.model.registry import register


@register("scheduler", "nobody")
class Nobody(Scheduler):
    \"\"\"Starts the first job where there is room, and one that nobody has submitted.\"\"\"

    def __init__(self, parameters):
        pass

    def decide(self, view):
        first, (name, free) = view.pending[0].job, next(iter(view.free.items()))
        place = Placement.whole(name, first.tasks)
        starts = (Start(first.job_id, place),) if first.total.fits_in(free) else ()
        return Decision(starts=(*starts, Start("nobody", place)))
"""


def test_refused_starts_are_said(foresail, log, tmp_path):
    """They were counted, and no more."""
    file = tmp_path / "nobody.py"
    file.write_text(NOBODY)
    given = ("--policy", "nobody,requested", "--plugin", file)
    status, out, err = foresail("simulate", log, *given)
    assert status == 0, err
    said = " ".join(out.split())
    assert re.search(r"\d+ decisions of nobody refused: no such job, or no room\.", said)


def test_a_file_that_is_no_schedule(tmp_path):
    """Neither text nor another table is taken for a schedule."""
    text, table = tmp_path / "text", tmp_path / "table"
    text.write_text("no")
    pl.DataFrame({"a": [1]}).write_parquet(table)
    for path in (text, table, tmp_path / "none"):
        with pytest.raises(InputError, match=r"not a schedule|the Parquet file is damaged"):
            read_schedule(path)


def test_gpus_that_stand_for_processors_are_called_so(foresail, tmp_path):
    """Philly's log knows gpus alone: the machine, jobs and figures are told in these."""
    path = tmp_path / "philly.csv"
    rows = [f"2017-10-09 0{hour}:13:03,2951.0,2,5902.0,6214e9" for hour in range(9)]
    path.write_text("\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *rows]) + "\n")
    both = ("--with", "easy", "--with", "fcfs", "--processors", 8)
    status, out, _ = foresail("compare", path, *both, "--output", tmp_path / "out")
    assert (status, "9 jobs on 8 gpus" in out, "processor" in out) == (0, True, False)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "on 8 gpus" in page
    assert "on 8 processors" not in page
    _, out, _ = foresail("compare", path, *both, "--format", "json")
    assert {each["unit"] for each in json.loads(out)["policies"]} == {"gpu"}
