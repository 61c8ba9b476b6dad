"""Every shared log is told apart, read whole, and has the counts that its description states."""

from __future__ import annotations

import polars as pl
import pytest

from foresail.traces.reading import read
from shared import shared

LOGS = {
    "pwa/KTH-SP2-1996-2.swf.gz": ("swf", 28489, 100),
    "pwa/SDSC-BLUE-2000-4.1-cln.swf.gz": ("swf", 243314, 1152),
    "pwa/SDSC-BLUE-2000-4.2-cln.swf.gz": ("swf", 243306, 1152),
    "pwa/CEA-Curie-2011-2.1-cln.swf.gz": ("swf", 312826, 93312),
    "pwa/METACENTRUM-2009-2.swf.gz": ("swf", 103656, None),
    "pwa/NASA-iPSC-1993-3.1-cln.swf.gz": ("swf", 18239, 128),
    "pwa/LCG-2005.swf.gz": ("swf", 188041, 24515),
    "predictsim-sc15/KTH-SP2.filtered.swf.gz": ("swf", 28481, 100),
    "predictsim-sc15/CTC-SP2.filtered.swf.gz": ("swf", 77199, 338),
    "predictsim-sc15/SDSC-SP2.filtered.swf.gz": ("swf", 54006, 128),
    "predictsim-sc15/SDSC-BLUE.filtered.swf.gz": ("swf", 232542, 1152),
    "predictsim-sc15/CEA-Curie.filtered.swf.gz": ("swf", 295540, 80640),
    "gaia-100k/pai-100k.csv.gz": ("gaia", 99998, None),
    "gaia-100k/mustang-trace-2015-100k.csv.gz": ("gaia", 100000, None),
    "gaia-100k/azure-100k.csv.gz": ("gaia", 99988, None),
    "google-3sigma-sample/test.3SigmaWarmUp.gz": ("google_features", 2502, None),
    "alibaba-gpu-v2023/openb_pod_list_default.csv.gz": ("alibaba_pods", 8152, 125514),
    "alibaba-gpu-v2023/openb_pod_list_gpuspec33.csv.gz": ("alibaba_pods", 8152, 125514),
}


@pytest.mark.parametrize("name", LOGS)
def test_counts(name):
    """The right reader, all jobs, the machine, ids used once, and nothing to repair."""
    reader, jobs, processors = LOGS[name]
    workload = read(shared(f"traces/{name}"), strict=True)
    assert workload.meta.reader == reader
    assert len(workload) == jobs
    assert workload.meta.processors == processors
    assert workload.jobs["job_id"].n_unique() == jobs
    assert workload.jobs["submit_seconds"].is_sorted()


REPAIRED = {
    "pwa/LLNL-Thunder-2007-1.1-cln.swf.gz": (121039, {"dropped_without_submit": 1190}),
    "metacentrum-wagap-2013/wagap-2013.swf.gz": (
        17900,
        {"unknown_for_negative_runtime_seconds": 2, "unknown_for_zero_requested_seconds": 2},
    ),
    "philly/philly.csv.gz": (82247, {"sorted_by_submit": 82242}),
    "google-3sigma-sample/test.3SigmaFeatures.gz": (3753, {"sorted_by_submit": 2553}),
    "alibaba-gpu-v2023/openb_pod_list_cpu250.csv.gz": (9420, {"sorted_by_submit": 9375}),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_repairs(name):
    """What is wrong with a log is counted; rows and dropped rows together are all its rows."""
    rows, repairs = REPAIRED[name]
    workload = read(shared(f"traces/{name}"))
    assert workload.meta.repairs == repairs
    assert len(workload) + repairs.get("dropped_without_submit", 0) == rows


def test_wagap_nodes_and_queues():
    """MetaCentrum's extended log: its machines, named queues and memory per task."""
    path = "traces/metacentrum-wagap-2013/wagap-2013.swf.gz"
    workload = read(shared(path))
    assert workload.processors == 20 * 80 + 48 * 12
    assert workload.nodes is not None
    assert workload.nodes["node"].to_list() == ["zewura", "zegox"]
    assert workload.meta.origin_unix_seconds == 1356996147.0
    assert workload.jobs["queue"][0] == "q_1d"
    assert workload.jobs["memory_bytes_per_task"][0] == 2.0**30
    assert workload.jobs["extra"][1].endswith("q_2w 1:ppn=12")


def test_google_runtimes_are_seconds_or_unknown():
    """The warm-up table's runtimes are plausible as seconds; the test table has none."""
    warm_up = read(shared("traces/google-3sigma-sample/test.3SigmaWarmUp.gz"))
    assert warm_up.jobs["runtime_seconds"].median() == pytest.approx(234.5, rel=0.01)
    assert warm_up.feature_names == ("application_name", "resource_requested")
    features = read(shared("traces/google-3sigma-sample/test.3SigmaFeatures.gz"))
    assert features.jobs["runtime_seconds"].null_count() == len(features)
    known = set(warm_up.jobs["job_id"]) & set(features.jobs["job_id"])
    assert len(known) == len(warm_up)


def test_alibaba_fractions_and_nodes():
    """Pods keep fractions of gpus; the node list has all 1,523 nodes and 6,212 gpus."""
    workload = read(shared("traces/alibaba-gpu-v2023/openb_pod_list_default.csv.gz"))
    assert workload.nodes is not None
    assert workload.nodes.height == 1523
    assert workload.nodes["gpus"].sum() == 6212
    assert workload.jobs["gpus_per_task"][1] == 0.46
    pending = workload.jobs.filter(pl.col("status") == "cancelled")
    assert pending.height == pending["runtime_seconds"].null_count() == 897


def test_gaia_hours_and_philly_gangs():
    """Hours become seconds; a Philly job is one task per gpu."""
    mustang = read(shared("traces/gaia-100k/mustang-trace-2015-100k.csv.gz"))
    assert mustang.jobs["runtime_seconds"][0] == 14985.0
    assert mustang.jobs["tasks"][0] == 128
    philly = read(shared("traces/philly/philly.csv.gz"))
    assert philly.jobs["tasks"].max() == 128
    assert (philly.jobs["gpus_per_task"] == 1.0).all()
    assert philly.jobs["submit_seconds"][0] == 0.0
