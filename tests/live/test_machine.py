"""What this machine has for jobs, with a stand-in for the tool that lists gpus."""

from __future__ import annotations

import os

import pytest

from foresail.live.adapters.local.cluster import LocalCluster, LocalParameters
from foresail.live.adapters.local.machine import machine_gpus, machine_memory_bytes
from foresail.model.errors import InputError


@pytest.fixture
def lists_gpus(tmp_path, monkeypatch):
    """Puts a program of the tool's name in front of all others."""

    def put(script):
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return put


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ('test "$*" = "--query-gpu=index --format=csv,noheader" && printf "0\\n1\\n"', ("0", "1")),
        ("echo No devices were found", ()),
        ("echo cannot talk to the driver; exit 9", ()),
    ],
)
def test_gpus_are_those_that_the_driver_lists(lists_gpus, script, found):
    lists_gpus(script)
    assert machine_gpus() == found


def test_a_service_that_sees_some_gpus_has_these(lists_gpus, monkeypatch):
    """As where a batch system has started it."""
    lists_gpus("printf '0\\n1\\n2\\n3\\n'")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 3")
    assert machine_gpus() == ("2", "3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert machine_gpus() == ()


def test_where_no_tool_is_there_are_no_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine_gpus() == ()


def test_some_memory_is_left_for_what_is_no_job():
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert whole - machine_memory_bytes() == pytest.approx(min(whole * 0.05, 2**31), abs=1)


def test_what_it_is_given_is_divided_among_nodes(lists_gpus):
    """Three gpus on two nodes; that it was given more than there are is the operator's word."""
    lists_gpus("echo 0")
    chosen = LocalParameters(cpus=4, nodes=2, memory="6GiB", gpus=3)
    total = LocalCluster(chosen).total
    assert (total.memory_bytes, total.gpus) == (6 * 2.0**30, 3.0)


@pytest.mark.parametrize("wrong", [{"memory": "6"}, {"memory": "much"}, {"gpus": -1}])
def test_what_no_machine_has_is_refused(wrong):
    with pytest.raises(InputError) as refused:
        LocalParameters(**wrong)
    assert refused.value.field == next(iter(wrong))
