"""Samples of a workload are workloads."""

import pytest

from foresail.model.errors import InputError
from foresail.traces.filtering import WEEK_SECONDS, sample_fraction, sample_users, sample_weeks
from foresail.traces.generating import generate
from foresail_studies.generators.lublin import LublinParameters

LOG = generate("lublin", LublinParameters(jobs=3000), 1).with_meta(origin_unix_seconds=1e9)


def test_weeks_begin_at_their_own_zero():
    """Times count from the first week's begin, and the origin moves; so the week's phase stays."""
    part = sample_weeks(LOG, 2, first_week=1)
    submit = LOG.jobs["submit_seconds"]
    inside = submit.filter((submit >= WEEK_SECONDS) & (submit < 3 * WEEK_SECONDS))
    assert part.jobs["submit_seconds"].to_list() == (inside - WEEK_SECONDS).to_list()
    assert part.meta.origin_unix_seconds == 1e9 + WEEK_SECONDS
    assert part.meta.header["Sample"] == "weeks from 1: 2"


def test_users_keep_all_their_jobs():
    """So many users, each with every job; the seed decides who."""
    part = sample_users(LOG, 5, seed=2)
    users = part.jobs["user"].unique()
    assert len(users) == 5
    whole = LOG.jobs.filter(LOG.jobs["user"].is_in(users.implode()))
    assert part.jobs.equals(whole)
    assert part.jobs.equals(sample_users(LOG, 5, seed=2).jobs)
    assert not part.jobs.equals(sample_users(LOG, 5, seed=3).jobs)


def test_a_fraction_of_the_jobs():
    """About so many jobs, in order; all of them for one."""
    part = sample_fraction(LOG, 0.3, seed=1)
    assert len(part) == pytest.approx(900, abs=90)
    assert part.jobs["submit_seconds"].is_sorted()
    assert sample_fraction(LOG, 1.0, seed=1).jobs.equals(LOG.jobs)


def test_dependencies_out_of_the_sample_are_cut():
    """A job that waited for one that is not in the sample depends on nothing; others keep it."""
    chained = LOG.jobs.with_columns(
        after_job_id=LOG.jobs["job_id"].shift(), think_seconds=LOG.jobs["submit_seconds"]
    )
    part = sample_fraction(LOG.with_jobs(chained), 0.5, seed=1).jobs
    present = set(part["job_id"])
    after = part["after_job_id"].drop_nulls()
    assert set(after) <= present
    assert 0 < len(after) < len(part)
    assert part["think_seconds"].null_count() == part["after_job_id"].null_count()


@pytest.mark.parametrize(
    ("take", "problem"),
    [
        (lambda: sample_weeks(LOG, 0), "weeks"),
        (lambda: sample_weeks(LOG, 1, -1), "first week"),
        (lambda: sample_weeks(LOG, 1, 1000), "no job"),
        (lambda: sample_users(LOG, 0, 1), "users"),
        (lambda: sample_users(LOG, 1000, 1), "users"),
        (lambda: sample_fraction(LOG, 0.0, 1), "fraction"),
        (lambda: sample_fraction(LOG, 1.1, 1), "fraction"),
        (lambda: sample_fraction(LOG, float("nan"), 1), "fraction"),
        (lambda: sample_fraction(LOG, 1e-9, 1), "no job"),
    ],
)
def test_impossible_samples_are_refused(take, problem):
    """What cannot be taken is named."""
    with pytest.raises(InputError, match=problem):
        take()
