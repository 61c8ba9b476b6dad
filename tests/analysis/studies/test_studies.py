"""What the analyses of the workload study find, counted by hand or by slow loops."""

import numpy as np
import polars as pl
import pytest

from checks.analyses import awkward_workloads
from foresail.analysis.characteristics import analyse, chosen
from foresail.analysis.finding import Finding, Unavailable
from foresail.model.errors import UnknownNameError
from foresail.model.registry import find
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

DAY = 86400.0


def workload(processors=10, **columns):
    """A workload from columns; what is not given has a plain value."""
    size = len(next(iter(columns.values())))
    table = {
        "job_id": [str(number) for number in range(size)],
        "submit_seconds": [10.0 * number for number in range(size)],
        "runtime_seconds": [100.0] * size,
        "tasks": [1] * size,
        "user": ["ann"] * size,
    }
    return Workload(jobs_table(table | columns), WorkloadMeta("made", "hand", processors))


def examine(name, made):
    """What the analysis of this name finds."""
    entry = find("analysis", name)
    return entry.build(entry.parameters()).examine(made)


def test_sizes_against_the_machine():
    """Shares below 0.01 % and above 0.1 % of the machine are strict."""
    found = examine("job_sizes", workload(10_000, tasks=[1, 1, 10, 11, 100]))
    assert found.scalars["share_below_0.01_percent"] == 0.0
    assert found.scalars["share_above_0.1_percent"] == pytest.approx(0.4)
    assert found.scalars["p50_cpus"] == 10
    assert found.tables["cpus"].rows() == [(1.0, 0.4), (10.0, 0.6), (11.0, 0.8), (100.0, 1.0)]


def test_memory_and_gpus_have_tables_of_their_own():
    """Both are totals of a job, memory in GiB, over the jobs that say."""
    made = workload(
        tasks=[1, 2, 3], memory_bytes_per_task=[2.0**30, None, 2.0**31], gpus_per_task=[0.0, 2, 1]
    )
    tables = examine("job_sizes", made).tables
    assert tables["memory"].rows() == [(1.0, 0.5), (6.0, 1.0)]
    assert tables["gpus"].rows() == [(3.0, 0.5), (4.0, 1.0)]


def test_durations_count_zero_and_leave_out_the_unknown():
    """A runtime of 0 is a runtime; an unknown one is left out, and that is said."""
    found = examine("job_durations", workload(runtime_seconds=[0.0, 10, None, 30]))
    assert found.scalars["share_of_zero"] == pytest.approx(1 / 3)
    assert found.scalars["longest_seconds"] == 30
    assert found.notes == ("1 job of unknown runtime left out.",)


def test_hourly_counts_jobs_and_tasks():
    """Three whole days with one job each at noon, of 1, 2 and 6 tasks."""
    at = [0.0, 0.5 * DAY, 1.5 * DAY, 2.5 * DAY, 3 * DAY - 1]
    made = workload(submit_seconds=at, tasks=[1, 1, 2, 6, 1])
    jobs, tasks = examine("hourly_submissions", made), examine("hourly_tasks", made)
    assert jobs.scalars["whole_days"] == 3
    assert jobs.tables["hours"].row(12, named=True)["median"] == 1
    assert jobs.scalars["share_by_day"] == pytest.approx(3 / 5)
    assert jobs.scalars["busiest_hour"] == 12
    noon = tasks.tables["hours"].row(12, named=True)
    assert (noon["low"], noon["median"], noon["high"]) == (1.5, 2, 4)
    assert tasks.scalars["most_tasks_per_hour"] == 6


def test_size_by_hour():
    """Night jobs of twice the cpus and thrice the runtime do six times the work."""
    made = workload(
        submit_seconds=[0.0, 3600.0, 12 * 3600.0, 13 * 3600.0],
        tasks=[4, 4, 2, 2],
        runtime_seconds=[300.0, 300, 100, 100],
    )
    found = examine("size_by_hour", made)
    assert found.scalars["night_to_day_mean_cpus"] == 2
    assert found.scalars["night_to_day_mean_runtime"] == 3
    assert found.scalars["night_to_day_mean_work"] == 6
    assert found.scalars["correlation_of_night_and_log_work"] == pytest.approx(1)
    assert found.tables["hours"]["mean_cpus"].to_list()[11:14] == [None, 2, 2]


def test_allocation_is_the_integral_of_the_running_jobs():
    """Mean, maximum and every bin agree with a second-by-second count."""
    generator = np.random.default_rng(5)
    submit = np.sort(generator.integers(0, 2000, 200)).astype(float)
    wait, runtime = generator.integers(0, 50, 200), generator.integers(0, 300, 200)
    cpus = generator.integers(1, 5, 200)
    made = workload(
        processors=50,
        submit_seconds=submit,
        recorded_wait_seconds=wait.astype(float),
        runtime_seconds=runtime.astype(float),
        tasks=cpus,
    )
    found = examine("allocation_over_time", made)
    held = np.zeros(4000)
    for start, seconds, wide in zip((submit + wait).astype(int), runtime, cpus, strict=True):
        held[start : start + seconds] += wide
    window = held[int(submit[0]) : int(submit[-1])]
    assert found.scalars["mean_allocated_cpus"] == pytest.approx(window.mean())
    assert found.scalars["most_allocated_share"] == pytest.approx(window.max() / 50)
    table = found.tables["use"]
    bins = table["cpus"].to_numpy() * (table["to_seconds"] - table["from_seconds"]).to_numpy()
    assert bins.sum() == pytest.approx(window.sum())


def test_allocation_counts_what_was_allocated():
    """Allocated cpus come before those asked for; without a size of the machine no share is."""
    made = workload(
        processors=None,
        submit_seconds=[0.0, 100.0],
        recorded_wait_seconds=[0.0, 0.0],
        tasks=[1, 1],
        allocated_cpus=[16.0, None],
    )
    found = examine("allocation_over_time", made)
    assert found.scalars == {"mean_allocated_cpus": 16, "most_allocated_cpus": 16}


def test_interarrivals_golden():
    """Golden value G19: D and the share below a second, zeros kept."""
    gaps = [0, 0, 0, 1, 1, 2, 10, 30]
    found = examine("interarrivals", workload(submit_seconds=np.cumsum([0.0, *gaps])))
    assert found.scalars["kolmogorov_smirnov_distance"] == pytest.approx(0.458753, abs=1e-6)
    assert found.scalars["share_below_1_second"] == 0.375
    assert found.scalars["mean_seconds"] == 5.5


def test_coarse_clocks_say_nothing_of_seconds():
    """Where submissions are known to the minute, gaps below a second are not claimed."""
    minutes = np.repeat(np.arange(60.0), 2) * 60
    found = examine("interarrivals", workload(submit_seconds=minutes))
    assert "share_below_1_second" not in found.scalars
    assert any("multiples of 60 s" in note for note in found.notes)


def test_tasks_per_job():
    """The share of single-task jobs, over the jobs that say."""
    found = examine("tasks_per_job", workload(tasks=[1, 1, None, 4]))
    assert found.scalars["share_of_single_task"] == pytest.approx(2 / 3)
    assert found.scalars["most_tasks"] == 4


def test_user_variability_golden():
    """Golden value G22, and users of one job are left out."""
    made = workload(tasks=[1, 2, 9, 16, 1, 1, 5], user=["a"] * 3 + ["b"] * 3 + ["c"])
    found = examine("user_variability", made)
    users = found.tables["users"].sort("user")
    assert users["user"].to_list() == ["a", "b"]
    assert users["coefficient_of_variation"].to_list() == pytest.approx(
        [0.889757, 1.178511], abs=1e-6
    )
    assert users["largest_deviation"].to_list() == pytest.approx([4, 6])
    assert found.scalars["share_of_users_2_to_10_times"] == 1.0


def outcomes_made():
    """Two successes, a failure, an abortion, a time-out, and jobs that do not count."""
    return workload(
        status=["completed", "completed", "failed", "cancelled", "cancelled", "partial", None],
        runtime_seconds=[100.0, 300, 50, 50, 500, 100, 100],
        requested_seconds=[100.0, 600, 100, 100, 500, 100, 100],
        tasks=[1, 1, 2, 4, 1, 1, 1],
    )


def test_outcomes_by_jobs_and_cpu_time():
    """Shares over known outcomes; killed at the limit is timed out, completed there is not."""
    found = examine("outcome_breakdown", outcomes_made())
    rows = {(row["outcome"], row["of"]): row for row in found.tables["outcomes"].to_dicts()}
    assert [rows[name, "jobs"]["amount"] for name in ("successful", "failed", "aborted")] == [
        2,
        1,
        1,
    ]
    assert rows["timed out", "jobs"]["share"] == 0.2
    assert rows["timed out", "cpu time"]["amount"] == 500
    assert found.scalars["unsuccessful_share_of_jobs"] == pytest.approx(0.4)
    assert found.scalars["unsuccessful_share_of_cpu_time"] == pytest.approx(300 / 1200)
    assert "2 jobs of unknown or partial outcome left out." in found.notes


def test_sizes_by_outcome():
    """Means of successful and unsuccessful jobs; time-outs are neither."""
    found = examine("sizes_by_outcome", outcomes_made())
    assert found.scalars["unsuccessful_to_successful_mean"] == 3.0
    assert found.tables["sizes"]["outcome"].unique().sort().to_list() == [
        "successful",
        "unsuccessful",
    ]


def test_all_completed_tells_nothing():
    """A log that calls every job completed does not record failures."""
    made = workload(status=["completed"] * 5)
    for name in ("outcome_breakdown", "sizes_by_outcome", "success_by_cpu_hours"):
        assert isinstance(examine(name, made), Unavailable)


def test_success_by_decade():
    """Bins are decades of cpu hours; the trend is a weighted line through those with 30 jobs."""
    hours = np.repeat([0.001, 0.5, 1.0, 5.0], [30, 30, 1, 29])
    status = np.repeat(["completed", "completed", "failed", "failed"], [30, 30, 1, 29])
    found = examine(
        "success_by_cpu_hours", workload(runtime_seconds=3600 * hours, status=status.tolist())
    )
    table = found.tables["decades"]
    assert table["cpu_hours"].to_list() == ["< 0.01", "0.01–0.1", "0.1–1", "1–10"]
    assert table["jobs"].to_list() == [30, 0, 30, 30]
    assert table["success"].to_list() == [1, None, 1, 0]
    slope = np.polyfit([-3, -1, 0], [1, 1, 0], 1)[0]
    assert found.scalars["success_change_per_decade"] == pytest.approx(slope)


def test_resubmissions():
    """A name is an executable together with its user."""
    made = workload(executable=["x", "x", "x", "y", None], user=["a", "a", "b", "b", "b"])
    found = examine("resubmissions", made)
    assert found.scalars["names"] == 3
    assert found.scalars["share_of_names_submitted_once"] == pytest.approx(2 / 3)
    assert found.scalars["share_of_jobs_submitted_once"] == 0.5


def test_months():
    """Two months of 29 days and a rest: ratios to the means of the whole log."""
    first, second = np.arange(0, 29, 1.0), np.arange(29, 58, 2.0)
    days = np.concatenate((first, second, [58.5]))
    runtimes = np.repeat([100.0, 200.0, 400.0], [first.size, second.size, 1])
    found = examine(
        "representative_months", workload(submit_seconds=days * DAY, runtime_seconds=runtimes)
    )
    assert found.scalars["months"] == 2
    rows = found.tables["months"].filter(pl.col("quantity") == "mean runtime")
    assert rows["ratio"].to_list() == pytest.approx([100 / runtimes.mean(), 200 / runtimes.mean()])
    gaps = found.tables["months"].filter(pl.col("quantity") == "mean inter-arrival")["ratio"]
    whole = np.diff(days).mean()
    assert gaps.to_list() == pytest.approx([1 / whole, (1 + 2 * 14) / 15 / whole])


def test_runtime_variability():
    """Variation within users and within sizes, groups of one job left out."""
    made = workload(
        runtime_seconds=[1.0, 2, 9, 5, 5, 7],
        user=["a"] * 3 + ["b"] * 2 + ["c"],
        tasks=[1] * 5 + [2],
    )
    found = examine("runtime_variability", made)
    per_user = found.tables["variation"].filter(pl.col("group") == "per user")
    assert per_user["coefficient_of_variation"].to_list() == pytest.approx([0, 0.889757], abs=1e-6)
    assert found.scalars["sizes"] == 1
    assert found.scalars["share_of_users_with_high_variability"] == 0


def test_requests_against_use():
    """Golden value G23's buckets, for time, cpus and memory of each task."""
    made = workload(
        requested_seconds=[100.0, 200, 50, 1000],
        runtime_seconds=[100.0] * 4,
        used_cpu_seconds=[50.0, 100, 100, 0],
        memory_bytes_per_task=[None] * 4,
    )
    found = examine("request_against_usage", made)
    assert found.scalars["time_within_factor_2"] == 0.75
    assert found.scalars["time_over_requested"] == 0.5
    assert found.scalars["cpus_median_used_share"] == 1.0
    assert found.scalars["jobs_with_cpus"] == 3
    time = found.tables["errors"].filter(pl.col("quantity") == "time")
    assert dict(time.filter(pl.col("jobs") > 0).select("bucket_percent", "jobs").iter_rows()) == {
        -50: 1,
        0: 1,
        100: 2,
    }


def test_predictability_is_that_of_the_evaluation():
    """The histogram is over the jobs that ran, and the verdict says the share within twice."""
    made = awkward_workloads()["plain"]
    found = examine("runtime_predictability", made)
    assert found.scalars["jobs"] == len(made)
    assert found.tables["errors"]["jobs"].sum() == len(made)
    used = examine("usage_predictability", made)
    assert {"runtime_within_factor_2", "cpu_time_within_factor_2"} <= used.scalars.keys()


def test_analyses_come_in_the_order_of_the_study():
    """Sections of the study first, what says no section last; or as they were named."""
    names = [entry.name for entry in chosen([])]
    assert names.index("job_sizes") < names.index("interarrivals") < names.index("resubmissions")
    assert [entry.name for entry in chosen(["tasks_per_job", "job_sizes"])] == [
        "tasks_per_job",
        "job_sizes",
    ]
    with pytest.raises(UnknownNameError, match="job_sizes"):
        chosen(["job_size"])


def test_analysed_finds_by_name():
    """A finding by name; nothing for what is unavailable or was not asked."""
    made = analyse(workload(tasks=[1, 2]), "made", ["tasks_per_job", "resubmissions"])
    assert isinstance(made.finding("tasks_per_job"), Finding)
    assert made.finding("resubmissions") is None
    assert made.finding("job_sizes") is None
    assert (made.jobs, made.span_seconds) == (2, 10.0)
