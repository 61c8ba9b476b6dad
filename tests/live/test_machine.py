"""What this machine has for jobs, with a stand-in for the tool that lists gpus."""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.live.adapters.local.cluster import LocalCluster, LocalParameters
from foresail.live.adapters.local.machine import Slots, machine_gpus, machine_memory_bytes
from foresail.model.errors import InputError
from foresail.model.short_form import part_of
from foresail.model.words import DURATION_FORMS


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


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("log_bytes=2.5x", "2.5x", "bytes, or a size with its unit, such as 8GiB, 500M or 1.5 GB"),
        ("cpus=two", "two", "a whole number"),
        ("cpus=0", 0, "finite, 1 or more"),
        ("nodes=none", "none", "a whole number"),
        ("cgroups=maybe", "maybe", "true or false"),
        ("memory=8", "8", "a size with its unit, such as 8GiB, 500M or 1.5 GB"),
        ("sample_seconds=2parsec", "2parsec", DURATION_FORMS),
        ("sample_seconds=0", 0.0, "finite, above 0"),
        ("grace_seconds=nan", math.nan, "finite, 0 or more"),
    ],
)
def test_a_parameter_of_a_wrong_form_is_refused_in_our_words(setting, value, expected):
    with pytest.raises(InputError) as refused:
        part_of("cluster", f"local({setting})")
    error = refused.value
    assert error.field == setting.partition("=")[0]
    assert (repr(error.value), error.expected) == (repr(value), expected)


def test_sizes_and_durations_may_have_units():
    chosen = part_of("cluster", "local(log_bytes=2MiB,grace_seconds=1m30s)").parameters
    assert (chosen.log_bytes, chosen.grace_seconds) == (2 * 2**20, 90.0)
    assert part_of("cluster", "local(log_bytes=4096)").parameters.log_bytes == 4096


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=40))
def test_jobs_hold_distinct_cpus_that_come_back(moves):
    """Starts of jobs that fit and ends of the oldest, in any order."""
    slots, held = Slots(range(10, 14)), {}
    for number, (starts, width) in enumerate(moves):
        free = 4 - sum(map(len, held.values()))
        if starts and width <= free:
            held[str(number)] = slots.take(str(number), width)
            assert len(held[str(number)]) == width
        elif held:
            oldest = next(iter(held))
            slots.give_back(oldest)
            del held[oldest]
        used = [cpu for cpus in held.values() for cpu in cpus]
        assert len(used) == len(set(used))
        assert set(used) <= {10, 11, 12, 13}


def test_where_there_are_too_few_a_job_has_none():
    """Half of what it asked for would be as good as a lie."""
    slots = Slots((0, 1))
    assert slots.take("a", 3) == ()
    slots.give_back("a")


def test_cpus_of_an_adopted_job_are_not_given_away():
    """A job that an earlier supervisor bound keeps its cpu until it ends."""
    slots = Slots((0, 1))
    slots.hold("adopted", (0,))
    assert slots.take("new", 1) == (1,)
    slots.give_back("adopted")
    assert slots.take("next", 1) == (0,)
