"""The shipped suites, run over everything that is registered."""

from __future__ import annotations

import pytest

from foresail.checks.predictors import check_correction, check_predictor
from foresail.checks.readers import check_reader
from foresail.checks.schedulers import check_scheduler
from foresail.model.registry import entries, find

EXAMPLES = {
    "swf": (
        "; MaxProcs: 8\n"
        "1 0 0 60 2 -1 -1 2 120 -1 1 3 1 -1 1 -1 -1 -1\n"
        "2 5 9 30 4 -1 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1\n"
    ),
    "philly": (
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 06:13:03,2951.0,1,2951.0,6214e9\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
    ),
    "gaia": "arrival_time,length,cpus\n0.0,0.75,4\n0.5,19.25,4\n",
    "alibaba_pods": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time\n"
        "openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0\n"
        "openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427061\n"
    ),
    "google_features": (
        "job_id,application_name,day_of_the_week,hour_of_the_day,job_name,resource_requested,"
        "user_name,job_runtime\n"
        "1,app,0,0,name,85:625,user,15881558\n"
        "2,app,0,1,name,46:125,user,1588\n"
    ),
}


@pytest.mark.parametrize("entry", list(entries("scheduler")), ids=lambda entry: entry.name)
def test_scheduler_conforms(entry):
    """Every registered scheduler keeps every rule."""
    check_scheduler(entry)


@pytest.mark.parametrize("entry", list(entries("predictor")), ids=lambda entry: entry.name)
def test_predictor_conforms(entry):
    """Every registered predictor keeps every rule."""
    check_predictor(entry)


@pytest.mark.parametrize("entry", list(entries("correction")), ids=lambda entry: entry.name)
def test_correction_conforms(entry):
    """Every registered correction keeps every rule."""
    check_correction(entry)


@pytest.mark.parametrize("entry", list(entries("reader")), ids=lambda entry: entry.name)
def test_reader_conforms(entry):
    """Every registered reader keeps every rule, those about good logs where there is an example."""
    check_reader(entry, EXAMPLES.get(entry.name))


@pytest.mark.parametrize(
    ("family", "least"), [("scheduler", 7), ("predictor", 5), ("correction", 4), ("reader", 7)]
)
def test_the_families_are_found(family, least):
    """The tests above are not empty: discovery finds what the package has."""
    assert len(list(entries(family))) >= least


def test_every_example_has_its_reader():
    """No example is left behind when a reader is renamed."""
    for name in EXAMPLES:
        assert find("reader", name).name == name
