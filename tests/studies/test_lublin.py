"""The Lublin-Feitelson generator: against the published model, step by step, and its extensions."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from foresail.model.errors import InputError
from foresail.traces.generating import generate
from foresail_studies.generators import lublin as model
from foresail_studies.generators.lublin import POPULAR_SECONDS, LublinParameters

PLAIN = {"users": 0}


def lublin(seed=1, **parameters):
    return generate("lublin", LublinParameters(**parameters), seed)


@pytest.mark.parametrize("kind", [model.COMBINED, model.BATCH, model.INTERACTIVE])
def test_cycle_weights_are_the_gamma_distribution(kind):
    """The points of each half hour are the gamma probabilities that the model defines."""
    bucket = np.arange(11, 59)
    edges = [stats.gamma.cdf(bucket + d, kind.cycle[0], scale=kind.cycle[1]) for d in (0.5, -0.5)]
    weights = np.zeros(48)
    weights[(bucket - 1) % 48] = edges[0] - edges[1]
    weights /= weights.mean()
    np.testing.assert_allclose(np.diff(model.cycle_points(kind)), weights, rtol=1e-9)


def test_arrival_times_are_those_of_the_loop_of_the_published_program():
    """Paying points bucket by bucket, as the authors' program does, gives the same times."""
    gaps = model.draw_gap_points(model.COMBINED, 3000, np.random.default_rng(4))
    cycle = model.cycle_points(model.COMBINED)
    weights = np.diff(cycle)
    bucket, reminder, points, now = 0, 0.0, 0.0, 0.0
    expected = []
    for gap in gaps:
        points += gap
        step = 0.0
        while points > weights[bucket]:
            points -= weights[bucket]
            bucket = (bucket + 1) % 48
            step += 1800.0
        new_reminder = points / weights[bucket]
        now += step + 1800.0 * (new_reminder - reminder)
        reminder = new_reminder
        expected.append(now)
    np.testing.assert_allclose(model.seconds_at(np.cumsum(gaps), cycle), expected, rtol=1e-9)


def test_points_and_seconds_are_inverse():
    """The two directions of the daily cycle undo each other."""
    cycle = model.cycle_points(model.BATCH)
    for seconds in (0.0, 1.0, 40_000.0, 86_400.0, 1e7 + 0.5):
        points = model.points_at(seconds, cycle)
        assert model.seconds_at(np.array([points]), cycle)[0] == pytest.approx(seconds, abs=1e-3)


def test_sizes_follow_the_published_shares():
    """Serial jobs, powers of two, and the two uniform stages have their probabilities."""
    kind = model.COMBINED
    sizes = model.draw_processors(kind, 128, 200_000, np.random.default_rng(2))
    # Rounding a size's log2 below 0.5 would give 1; the smallest parallel stage begins at 0.8.
    assert np.mean(sizes == 1) == pytest.approx(kind.serial, abs=0.004)
    logs = np.log2(sizes[sizes > 1])
    by_rounding = kind.power_of_two / (1 - kind.serial)
    power_share = np.mean(logs == np.round(logs))
    assert by_rounding < power_share < by_rounding + 0.1
    # The knee is at log2 = 4.5, where rounding puts jobs of both stages into 16 and 32.
    assert np.mean(logs < 3.5) == pytest.approx(kind.first_stage * 2.7 / 3.7, abs=0.01)
    assert sizes.max() == 128


def test_no_job_is_wider_than_the_widest():
    """A larger machine for the same jobs: their sizes are those of the smaller machine."""
    wide = lublin(jobs=2000, processors=338, widest=128)
    assert wide.meta.processors == 338
    same = lublin(jobs=2000, processors=128, load=0.7 * 338 / 128)
    assert wide.jobs["allocated_cpus"].to_list() == same.jobs["allocated_cpus"].to_list()


def test_runtimes_follow_the_hyper_gamma():
    """The mean and spread of the log runtime are the mixture's, for narrow and wide jobs."""
    kind = model.COMBINED
    for size in (1.0, 64.0, 200.0):
        drawn = np.log(model.draw_runtimes(kind, np.full(100_000, size), np.random.default_rng(3)))
        p = min(max(kind.short_share[0] * size + kind.short_share[1], 0.0), 1.0)
        short = stats.gamma(kind.short[0], scale=kind.short[1])
        long = stats.gamma(kind.long[0], scale=kind.long[1])
        for level in (0.1, 0.5, 0.9):
            at = np.quantile(drawn, level)
            assert p * short.cdf(at) + (1 - p) * long.cdf(at) == pytest.approx(level, abs=0.02)
        assert drawn.max() <= 12.0


def test_the_plain_model_has_no_users():
    """Switched off, the extension leaves the published model: independent jobs of nobody."""
    jobs = lublin(jobs=2000, **PLAIN).jobs
    for column in ("user", "executable"):
        assert jobs[column].null_count() == 2000
    runtimes = np.log(jobs["runtime_seconds"].to_numpy())
    assert abs(np.corrcoef(runtimes[1:], runtimes[:-1])[0, 1]) < 0.06


def test_users_change_no_marginal():
    """Arranging jobs in sessions keeps every arrival and every (size, runtime) pair."""
    plain, arranged = lublin(jobs=3000, **PLAIN), lublin(jobs=3000)
    pair = ["tasks", "runtime_seconds"]
    assert plain.jobs["submit_seconds"].equals(arranged.jobs["submit_seconds"])
    assert plain.jobs.select(pair).sort(pair).equals(arranged.jobs.select(pair).sort(pair))


def test_history_predicts_the_jobs_of_a_user():
    """A user's last runtime says much of the next one; over all users the plain model's says none.

    Activity is uneven, as Zipf's law has it.
    """
    jobs = lublin(jobs=20_000).jobs.with_columns(pl.col("runtime_seconds").log().alias("log"))
    pairs = jobs.with_columns(pl.col("log").shift().over("user").alias("before")).drop_nulls(
        "before"
    )
    assert np.corrcoef(pairs["log"], pairs["before"])[0, 1] > 0.5
    counts = jobs["user"].value_counts(sort=True)["count"]
    assert counts[0] > 5 * counts[len(counts) // 2]


def test_requests_are_round_and_enough(monkeypatch):
    """Requested times are of the round values, never too short, and often the longest."""
    jobs = lublin(jobs=10_000).jobs
    requests = jobs["requested_seconds"].to_numpy()
    assert np.isin(requests, POPULAR_SECONDS).all()
    assert (requests >= jobs["runtime_seconds"].to_numpy()).all()
    accuracy = jobs["runtime_seconds"].to_numpy() / requests
    assert np.median(accuracy) < 0.4
    longest = []
    for share in (0.0, 0.3, 1.0):
        monkeypatch.setattr(model, "LONGEST_SHARE", share)
        longest.append((lublin(jobs=10_000).jobs["requested_seconds"] == 172_800.0).mean())
    assert longest[0] + 0.1 < longest[1] < longest[2] == 1.0


def test_users_do_not_pile_up_the_load():
    """Weeks with sessions of similar jobs are about as uneven as those of the plain model."""
    highest = []
    for parameters in (PLAIN, {}):
        workload = lublin(jobs=20_000, **parameters)
        week = (workload.jobs["submit_seconds"].to_numpy() // (7 * 86400)).astype(int)
        work = np.bincount(week, weights=workload.cpus * workload.runtime_seconds)
        highest.append(np.quantile(work, 0.9))
    assert highest[1] < 1.2 * highest[0]


def test_the_day_has_its_cycle():
    """More jobs come in the afternoon than before dawn, with and without scaling to a load."""
    for load in (None, 0.5, 2.0):
        hour = (
            np.mod(lublin(jobs=20_000, load=load).jobs["submit_seconds"].to_numpy(), 86400) // 3600
        )
        share = np.bincount(hour.astype(int), minlength=24) / hour.size
        assert share[13:17].mean() > 4 * share[3:6].mean()


@pytest.mark.parametrize("classes", ["combined", "batch", "interactive", "both"])
def test_the_load_is_met(classes):
    """The offered load is the one asked for."""
    workload = lublin(jobs=5000, processors=256, load=0.65, classes=classes)
    work = workload.cpus @ workload.runtime_seconds
    offered = work / (256 * workload.jobs["submit_seconds"].max())
    assert offered == pytest.approx(0.65, rel=0.002)
    queues = {"both": {"batch", "interactive"}, "interactive": {"interactive"}}
    assert set(workload.jobs["queue"]) == queues.get(classes, {"batch"})


@given(
    jobs=st.integers(1, 200),
    processors=st.integers(1, 5000),
    load=st.none() | st.floats(0.01, 20.0),
    classes=st.sampled_from(["combined", "batch", "interactive", "both"]),
    users=st.integers(0, 10),
    seed=st.integers(0, 2**32),
)
def test_any_parameters_give_a_sound_workload(jobs, processors, load, classes, users, seed):
    """Jobs are as many as asked for, in order, fit the machine, and depend on the seed alone."""
    given_ = {
        "jobs": jobs,
        "processors": processors,
        "load": load,
        "classes": classes,
        "users": users,
    }
    workload = lublin(seed, **given_)
    assert len(workload) == jobs
    assert workload.jobs["submit_seconds"].is_sorted()
    assert workload.cpus.min() >= 1
    assert workload.cpus.max() <= processors
    assert workload.runtime_seconds.min() >= 1
    assert workload.jobs["job_id"].n_unique() == jobs
    assert workload.jobs.equals(lublin(seed, **given_).jobs)


def test_another_seed_gives_other_jobs():
    """The seed matters, and is recorded."""
    first, second = lublin(1, jobs=100), lublin(2, jobs=100)
    assert not first.jobs.equals(second.jobs)
    assert first.meta.header["seed"] == "1"
    assert first.meta.header["jobs"] == "100"
    assert first.meta.processors == 128


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": 0},
        {"processors": 0},
        {"users": -1},
        {"widest": 0},
        {"widest": 129},
        {"load": 0.0},
        {"load": float("nan")},
        {"classes": "all"},
    ],
)
def test_parameters_out_of_range_are_refused(wrong):
    """Each wrong parameter is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        LublinParameters(**wrong)


def test_a_negative_seed_is_refused():
    """NumPy would raise something else."""
    with pytest.raises(InputError, match="seed"):
        lublin(-1, jobs=10)
