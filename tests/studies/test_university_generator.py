"""The generated year of a university's cluster as a log."""

import numpy as np
import pytest

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.model.errors import InputError
from foresail.traces.folder import load_workload, write_folder
from foresail.traces.generating import generate
from foresail_studies.generators.university import UniversityParameters
from foresail_studies.stand_ins import university_year


def test_the_jobs_that_waiting_policies_get(tmp_path):
    """As a folder it is the very year that studies simulate."""
    write_folder(generate("university", UniversityParameters(jobs=4_000), 3), tmp_path / "year")
    workload = load_workload(tmp_path / "year")
    found, made = TraceJobs.of_workload(workload), university_year(4_000, seed=3)
    for name in ("submit_seconds", "runtime_seconds", "cores"):
        np.testing.assert_array_equal(getattr(found, name), getattr(made, name))
    assert workload.processors == 14_376
    assert workload.meta.header["jobs"] == "4000"


def test_bursts_can_be_set():
    """With larger bursts fewer gaps are long; the load is told."""
    plain, bursty = (
        generate("university", UniversityParameters(20_000, mean_jobs_of_burst=mean), 1)
        for mean in (10.0, 40.0)
    )
    long = [float((np.diff(each.jobs["submit_seconds"]) > 1.0).mean()) for each in (plain, bursty)]
    assert long[1] < 0.5 * long[0]
    assert 0.1 < float(plain.meta.header["achieved_load"]) < 2.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": 0},
        {"likeness": 1.5},
        {"burst_tail": 0.0},
        {"week_spread": -1.0},
        {"middle_mean_seconds": 60.0},
    ],
)
def test_wrong_parameters(wrong):
    """Each is named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        UniversityParameters(**wrong)
