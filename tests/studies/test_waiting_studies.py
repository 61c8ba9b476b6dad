"""The studies of waiting policies: claims are about cases that are run, and every task runs."""

import math

import pytest

from declared import require_claims_about_cases
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail_studies.study import sizes_of, study_part
from foresail_studies.waiting import _shared as _waiting
from foresail_studies.waiting.logs import TraceRun
from foresail_studies.waiting.variants import Baseline, ModelScore, VariantRun

NAMES = (
    "waiting-models", "waiting-trace", "waiting-variants",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_about_cases(name):
    """In both sizes; quick is smaller."""
    quick, full = (study_part(name, [], quick=quick).build() for quick in (True, False))
    require_claims_about_cases(name, quick, full)
    assert sizes_of(find("study", name)).MINUTES[1] > 6


def test_every_formula_and_simulation_is_measured():
    """All of ``waiting-models`` with few jobs: prices are finite unless waits have no end."""
    study = study_part("waiting-models", ["jobs=2000", "seeds=1"], quick=True).build()
    for case in study.cases:
        found = case.task.measure()
        if not (case.system in ("ajw", "ljw") and case.x <= 100):
            assert 0.0 < found["price"] < 2.0, case
            assert found["mean_wait_seconds"] >= 0.0, case


TRACE = _waiting.Trace("", 20_000, 0)
"""Half a day of the year; most of its work is done later, so a third of its load is a lot."""
LOAD = 30.0


def test_traces_are_measured():
    """Every system, with wrong predictions as well."""
    results = {
        system: TraceRun(TRACE, LOAD, system, 3600.0, 60.0).measure()
        for system in ("ajw", "ajw strict-fcfs", "ajw sjf", "njw", "ajw-t", "sww", "ljw")
    }
    compound = TraceRun(TRACE, LOAD, "compound", 3600.0, 60.0)
    results["compound"] = compound.measure()
    assert results["njw"]["mean_wait_seconds"] == 0.0
    assert results["sww"]["total_cost"] == pytest.approx(results["ajw-t"]["total_cost"])
    assert results["ajw"]["rented_work"] <= results["compound"]["rented_work"]
    wrong = TraceRun(TRACE, LOAD, "compound", 3600.0, 60.0, 0.5, 0.5, 0.5, 0.5).measure()
    assert wrong["rented_jobs"] != results["compound"]["rented_jobs"]
    with pytest.raises(InputError, match="queue"):
        TraceRun(TRACE, LOAD, "ajw lifo", 3600.0, 60.0).measure()


def test_a_log_is_run(tmp_path):
    """Its own machines, by its own load."""
    log = tmp_path / "sample.csv"
    rows = [f"{0.1 * i},{0.5 + (i * 7 % 10) / 10},{1 + i % 4}" for i in range(200)]
    log.write_text("arrival_time,length,cpus\n" + "\n".join(rows) + "\n")
    setting = [f'log="{log}"', "machine_cores=8"]
    study = study_part("waiting-trace", setting, quick=True).build()
    task = next(
        case.task
        for case in study.cases
        if case.group == log.name and case.system == "compound" and case.x == 100.0
    )
    found = task.measure()
    assert found["jobs"] == 200.0
    assert 0.2 < found["price"] < 1.0


def test_variants_are_measured():
    """One of each kind; NaN is nowhere."""
    base = Baseline(TRACE, LOAD, 3600.0, 60.0)
    alone = ("oracle", "naive", "runtimes 10 % off", "speculative, spot")
    runs = [VariantRun(base, name) for name in alone]
    runs += [VariantRun(base, f"{kind} linear", "linear") for kind in ("waits by", "combined,")]
    for task in runs:
        assert not any(math.isnan(value) for value in task.measure().values())
    score = ModelScore(base, "linear", 600.0).measure()
    assert -1.0 <= score["correlation"] <= 1.0
