"""Cleaning filters: each on jobs made for it, all on any jobs, the study's on its own logs."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import NoParameters, entries
from foresail.traces import schema
from foresail.traces.filtering import Bundle, FilterChoice, apply_filters
from foresail.traces.filters.changing import predictsim
from foresail.traces.filters.dropping import FlurryParameters
from foresail.traces.filters.keeping import BetweenParameters, FirstWeeksParameters, UsersParameters
from foresail.traces.reading import read
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from shared import shared

DAY = 86400.0


def workload(processors=8, origin=None, **columns):
    height = len(next(iter(columns.values())))
    made = {
        "job_id": [str(n) for n in range(1, height + 1)],
        "submit_seconds": [10.0 * n for n in range(height)],
        "runtime_seconds": [60.0] * height,
        "tasks": [1] * height,
        **columns,
    }
    return Workload(
        jobs_table(made), WorkloadMeta("made", "made", processors, origin_unix_seconds=origin)
    )


def cleaned(given_workload, name, parameters=None):
    """Ids left and jobs touched."""
    result = apply_filters(given_workload, [FilterChoice(name, parameters)])
    assert [recorded for recorded, _ in result.meta.filters] == [name]
    return result, result.meta.filters[0][1]


def ids(result):
    return result.jobs["job_id"].to_list()


def test_wider_than_machine():
    """Requested or allocated processors above the machine's drop the job; unknown ones do not."""
    log = workload(tasks=[8, 9, 1, None], allocated_cpus=[None, 1.0, 9.0, None])
    result, touched = cleaned(log, "drop_wider_than_machine")
    assert (ids(result), touched) == (["1", "4"], 2)


@pytest.mark.parametrize(
    ("after", "left"),
    [
        ([None, "1", "2", "2"], [None, "1", "1"]),
        (["2", "1", "2", None], ["1", "1", None]),  # a circle is no reason to look for ever
        ([None, None, "2", "1,2,1"], [None, None, "1"]),
        ([None, "9", "2", "4"], [None, "9", "4"]),  # what is not there is left as it is
    ],
)
def test_a_chain_outlives_a_step_that_is_dropped(after, left):
    """Who waited for job 2, which takes no time, waits for those that it waited for."""
    log = workload(runtime_seconds=[60.0, 0.0, 60.0, 60.0], after_jobs=after)
    result, touched = cleaned(log, "drop_no_runtime")
    assert touched == 1
    assert result.jobs["after_jobs"].to_list() == left


def test_tasks_wider_than_machine():
    """Many tasks are no trouble if each fits; one that does not drops its job."""
    log = workload(tasks=[100, 1, 3], cpus_per_task=[1.0, 9.0, 1.0])
    assert ids(cleaned(log, "drop_tasks_wider_than_machine")[0]) == ["1", "3"]
    row = {"job_id": "3", "task": 0, "runtime_seconds": 60.0, "cpus": 9.0}
    tasks = pl.DataFrame([{name: row.get(name) for name in schema.TASKS}], schema=schema.TASKS)
    assert ids(cleaned(replace(log, tasks=tasks), "drop_tasks_wider_than_machine")[0]) == ["1"]


def test_wider_than_machine_needs_its_size():
    """Without the machine's size the filter says what is missing."""
    with pytest.raises(InputError, match="--processors"):
        cleaned(workload(processors=None, tasks=[1]), "drop_wider_than_machine")


def test_fill_processors():
    """The one that is known serves for both; jobs of unknown size are counted apart."""
    log = workload(tasks=[2, None, 3, None, 0], allocated_cpus=[None, 5.0, 4.0, None, 0.0])
    filled, touched = cleaned(log, "fill_processors")
    assert touched == 2
    assert filled.jobs["tasks"].to_list() == [2, 5, 3, None, 0]
    assert cleaned(log, "drop_no_processors")[1] == 2
    result = apply_filters(log, [FilterChoice("replayable")])
    assert result.meta.filters[:2] == (("drop_no_processors", 2), ("fill_processors", 2))
    assert result.jobs["tasks"].to_list() == [2, 5, 3]
    assert result.jobs["allocated_cpus"].to_list() == [2.0, 5.0, 4.0]


@pytest.mark.parametrize(
    ("name", "column"),
    [("drop_no_runtime", "runtime_seconds"), ("drop_no_request", "requested_seconds")],
)
def test_no_runtime_and_no_request(name, column):
    """Unknown, zero and negative times drop the job."""
    result, touched = cleaned(workload(**{column: [None, 0.0, -1.0, 0.5]}), name)
    assert (ids(result), touched) == (["4"], 3)


def test_clip_and_raise():
    """A runtime above its request is cut, or the request is raised; unknown requests stay."""
    log = workload(runtime_seconds=[10.0, 20.0, 30.0], requested_seconds=[15.0, 15.0, None])
    clipped, touched = cleaned(log, "clip_runtime_to_request")
    assert (clipped.jobs["runtime_seconds"].to_list(), touched) == ([10.0, 15.0, 30.0], 1)
    raised, touched = cleaned(log, "raise_request_to_runtime")
    assert (raised.jobs["requested_seconds"].to_list(), touched) == ([15.0, 20.0, None], 1)


def test_negative_submit():
    """Submissions before second zero are dropped."""
    result, touched = cleaned(workload(submit_seconds=[-1.0, 0.0, 1.0]), "drop_negative_submit")
    assert (ids(result), touched) == (["2", "3"], 1)


def test_cancelled_before_start():
    """Only cancelled jobs that did not run are dropped."""
    log = workload(
        status=["cancelled", "cancelled", "cancelled", "failed", None],
        runtime_seconds=[0.0, None, 5.0, 0.0, 0.0],
    )
    result, touched = cleaned(log, "drop_cancelled_before_start")
    assert (ids(result), touched) == (["3", "4", "5"], 2)


def test_flurries():
    """A burst of one user that is too long goes as a whole; others between it stay."""
    log = workload(
        submit_seconds=[0.0, 1800.0, 2000.0, 2001.0, 2002.0, 4000.0, 4001.0],
        user=["a", "a", "a", "b", "a", "a", "a"],
    )
    parameters = FlurryParameters(jobs=3)
    result, touched = cleaned(log, "drop_flurries", parameters)
    assert (ids(result), touched) == (["4", "6", "7"], 4)
    nobody = workload(
        submit_seconds=[0.0, 1.0, 2.0, 3.0], user=pl.Series([None] * 4, dtype=pl.String)
    )
    assert cleaned(nobody, "drop_flurries", parameters)[1] == 0


def test_duplicates():
    """Rows of one id and submission become one: the last that is no partial execution.

    The same id at another time is another job and keeps its name.
    """
    log = workload(
        job_id=["5", "5#2", "6", "7", "5#3", "7#2"],
        submit_seconds=[0.0, 0.0, 1.0, 2.0, 3.0, 2.0],
        status=["completed", "partial", "partial", "failed", None, "completed"],
        runtime_seconds=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    )
    result, touched = cleaned(log, "merge_duplicates")
    assert touched == 2
    assert ids(result) == ["5", "6", "7", "5#3"]
    assert result.jobs["runtime_seconds"].to_list() == [1.0, 3.0, 6.0, 5.0]
    assert cleaned(log.with_jobs(result.jobs), "merge_duplicates")[1] == 0


def test_between_seconds_and_dates():
    """Limits are seconds, or dates in UTC or with an offset; the end is not included."""
    log = workload(
        origin=1_000_000_000.0, submit_seconds=[0.0, DAY, 2 * DAY]
    )  # 2001-09-09T01:46:40
    for start, end in (
        ("86400", "172800"),
        ("2001-09-10", "2001-09-11"),
        ("2001-09-10T03:46:40+02:00", None),
    ):
        result, touched = cleaned(log, "keep_between", BetweenParameters(start, end))
        assert ids(result) == (["2"] if end else ["2", "3"])
        assert touched == 3 - len(result)


@pytest.mark.parametrize(("origin", "text"), [(None, "2001-09-10"), (0.0, "yesterday")])
def test_between_refuses_what_means_nothing(origin, text):
    """A date needs an origin, and must be one."""
    log = workload(origin=origin, tasks=[1])
    with pytest.raises(InputError, match=text):
        cleaned(log, "keep_between", BetweenParameters(start=text))


def test_first_weeks():
    """Weeks count from the first submission."""
    log = workload(submit_seconds=[5 * DAY, 11.9 * DAY, 12 * DAY])
    result, touched = cleaned(log, "keep_first_weeks", FirstWeeksParameters(1))
    assert (ids(result), touched) == (["1", "2"], 1)


def test_users():
    """Jobs of the others and of unknown users are dropped; an unknown name is an error."""
    log = workload(user=["a", "b", None, "c"])
    result, touched = cleaned(log, "keep_users", UsersParameters(("a", "c")))
    assert (ids(result), touched) == (["1", "4"], 2)
    with pytest.raises(InputError, match="'d'"):
        cleaned(log, "keep_users", UsersParameters(("a", "d")))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FlurryParameters(jobs=0),
        lambda: FirstWeeksParameters(0),
        lambda: UsersParameters(()),
    ],
)
def test_parameters_out_of_range_are_refused(wrong):
    """Nonsense is refused when the record is made."""
    with pytest.raises(InputError):
        wrong()


def test_filters_are_recorded_in_order():
    """Counts follow those recorded earlier; a bundle's filters are recorded one by one."""
    once = apply_filters(workload(tasks=[1, 9]), [FilterChoice("drop_no_runtime")])
    twice = apply_filters(once, [FilterChoice("predictsim")])
    names = [choice.name for choice in predictsim(NoParameters()).choices]
    assert [name for name, _ in twice.meta.filters] == ["drop_no_runtime", *names]
    assert dict(twice.meta.filters)["drop_wider_than_machine"] == 1


def test_an_unknown_filter_is_answered_with_the_nearest():
    """A slip of the pen gets the known name."""
    with pytest.raises(UnknownNameError, match="predictsim"):
        apply_filters(workload(tasks=[1]), [FilterChoice("predictsm")])


value = st.none() | st.sampled_from([-1.0, 0.0, 0.5, 1.0, 7.0, 100.0])
row = st.fixed_dictionaries(
    {
        "submit_seconds": st.sampled_from([-5.0, 0.0, 1.0, 1.0, 700.0, 1e6]),
        "runtime_seconds": value,
        "requested_seconds": value,
        "tasks": st.none() | st.integers(0, 12),
        "allocated_cpus": value,
        "status": st.sampled_from([None, "completed", "cancelled", "partial"]),
        "user": st.sampled_from([None, "a", "b"]),
        "job_id": st.sampled_from(["1", "1#2", "2", "3", "3#2"]),
    }
)
SETTINGS = {
    "keep_users": lambda log: UsersParameters(tuple(log.jobs["user"].drop_nulls().unique())),
    "drop_flurries": lambda _: FlurryParameters(jobs=2),
}


@given(st.lists(row, min_size=1, max_size=15))
def test_every_filter_is_honest(rows):
    """On any jobs the source is untouched, columns and order stay, and the count is true.

    Applying a filter again changes nothing (except for flurries: dropping one can join the jobs on
    its two sides).
    """
    columns = {name: [each[name] for each in rows] for name in rows[0]}
    schema = {"tasks": pl.Int64, "status": pl.String, "user": pl.String, "job_id": pl.String}
    table = {n: pl.Series(n, v, dtype=schema.get(n, pl.Float64)) for n, v in columns.items()}
    log = workload(**table)
    before = log.jobs.clone()
    for entry in entries("filter"):
        if entry.name == "keep_users" and log.jobs["user"].null_count() == len(log):
            continue
        parameters = SETTINGS.get(entry.name, lambda _, e=entry: e.parameters())(log)
        result = apply_filters(log, [FilterChoice(entry.name, parameters)])
        assert log.jobs.equals(before)
        assert result.jobs.schema == log.jobs.schema
        assert result.jobs["submit_seconds"].is_sorted()
        touched = sum(count for _, count in result.meta.filters)
        assert touched >= len(log) - len(result)
        assert (touched == 0) == result.jobs.equals(log.jobs)
        if len(result) and not isinstance(entry.build(parameters), Bundle):
            again = SETTINGS.get(entry.name, lambda _, e=entry: e.parameters())(result)
            if entry.name == "drop_flurries":
                continue
            assert apply_filters(result, [FilterChoice(entry.name, again)]).jobs.equals(result.jobs)


@pytest.mark.parametrize(
    ("source", "study", "processors", "jobs"),
    [
        ("KTH-SP2-1996-2", "KTH-SP2", None, 28_481),
        ("SDSC-BLUE-2000-4.1-cln", "SDSC-BLUE", None, 232_542),
        ("CEA-Curie-2011-2.1-cln", "CEA-Curie", 80_640, 295_540),
    ],
)
def test_the_studys_job_sets_are_reproduced(source, study, processors, jobs):
    """From the archive's logs the bundle gives the study's jobs: every job, every field it kept."""
    log = read(shared(f"traces/pwa/{source}.swf.gz"), processors=processors)
    expected = read(shared(f"traces/predictsim-sc15/{study}.filtered.swf.gz")).jobs
    result = apply_filters(log, [FilterChoice("predictsim")]).jobs
    kept = ["job_id", "submit_seconds", "runtime_seconds", "tasks", "requested_seconds", "user"]
    assert len(result) == jobs
    assert result.select(kept).equals(expected.select(kept))
