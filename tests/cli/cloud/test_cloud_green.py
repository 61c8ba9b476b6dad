"""``foresail cloud green`` as a user meets it."""

from __future__ import annotations

import csv
import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.cli.main import main
from foresail.cloud.waiting.carbon import CarbonIntensity, IntensitySeries
from foresail.cloud.waiting.green_hours import green_hours, most_cores
from foresail.cloud.waiting.jobs import TraceJobs
from foresail.model.errors import InputError, UnknownNameError
from reading_pages import page_faults

HOUR = 3600.0
DAY = 24 * HOUR
ORIGIN = 1_700_006_400  # a midnight, UTC
DAYS = 6


def job_line(number: int, submit: int, runtime: int, cores: int) -> str:
    return f"{number} {submit} 0 {runtime} {cores} -1 -1 {cores} 43200 -1 1 1 1 1 1 -1 -1 -1"


@pytest.fixture
def log(tmp_path):
    """Six days of jobs in SWF with a date."""
    random = np.random.default_rng(3)
    count = 240
    submit = np.sort(random.random(count) * DAYS * DAY).astype(int)
    runtime = np.exp(random.normal(7.5, 1.3, count)).clip(60.0, 40_000.0).astype(int)
    cores = 2 ** random.integers(0, 4, count)
    path = tmp_path / "log.swf"
    jobs = [job_line(n, *each) for n, each in enumerate(zip(submit, runtime, cores, strict=True))]
    path.write_text("\n".join(["; MaxProcs: 64", f"; UnixStartTime: {ORIGIN}", *jobs]) + "\n")
    return path


@pytest.fixture
def undated(tmp_path):
    """One job of two hours on two cores, an hour and a half after an unknown origin."""
    path = tmp_path / "undated.swf"
    path.write_text("; MaxProcs: 4\n" + job_line(1, 5400, 7200, 2) + "\n")
    return path


def day(hour: float) -> float:
    return 300.0 + 100.0 * math.cos(2.0 * math.pi * (hour - 19.0) / 24.0)


def series(path, clock: str, values, step_hours: float = 1.0, first: float = 0.0):
    """A file of intensities; hours count from the log's origin."""
    lines = [f"{clock},grams_per_kwh"]
    for at, value in enumerate(values):
        hours = first + at * step_hours
        unix = ORIGIN + hours * HOUR
        told = {
            "hours": f"{hours}",
            "unix_seconds": f"{unix:.0f}",
            "time": str(np.datetime64(int(unix), "s")),
        }
        lines.append(f"{told[clock]},{value}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def whole(tmp_path):
    """Nine days of hours, which hold all that may run."""
    return series(tmp_path / "whole.csv", "time", [day(hour) for hour in range(9 * 24)])


def run(*arguments: object):
    return CliRunner().invoke(app, ["green", *map(str, arguments)])


def told(*arguments: object):
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def refused(*arguments: object) -> InputError:
    error = run(*arguments).exception
    assert isinstance(error, InputError), error
    return error


def test_the_saving_first(log, whole, tmp_path):
    """The first sentence is the saving and the delay; the page has figures with their numbers."""
    out = tmp_path / "out"
    result = run(log, "--intensity", whole, "--patience", "1h,6h,24h", "--output", out)
    assert result.exit_code == 0, result.exception
    said = " ".join(result.stdout.split())
    assert said.startswith("If every job starts within 24 h of its submission when it emits least")
    assert "Jobs never wait for capacity here" in said
    assert "known ones would save" in said
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    for name in ("patiences", "saving", "day"):
        assert f"{name}.csv" in page
        assert (out / f"{name}.csv").stat().st_size > 0


def test_work_is_the_same(log, whole, tmp_path):
    """Core-hours over the course are those of the log, whether jobs wait or not."""
    out = tmp_path / "out"
    assert run(log, "--intensity", whole, "--output", out).exit_code == 0
    rows = list(csv.DictReader((out / "day.csv").read_text().splitlines()))
    work = told(log, "--intensity", whole)["core_hours"]
    for column in ("cores_at_once", "cores_waiting"):
        hours = sum(
            float(row[column]) * (float(row["end_seconds"]) - float(row["begin_seconds"])) / HOUR
            for row in rows
        )
        assert hours == pytest.approx(work)
    emitted = sum(
        float(row["cores_at_once"]) * float(row["grams_per_kwh"]) * 0.01 / 1000.0 for row in rows
    )
    # Hour by hour of the series' own steps, so that the sum is what is emitted.
    assert emitted == pytest.approx(told(log, "--intensity", whole)["kilograms_at_once"])


def test_patience_pays(log, whole):
    """None saves nothing; with known runtimes more never emits more than less does."""
    arguments = (log, "--intensity", whole, "--patience", "30min,1h,3h,6h,12h,24h")
    points = told(*arguments)["points"]
    none = points[0]
    assert none["patience_seconds"] == 0.0
    assert none["kilograms_saved"] == none["mean_wait_seconds"] == none["waiting_jobs"] == 0.0
    for less, more in pairwise(points):
        assert more["known_grams"] <= less["known_grams"] * (1.0 + 1e-9)
    for each in points:
        assert each["known_grams"] <= each["grams"] * (1.0 + 1e-9)
        assert each["mean_wait_seconds"] <= each["patience_seconds"]
    assert points[-1]["known_saved"] > points[-1]["saved"] > 0.05
    known = told(*arguments, "--runtimes", "known")["points"]
    assert [each["grams"] for each in known] == [each["known_grams"] for each in points]


def test_delay_must_be_worth_it(log, whole):
    """The more an hour's delay must save, the less delay and saving; at last nobody waits."""
    arguments = (log, "--intensity", whole, "--runtimes", "known", "--patience", "24h")
    points = [told(*arguments, "--hour-grams", grams)["points"][1] for grams in (0, 0.5, 1e6)]
    for free, dear in pairwise(points):
        assert dear["mean_wait_seconds"] < free["mean_wait_seconds"]
        assert dear["kilograms_saved"] < free["kilograms_saved"]
    hours = points[1]["mean_wait_seconds"] * 240 / HOUR
    assert points[1]["kilograms_saved"] * 1000.0 >= 0.5 * hours
    assert points[2]["waiting_jobs"] == 0.0
    said = " ".join(run(*arguments, "--hour-grams", 0.5).stdout.split())
    assert "and an hour's delay of a job must save 0.5 g, that saves" in said


def test_one_job_by_hand(undated, tmp_path):
    """Two hours from 1:30: 3 half hours of 4 g and one of 1 at once, later all at 1."""
    file = series(tmp_path / "hours.csv", "hours", [4, 4, 4, 1, 1, 4, 4, 4])
    arguments = (undated, "--intensity", file, "--runtimes", "known", "--watts", 500)
    result = told(*arguments, "--patience", "1h,2h")
    assert result["kilograms_at_once"] == pytest.approx((1.5 * 4 + 0.5 * 1) / 1000.0)
    hour, two = result["points"][1:]
    assert hour["grams"] == pytest.approx(0.5 * 4 + 1.5 * 1)
    assert (two["grams"], two["mean_wait_seconds"]) == (pytest.approx(2.0), 1.5 * HOUR)
    assert two["most_cores"] == 2


def test_the_same_by_every_clock(log, whole, tmp_path):
    """Dates, Unix seconds and hours say the same; a day goes round where a year is not there."""
    first = told(log, "--intensity", whole)
    for clock in ("unix_seconds", "hours"):
        values = [day(hour) for hour in range(9 * 24)]
        file = series(tmp_path / f"{clock}.csv", clock, values)
        assert told(log, "--intensity", file)["points"] == first["points"]
    one = series(tmp_path / "one.csv", "time", [day(hour) for hour in range(24)], first=-2400.0)
    rounds = told(log, "--intensity", one, "--repeat", "daily")
    for mine, theirs in zip(rounds["points"], first["points"], strict=True):
        assert mine["known_grams"] == pytest.approx(theirs["known_grams"])


def test_who_is_not_believed_starts_at_once():
    """A predictor may say nothing of a job: it does not wait, though that would save."""
    jobs = TraceJobs(np.array([HOUR]), np.array([HOUR]), np.array([1]))
    carbon = CarbonIntensity(np.array([4.0, 4.0, 1.0, 1.0]))
    laid = IntensitySeries(Path("hours.csv"), "hours", 0.0, carbon, False, None)
    answer = green_hours(jobs, laid, np.array([np.inf]), [HOUR], 0.01)
    assert answer.unbelieved_jobs == 1.0
    assert answer.points[1].believed.saved == 0.0
    assert answer.points[1].known.saved == pytest.approx(0.75)


def test_most_cores():
    """An end and a start at one time do not overlap; a job of no length uses nothing."""
    jobs = TraceJobs(np.zeros(3), np.array([10.0, 10.0, 0.0]), np.array([3, 4, 50]))
    assert most_cores(np.array([0.0, 10.0, 5.0]), jobs) == 4
    assert most_cores(np.array([0.0, 9.0, 5.0]), jobs) == 7


def test_options_from_a_file(log, whole, tmp_path):
    """A file gives them."""
    config = tmp_path / "cloud.toml"
    config.write_text(
        f'[green]\nintensity = "{whole}"\npatience = ["2h", "4h"]\nwatts = 20\nformat = "json"\n'
    )
    record = json.loads(run(log, "--config", config).stdout)
    assert [each["patience_seconds"] for each in record["points"]] == [0.0, 2 * HOUR, 4 * HOUR]
    assert record["watts_per_core"] == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("content", "line", "field", "value"),
    [
        ("hours,grams_per_kwh\n0,5\n1,-5\n2,5\n", 3, "grams_per_kwh", -5.0),
        ("hours,grams_per_kwh\n0,5\n1,\n2,5\n", 3, "grams_per_kwh", None),
        ("hours,grams_per_kwh\n0,5\n1,nan\n2,5\n", 3, "grams_per_kwh", "nan"),
        ("hours,grams_per_kwh\n0,5\n1,five\n2,5\n", 3, "grams_per_kwh", "five"),
        ("hours,grams_per_kwh\n0,5\n2,5\n1,5\n", 4, "hours", "1"),
        ("hours,grams_per_kwh\n0,5\n1,5\n1,5\n", 4, "hours", "1"),
        ("hours,grams_per_kwh\n0,5\n1,5\n2,5\n4,5\n", 5, "hours", "4"),
        ("hours,grams_per_kwh\n0,5\n,5\n2,5\n", 3, "hours", None),
        ("time,grams_per_kwh\n2024-01-01,5\nsoon,5\n", 3, "time", "soon"),
        ("hours,grams_per_kwh,zone\n0,5,a\n1,5,a\n", 2, "zone", None),
        ("hour,grams_per_kwh\n0,5\n1,5\n", None, None, "grams_per_kwh, hour"),
        ("hours,grams_per_kwh\n0,5\n", None, None, 1),
    ],
    ids=lambda each: None if isinstance(each, str) and "\n" in each else str(each),
)
def test_bad_series(log, tmp_path, content, line, field, value):
    """Missing, negative or unsorted: file, line, field and value, and what was expected."""
    file = tmp_path / "bad.csv"
    file.write_text(content)
    error = refused(log, "--intensity", file)
    found = "nan" if isinstance(error.value, float) and math.isnan(error.value) else error.value
    assert (str(error.source), error.line, error.field) == (str(file), line, field)
    assert found == value
    assert error.expected


def test_series_that_does_not_hold_the_log(log, undated, whole, tmp_path):
    """Elsewhere in time, or too short: what it holds, what it should, and what helps."""
    one = series(tmp_path / "one.csv", "time", [day(hour) for hour in range(24)], first=-2400.0)
    error = refused(log, "--intensity", one)
    assert "does not overlap" in error.problem
    assert str(error.expected).endswith("or --repeat daily")
    short = series(tmp_path / "short.csv", "hours", [1.0] * 30)
    error = refused(log, "--intensity", short)
    assert "as long as the jobs may run" in error.problem
    assert (error.field, error.value) == ("hours", "0 to 30")
    error = refused(log, "--intensity", short, "--repeat", "daily")
    assert (error.value, error.expected) == ("30 hours", "a multiple of 24 hours")
    error = refused(log, "--intensity", whole, "--repeat", "weekly")
    assert error.expected == "a multiple of 168 hours"
    error = refused(undated, "--intensity", whole)
    assert error.field == "time"
    assert "hours" in str(error.expected)


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (("--watts", "0"), "watts", 0.0),
        (("--hour-grams=-1",), "hour grams", -1.0),
        (("--patience=-1h",), "--patience", "-1h"),
        (("--repeat", "yearly"), "--repeat", "yearly"),
    ],
    ids=["watts", "grams", "patience", "repeat"],
)
def test_bad_options(log, whole, arguments, field, value):
    """Each names its option and value."""
    error = refused(log, "--intensity", whole, *arguments)
    assert (error.field, error.value) == (field, value)


def test_unknown_predictor(log, whole):
    """What there is, is said."""
    with pytest.raises(UnknownNameError, match="recent"):
        raise run(log, "--intensity", whole, "--runtimes", "recnt").exception


def test_exit_status(log, tmp_path, monkeypatch, capsys):
    """From the shell: one line on standard error, and status 2."""
    arguments = ["foresail", "cloud", "green", str(log), "--intensity", str(tmp_path / "none.csv")]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "there is no such file" in capsys.readouterr().err


def test_nothing_to_save(log, whole, tmp_path):
    """No intensity at all, or no patience: nothing is saved, and there is a page all the same."""
    file = series(tmp_path / "none.csv", "hours", [0.0] * 9 * 24)
    for arguments in (("--intensity", file), ("--intensity", whole, "--patience", "0")):
        out = tmp_path / "out"
        result = run(log, *arguments, "--output", out)
        assert result.exit_code == 0, result.exception
        assert result.stdout.startswith("Waiting for green hours saves nothing worth its name")
        assert (out / "report.html").stat().st_size > 0


def test_how_sure_it_is(log, whole, tmp_path):
    """Days drawn anew: the log's own saving and delay lie in their ranges; the page says so."""
    out = tmp_path / "out"
    arguments = (log, "--intensity", whole, "--runtimes", "requested")
    record = told(*arguments, "--output", out)
    assert (record["blocks_drawn"], record["block_seconds"]) == (DAYS, DAY)
    for point in record["points"][1:]:
        assert point["saved_low"] < point["saved"] < point["saved_high"]
        low, high = point["mean_wait_seconds_low"], point["mean_wait_seconds_high"]
        assert low < point["mean_wait_seconds"] < high
    words = " ".join(run(*arguments).stdout.split())
    assert "Put together anew from the log's 6 days, 19 periods of 20 save" in words
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    assert "95 % range" in page.replace("\u00a0", " ")


def test_too_short_to_be_sure(undated):
    """One job says nothing of others."""
    hours = series(undated.with_name("hours.csv"), "hours", [day(hour) for hour in range(24)])
    arguments = (undated, "--intensity", hours, "--repeat", "daily", "--runtimes", "known")
    record = told(*arguments)
    assert record["blocks_drawn"] == 0
    assert record["points"][-1]["saved_low"] is None
    assert "too short to say how sure that is" in " ".join(run(*arguments).stdout.split())


def test_weeks_all_alike_leave_no_doubt():
    """Where every week is the same, what weeks drawn anew save is what the log saves."""
    weeks, week = 6, 7 * DAY
    submit = np.sort(np.concatenate([np.arange(weeks) * week + at for at in (HOUR, 40 * HOUR)]))
    submit = np.append(submit, weeks * week)
    runtime = np.append(np.full(2 * weeks, 2 * HOUR), 0.0)
    jobs = TraceJobs(submit, runtime, np.ones(submit.size, np.int64))
    carbon = CarbonIntensity(np.array([day(hour) for hour in range(24)]))
    found = green_hours(
        jobs, IntensitySeries(Path("x"), "hours", 0.0, carbon, True, None), runtime, [DAY], 0.01
    )
    point = found.points[1]
    assert found.blocks == weeks
    assert point.certainty is not None
    assert point.certainty.saved == pytest.approx((point.believed.saved,) * 2)


def test_gpus_draw_power():
    """A job with two gpus emits what its core and they draw; their power is in the answer."""
    jobs = TraceJobs(np.zeros(2), np.full(2, HOUR), np.ones(2, np.int64), gpus=np.array([0.0, 2.0]))
    carbon = CarbonIntensity(np.full(24, 100.0))
    series_ = IntensitySeries(Path("x"), "hours", 0.0, carbon, True, None)
    found = green_hours(jobs, series_, jobs.runtime_seconds, [HOUR], 0.01, 0.0, 0.2)
    assert found.points[0].believed.grams_at_once == pytest.approx(100.0 * (0.01 + 0.01 + 2 * 0.2))
    assert (found.gpu_hours, found.kilowatts_per_gpu) == (2.0, 0.2)
    with pytest.raises(InputError, match="gpu watts"):
        green_hours(jobs, series_, jobs.runtime_seconds, [HOUR], 0.01, 0.0, -1.0)
