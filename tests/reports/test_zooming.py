"""What is packed for zooming, unpacked again as the page does it."""

import base64
import zlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.metrics.usage import LaidJobs, Span
from foresail.reports.comparison import time_figures as zooming


def unpacked(column):
    """The whole numbers of a packed column: all first bytes, then all second bytes, ..."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(column["packed"])), np.uint8)
    planes = planes.reshape(column["bytes"], column["count"]).astype(np.int64)
    return sum(plane << (8 * place) for place, plane in enumerate(planes))


@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=50))
def test_a_line_survives_packing(values):
    """Heights come back to within half a step, which is a 65,535th of the highest."""
    packed = zooming.zoomed_line(3, pl.Series(values, dtype=pl.Float64))
    assert (packed["trace"], packed["bins"]) == (3, len(values))
    heights = unpacked(packed["heights"]) * packed["step"]
    assert heights == pytest.approx(np.array(values), abs=0.501 * packed["step"])


def laid(begin, end, low, high, processors=8):
    return LaidJobs(
        begin_seconds=np.array(begin, dtype=float),
        end_seconds=np.array(end, dtype=float),
        low=np.array(low, dtype=np.int64),
        high=np.array(high, dtype=np.int64),
        processors=processors,
    )


@pytest.mark.parametrize(("factor", "tick"), [(1.0, 1e-4), (1e5, 1.0)])
def test_few_jobs_are_rectangles(factor, tick):
    """Begins are kept as steps from one to the next, in seconds or finer if all is short."""
    jobs = laid([0.0, 10.0 * factor, 30.0 * factor], [20.0 * factor] * 2 + [100.0 * factor], *ROWS)
    zoomed = zooming.zoomed_gantts([7], [jobs], Span(0.0, 100.0 * factor))
    (found,) = zoomed["jobs"]
    assert found["tickSeconds"] == pytest.approx(tick)
    begin = np.cumsum(unpacked(found["begin"])) * tick
    assert begin == pytest.approx(jobs.begin_seconds)
    assert unpacked(found["length"]) * tick == pytest.approx(jobs.end_seconds - jobs.begin_seconds)
    assert unpacked(found["low"]).tolist() == ROWS[0]
    assert (unpacked(found["low"]) + unpacked(found["rows"])).tolist() == ROWS[1]


ROWS = ([0, 4, 0], [4, 8, 8])


def test_many_jobs_are_cells(monkeypatch):
    """Beyond the limit the page gets shares in bins: a machine in use throughout is full."""
    monkeypatch.setattr(zooming, "MOST_RECTANGLES", 0)
    zoomed = zooming.zoomed_gantts([0], [laid([0.0], [100.0], [0], [8])], Span(0.0, 100.0))
    (found,) = zoomed["cells"]
    shares = unpacked(found["used"])
    assert shares.size == found["bins"] * found["rows"]
    assert set(shares.tolist()) == {100}
