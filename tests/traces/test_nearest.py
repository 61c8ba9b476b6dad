"""Unknown names get the ones that they may stand for."""

from __future__ import annotations

import pytest

from foresail.traces import schema
from foresail.traces.delimited import nearest


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("jobid", "'job_id', perhaps"),
        ("wait_seconds", "'recorded_wait_seconds'"),
        ("wait", "'recorded_wait_seconds', perhaps"),
        ("cpus", "'cpus_per_task'"),
        ("memory", "'memory_bytes_per_task'"),
        ("zzz", "one of job_id, submit_seconds"),
    ],
)
def test_columns_that_may_be_meant(name, offered):
    """Similar ones, those that hold the name, and all where neither is."""
    assert offered in nearest(name, schema.JOBS)
