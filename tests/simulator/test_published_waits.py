"""The compiled replay against the published study: every per-job wait, and the averages."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.model.event import PREDICTSIM
from foresail.simulator.replay import replay
from foresail.traces.folder import load_workload
from shared import shared

FOLDER = "traces/predictsim-sc15"
POLICIES = {
    "wait_easy": "easy",
    "wait_easy_clairvoyant": "easy,clairvoyant",
    "wait_sjbf_clairvoyant": "easy(order=shortest),clairvoyant",
    "wait_easypp_tsafrir": "easy(order=shortest),recent(whole_seconds=true),"
    "incremental(reading=absolute)",
}
AVERAGE_SLOWDOWNS = {
    ("SDSC-BLUE", 1152): (36.5234, 30.6215, 13.1776, 20.9864),
    ("CEA-Curie", 80640): (202.1332, 69.9259, 12.0798, 193.4713),
}


def waits_of(log, processors):
    """Waits (seconds) by column name, and runtimes."""
    workload = load_workload(shared(f"{FOLDER}/{log}.filtered.swf.gz"))
    workload = workload.with_meta(processors=processors)
    waits = {}
    for column, text in POLICIES.items():
        jobs = replay(workload, parse_policy(text), PREDICTSIM).jobs
        waits[column] = (jobs["start_seconds"] - jobs["submit_seconds"]).to_numpy()
    return waits, workload.runtime_seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "processors"), [("KTH-SP2", 100), ("CTC-SP2", 338), ("SDSC-SP2", 128)]
)
def test_every_published_wait(log, processors):
    """Four policies, not one job with another wait."""
    published = pl.read_csv(shared(f"{FOLDER}/{log}.oracle-waits.csv.gz"))
    waits, _ = waits_of(log, processors)
    differing = {name: int((waits[name] != published[name].to_numpy()).sum()) for name in waits}
    assert differing == dict.fromkeys(POLICIES, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("log", "processors"), AVERAGE_SLOWDOWNS)
def test_published_averages(log, processors):
    """The average bounded slowdowns of the two large logs, to the digits published."""
    waits, runtime = waits_of(log, processors)
    averages = [
        np.maximum(1, (wait + runtime) / np.maximum(runtime, 10)).mean() for wait in waits.values()
    ]
    assert averages == pytest.approx(AVERAGE_SLOWDOWNS[log, processors], abs=5e-5)
