"""What one call may submit: so many jobs and members, and no jobs that wait for each other."""

from __future__ import annotations

import time

import pytest
from pydantic import ValidationError

from foresail.live.jobs_file import InvalidJobs
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.errors import InputError
from foresail.service.api.submissions import (
    MOST_JOBS,
    JobChecks,
    JobRequest,
    JobsRequest,
)
from foresail.service.parts import ClusterLimits, KnownDirectories

CLUSTER = Cluster((Partition("all", Resources(4.0)),))


def checked(*jobs):
    asked = [JobRequest.model_validate({"command": "true", **each}) for each in jobs]
    return JobChecks("ann", ClusterLimits(CLUSTER), KnownDirectories()).submission(
        asked, lambda _: None
    )


def test_a_directory_is_looked_for_once_in_some_seconds(tmp_path, monkeypatch):
    """Until then a job in it is checked where it arrives; one that never was there is refused."""
    known, folder = KnownDirectories(), tmp_path / "there"
    checks = JobChecks("ann", ClusterLimits(CLUSTER), known)
    asked = JobRequest(command="true", directory=str(folder))
    folder.mkdir()
    assert not checks.is_quick(asked)
    checks.job(asked)
    folder.rmdir()
    assert checks.is_quick(asked)
    assert not checks.is_quick(asked.model_copy(update={"after": ["1"]}))
    checks.job(asked)
    later = time.monotonic() + 6.0
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert not checks.is_quick(asked)
    with pytest.raises(InvalidJobs, match="no such directory"):
        checks.job(asked)


def test_so_many_jobs_and_members_and_not_one_more():
    assert checked({"array": f"1-{MOST_JOBS}"}).jobs == MOST_JOBS
    for jobs in (
        [{"array": f"0-{MOST_JOBS}"}],
        [{"array": f"1-{MOST_JOBS}"}, {}],
        [{"array": f"1-{MOST_JOBS // 2},20000-{20000 + MOST_JOBS // 2}"}],
    ):
        with pytest.raises(InputError, match="too many"):
            checked(*jobs)
    with pytest.raises(InputError, match="too many members"):  # before they are counted one by one
        checked({"array": f"0-{MOST_JOBS}"})
    job = {"command": "true"}
    assert JobsRequest.model_validate({"jobs": [job] * MOST_JOBS})
    with pytest.raises(ValidationError):
        JobsRequest.model_validate({"jobs": [job] * (MOST_JOBS + 1)})


def test_what_is_kept_of_a_call_has_a_limit():
    """A few words may mean a script ten thousand times."""
    for jobs in ([{"array": f"1-{MOST_JOBS}", "command": "x" * 10_000}],):
        with pytest.raises(InputError, match="too much in one call"):
            checked(*jobs)
    assert checked({"array": f"1-{MOST_JOBS}", "environment": {"TEXT": "x" * 5_000}})


@pytest.mark.parametrize("kind", ["", "afterany:"])
def test_arrays_that_wait_for_arrays_have_a_limit(kind):
    """Each member is kept with all that it waits for; a job between the two makes that little."""
    first, many = {"name": "a", "array": "1-1000"}, {"array": "1-1001", "after": f"{kind}a"}
    assert checked(first, {"array": "1-1000", "after": f"{kind}a"}).jobs == 2_000
    with pytest.raises(InputError, match="too many dependencies") as refused:
        checked(first, many)
    assert (refused.value.field, refused.value.value) == ("after", 1_001_000)
    between = {"name": "b", "after": f"{kind}a"}
    assert checked(first, between, {**many, "after": "b"}).jobs == 2_002


@pytest.mark.parametrize("names", ["a", "ab", "abc"])
def test_jobs_that_wait_for_each_other_are_refused(names):
    """One that waits for itself, too; a chain is none."""
    after = names[1:] + names[0]
    with pytest.raises(InputError, match="wait for each other"):
        checked(*({"name": name, "after": each} for name, each in zip(names, after, strict=True)))
    chain = [{"name": name} for name in names]
    for job, before in zip(chain[1:], chain, strict=False):
        job["after"] = before["name"]
    assert checked(*chain).jobs == len(names)
