"""The generated year of a university's cluster as a log."""

import numpy as np
import pytest

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.model.errors import InputError
from foresail.traces.folder import load_workload, write_folder
from foresail.traces.generating import generate
from foresail_studies.generators.university import UniversityParameters, university_year


def test_the_jobs_that_waiting_policies_get(tmp_path):
    """As a folder it is the very year that studies simulate."""
    write_folder(generate("university", UniversityParameters(jobs=4_000), 3), tmp_path / "year")
    workload = load_workload(tmp_path / "year")
    found, made = TraceJobs.of_workload(workload), university_year(4_000, seed=3)
    for name in ("submit_seconds", "runtime_seconds", "cores"):
        np.testing.assert_array_equal(getattr(found, name), getattr(made, name))
    assert workload.processors == 14_376
    assert workload.meta.header["jobs"] == "4000"


def test_load_is_told():
    """It is about that of the publication, in weeks with and without bursts."""
    made = generate("university", UniversityParameters(20_000), 1)
    assert 0.1 < float(made.meta.header["achieved_load"]) < 2.0


def test_wrong_parameters():
    """What is wrong is named."""
    with pytest.raises(InputError, match="jobs"):
        UniversityParameters(jobs=0)


def test_the_year_has_the_published_moments():
    """The first twentieth of it, but for the mean, which its longest jobs move by chance."""
    jobs = university_year(jobs=700_000, seed=3)
    gaps = np.diff(jobs.submit_seconds)
    runtime = jobs.runtime_seconds
    assert np.mean(gaps < 1.0) == pytest.approx(0.90, abs=0.02)
    assert gaps.mean() == pytest.approx(1.0 / 0.4527, rel=0.02)
    assert np.mean(runtime < 180.0) == pytest.approx(0.60, abs=0.05)
    assert np.mean(runtime > 6 * 3600.0) == pytest.approx(0.04, abs=0.02)
    assert np.mean(runtime > 96 * 3600.0) < 0.004
    assert runtime.mean() == pytest.approx(6225.0, rel=0.3)
