"""The one check of what was read: what cannot be is refused, what is odd is told."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.traces.facts import facts
from foresail.traces.filtering import apply_filters, choices_of
from foresail.traces.plausibility import clean_and_check, plausibility
from foresail.traces.reading import read
from foresail.traces.validation import validate
from foresail.traces.workload import Oddity, Workload, WorkloadMeta, jobs_table

DAY = 86400.0
JOBS = 200
BUSY = 4 * 1800.0 * JOBS / (10 * DAY)
"""Processors that the log below keeps busy, on average."""


def log(processors: int | None = 8, **columns) -> Workload:
    """Ten days of jobs of half an hour on four cpus each, by four users; some columns changed."""
    sound = {
        "job_id": [str(number) for number in range(JOBS)],
        "submit_seconds": np.linspace(0.0, 10 * DAY, JOBS),
        "recorded_wait_seconds": np.zeros(JOBS),
        "runtime_seconds": np.full(JOBS, 1800.0),
        "requested_seconds": np.full(JOBS, 3600.0),
        "tasks": np.full(JOBS, 4),
        "allocated_cpus": np.full(JOBS, 4.0),
        "status": ["completed"] * JOBS,
        "user": [f"u{number % 4}" for number in range(JOBS)],
    }
    return Workload(jobs_table(sound | columns), WorkloadMeta("log", "test", processors))


def found_of(workload: Workload) -> tuple[Oddity, ...]:
    """What is found about a workload that no filter has changed."""
    return plausibility(workload, workload)


def changed(values, **at) -> list:
    """A list with some of its values replaced."""
    values = list(values)
    for place, value in at.items():
        values[int(place.removeprefix("_"))] = value
    return values


HALF = np.arange(JOBS) < JOBS / 2
JUST_LESS = np.arange(JOBS) < JOBS / 2 - 1
RUNTIMES = [1800.0] * JOBS


@pytest.mark.parametrize("processors", [8, None])
def test_a_sound_log(processors):
    """Nothing is said of it."""
    assert found_of(log(processors)) == ()
    assert found_of(log().with_jobs(log().jobs.clear())) == ()


@pytest.mark.parametrize(
    ("columns", "name", "count", "example"),
    [
        (
            {"runtime_seconds": changed(RUNTIMES, _3=1.7e9)},
            "runtime_beyond_the_log",
            1,
            "job 3, runtime_seconds = 1700000000.0",
        ),
        (
            {"submit_seconds": np.linspace(0.0, 101 * 366 * DAY, JOBS)},
            "times",
            1,
            f"job 199, submit_seconds = {101 * 366 * DAY}",
        ),
    ],
)
def test_what_cannot_be(columns, name, count, example):
    """It is refused with an example, and what to do."""
    first = found_of(log(**columns))[0]
    assert (first.severity, first.name, first.count, first.example) == (
        *("impossible", name, count),
        example,
    )
    with pytest.raises(InputError, match=f"field '{name}'.*found '{first.example}'.*expected"):
        clean_and_check(log(**columns), ())


def test_times_in_milliseconds():
    """An origin that far ahead is one of milliseconds; today's is not."""
    meta = {"origin_unix_seconds": 1.7e12}
    assert [each.name for each in found_of(log().with_meta(**meta))] == ["times"]
    assert found_of(log().with_meta(origin_unix_seconds=1.7e9)) == ()


@pytest.mark.parametrize(
    ("columns", "name", "count"),
    [
        ({"runtime_seconds": changed(RUNTIMES, _7=11 * DAY)}, "runtime_longer_than_log", 1),
        (
            {"requested_seconds": np.where(HALF, 1799.0, 3600.0)},
            "runtime_beyond_most_requests",
            100,
        ),
        ({"allocated_cpus": np.where(HALF, 8.0, 4.0)}, "narrower_than_allocated", 100),
        ({"tasks": np.ones(JOBS, int), "allocated_cpus": [None] * JOBS}, "all_of_one_cpu", 200),
        ({"user": [None if half else "u" for half in HALF]}, "unknown_users", 100),
        ({"user": ["Unknown" if half else "u" for half in HALF]}, "unknown_users", 100),
        ({"status": [None if half else "failed" for half in HALF]}, "unknown_statuses", 100),
        ({"tasks": np.where(np.arange(JOBS) < 8, 12, 4)}, "use_beyond_processors", 1),
        ({"submit_seconds": np.where(HALF, 0.0, 20 * DAY) + np.arange(JOBS)}, "gap", 1),
        (
            {"submit_seconds": changed(np.linspace(0.0, DAY, JOBS), _199=40 * DAY)},
            "outside_window",
            1,
        ),
    ],
)
def test_what_is_odd(columns, name, count):
    """It is told with a number and an example where there is one, and is an error when strict."""
    found = {each.name: each for each in found_of(log(**columns))}
    assert (found[name].severity, found[name].count) == ("odd", count)
    assert found[name].example or count == 1
    assert name in {each.name for each in clean_and_check(log(**columns), ()).findings}
    with pytest.raises(InputError):
        clean_and_check(log(**columns), (), strict=True)


@pytest.mark.parametrize(
    "columns",
    [
        {"runtime_seconds": changed(RUNTIMES, _7=10 * DAY)},
        {
            "submit_seconds": np.zeros(JOBS),
            "runtime_seconds": [90.0] * JOBS,
            "tasks": [1] * JOBS,
            "allocated_cpus": [None] * JOBS,
            "recorded_wait_seconds": [None] * JOBS,
            "user": changed(["u"] * JOBS, _3=None),
            "cpus_per_task": [0.5] * JOBS,
        },
        {"requested_seconds": np.where(JUST_LESS, 1799.0, 3600.0)},
        {"allocated_cpus": np.where(JUST_LESS, 8.0, 4.0)},
        {"tasks": changed([1] * JOBS, _9=2), "allocated_cpus": [None] * JOBS},
        {"user": [None if half else "u" for half in JUST_LESS]},
        {"user": [None] * JOBS},
        {"status": [None] * JOBS},
        {"submit_seconds": np.where(HALF, 0.0, 6 * DAY) + np.arange(JOBS)},
        {"submit_seconds": changed(np.linspace(0.0, 9 * DAY, JOBS), _199=9.9 * DAY)},
    ],
)
def test_what_is_not_odd(columns):
    """A little less of the same is no finding."""
    assert found_of(log(**columns)) == ()


def test_load():
    """Twice what the machine can do is the bound; a burst of short jobs is not without end."""
    for factor, names in ((2.05, ["load"]), (1.95, [])):
        runtimes = np.full(JOBS, 1800.0) * factor * 8 / BUSY
        workload = log(runtime_seconds=runtimes, requested_seconds=runtimes)
        workload = workload.with_jobs(workload.jobs.with_columns(recorded_wait_seconds=None))
        workload = workload.with_jobs(
            workload.jobs.with_columns(pl.col("recorded_wait_seconds").cast(pl.Float64))
        )
        assert [each.name for each in found_of(workload)] == names
    hours = {"runtime_seconds": np.full(JOBS, 3600.0), "recorded_wait_seconds": [None] * JOBS}
    burst = log(4 * JOBS, submit_seconds=np.zeros(JOBS), **hours)
    assert found_of(burst) == ()
    (found,) = found_of(burst.with_meta(processors=40))
    assert found.sentence.startswith("jobs ask for 20 times what 40 processors can do")
    shorter = log(40, submit_seconds=np.zeros(JOBS), recorded_wait_seconds=[None] * JOBS)
    assert found_of(shorter) == (), "less than an hour says nothing"


def test_a_year_in_a_longer_log():
    """Runs of more than a year are odd in a log that is long enough, and can be dropped."""
    columns = {"submit_seconds": np.linspace(0.0, 800 * DAY, JOBS), "recorded_wait_seconds": None}
    columns |= {"runtime_seconds": changed(RUNTIMES, _0=400 * DAY), "requested_seconds": None}
    columns = {k: [None] * JOBS if v is None else v for k, v in columns.items()}
    (found,) = found_of(log(**columns))
    assert (found.severity, found.name) == ("odd", "runtime_beyond_a_year")
    dropped = apply_filters(log(**columns), choices_of(["drop_runtime_beyond_a_year"]))
    assert found_of(dropped) == ()
    assert dropped.meta.filters == (("drop_runtime_beyond_a_year", 1),)


def test_ids_that_tell_of_copies_and_steps():
    """Copies have the id and all else of another; steps the id of a job before a point."""
    ids = changed(log().jobs["job_id"], _1="0#2", _5="4.0", _6="x.batch", _7="y.5")
    submit = changed(log().jobs["submit_seconds"], _1=0.0)
    found = {each.name: each for each in found_of(log(job_id=ids, submit_seconds=submit))}
    assert set(found) == {"repeated_jobs", "steps_among_jobs"}
    assert found["repeated_jobs"].example == "job 0#2, submit_seconds = 0.0"
    assert found["steps_among_jobs"].count == 2


def test_steps_whose_job_has_no_row():
    """A named step tells that those beside it are steps too."""
    ids = changed(log().jobs["job_id"], _1="x.batch", _2="x.0", _3="y.5")
    assert [each.count for each in found_of(log(job_id=ids))] == [2]


def test_the_window_of_a_log():
    """The few jobs far before and after it are in no load, and are dropped before a replay."""
    submit = log().jobs["submit_seconds"].to_list()
    early = log(submit_seconds=changed(submit, _0=-40 * DAY, _1=-39 * DAY))
    assert facts(early).offered_load == pytest.approx(facts(log()).offered_load, rel=0.02)
    assert facts(early).outside_window == 2
    cleaned = apply_filters(early, choices_of(["replayable"]))
    assert cleaned.meta.filters[-1] == ("drop_outside_window", 2)
    assert cleaned.meta.examples["drop_outside_window"] == "job 0"
    assert found_of(cleaned) == ()
    for each in (early, early.with_meta(processors=None)):
        named = [found.name for found in validate(each).findings if found.severity == "odd"]
        assert named == ["outside_window"]
    third = log(submit_seconds=changed(submit, _0=-40 * DAY, _1=-39 * DAY, _2=-38 * DAY))
    assert facts(third).outside_window == 0, "three of two hundred are no exception"


def test_most_of_a_log_dropped():
    """It is said where cleaning leaves less than half."""
    half = log(runtime_seconds=np.where(HALF, 0.0, 1800.0))
    less = log(runtime_seconds=np.where(JUST_LESS, 0.0, 1800.0))
    named = [
        [each.name for each in found_of(apply_filters(each, choices_of(["replayable"])))]
        for each in (half, less)
    ]
    assert named == [["most_dropped"], []]


def test_what_filters_hide():
    """Times in milliseconds are refused though one job is left, and so are requests in minutes."""
    late = log(
        submit_seconds=np.linspace(0.0, 1.7e12, JOBS), runtime_seconds=changed([0.0] * JOBS, _0=9.0)
    )
    with pytest.raises(InputError, match="field 'times'"):
        clean_and_check(late, choices_of(["replayable"]))
    minutes = log(requested_seconds=np.full(JOBS, 60.0))
    for filters in (["replayable"], ["replayable", "clip_runtime_to_request"]):
        found = clean_and_check(minutes, choices_of(filters)).findings
        assert [each.name for each in found] == ["runtime_beyond_most_requests"]


def test_one_job_of_another_unit():
    """The few jobs outside of a log's window are no reason to refuse it, if a filter drops them."""
    submit = changed(log().jobs["submit_seconds"], _199=99999999999.0)
    cleaned = clean_and_check(log(submit_seconds=submit), choices_of(["replayable"]))
    assert cleaned.findings == ()
    with pytest.raises(InputError, match="field 'times'"):
        clean_and_check(log(submit_seconds=submit), ())


def test_an_hour_that_clocks_showed_twice(tmp_path):
    """It is odd, with how many times are in it."""
    table, mapping = tmp_path / "log.csv", tmp_path / "mapping.toml"
    table.write_text(
        "at,run\n2024-10-27 01:30:00,60\n2024-10-27 02:30:00,60\n2024-10-27 02:40:00,60\n"
    )
    mapping.write_text(
        "[table]\n[columns]\nruntime_seconds = 'run'\n"
        "submit_seconds = { column = 'at', time = '%Y-%m-%d %H:%M:%S', zone = 'Europe/Paris' }\n"
    )
    workload = read(table, mapping=mapping, processors=4)
    (found,) = clean_and_check(workload, choices_of(["replayable"])).findings
    assert (found.severity, found.name, found.count) == ("odd", "local_times_twice", 2)
    assert found.example == "line 3: '2024-10-27 02:30:00'"


def test_a_table_that_holds_its_rows_twice(tmp_path):
    """Rows are the same job where ids are numbers of rows; one in twenty-one may be a coincidence.

    An id that is mapped says that they are several.
    """
    table, mapping = tmp_path / "log.csv", tmp_path / "mapping.toml"
    mapping.write_text("[columns]\nruntime_seconds = 'run'\nsubmit_seconds = 'at'\ntasks = 'n'\n")
    rows = [f"{60 * number},{7 + number},2,{1000 + number}\n" for number in range(20)]

    def found():
        cleaned = clean_and_check(read(table, mapping=mapping, processors=4), ())
        return [(each.name, each.count, each.example) for each in cleaned.findings]

    table.write_text("at,run,n,id\n" + "".join(rows + rows))
    assert found() == [("repeated_rows", 20, "job 21, submit_seconds = 0.0")]
    table.write_text("at,run,n,id\n" + "".join([*rows, rows[0]]))
    assert found() == []
    table.write_text("at,run,n,id\n" + "".join(f"0,7,2,{1000 + n}\n" for n in range(20)))
    mapping.write_text(mapping.read_text() + "job_id = 'id'\n")
    assert found() == []


def test_partitions_whose_names_differ_in_case_only():
    """They are several, and it is odd."""
    names = ["B"] * (JOBS - 2) + ["b", "A"]
    (found,) = found_of(log(partition=names))
    assert (found.name, found.count) == ("partitions_by_case", 1)
    assert "(B, b)" in found.words


@pytest.mark.parametrize(
    ("runtimes", "requests", "name"),
    [
        (np.where(HALF, 0.02, 1800.0), np.full(JOBS, 3600.0), "runtime_below_a_second"),
        (np.where(JUST_LESS, 0.02, 1800.0), np.full(JOBS, 3600.0), None),
        (np.full(JOBS, 72.0), np.full(JOBS, 3600.0), "request_beyond_all_runtimes"),
        (np.where(HALF, 72.0, 72.1), np.full(JOBS, 3600.0), None),
    ],
)
def test_units_that_make_runtimes_too_short(runtimes, requests, name):
    """Days read as seconds, or requests whose seconds are read as minutes."""
    found = found_of(log(runtime_seconds=runtimes, requested_seconds=requests))
    assert [each.name for each in found] == ([] if name is None else [name])


@pytest.mark.parametrize(("early", "names"), [(100, ["start_before_submission"]), (99, [])])
def test_starts_before_submissions(early, names):
    """Of half of the jobs these are columns swapped, not clocks that run apart."""
    repairs = {"unknown_for_negative_recorded_wait_seconds": early}
    found = found_of(log().with_meta(repairs=repairs))
    assert [each.name for each in found] == names
