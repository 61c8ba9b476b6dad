"""The plan of a strict queue: its ends in order, against a list that is sorted."""

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.waiting.kernels import waiting_plan
from foresail.cloud.waiting.kernels.waiting_plan import empty_plan

# Parts of kernels cannot be called from Python itself.
catch_up = numba.njit(lambda *given: waiting_plan.catch_up(*given))
extend = numba.njit(lambda *given: waiting_plan.extend(*given))
start_behind = numba.njit(lambda *given: waiting_plan.start_behind(*given))


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 12), st.integers(1, 3), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_as_the_line_from_the_beginning(steps):
    """Every job starts where the whole line, planned anew with it at the end, says it does.

    Jobs come when nobody waits, or at once behind the last; some only ask, and do not stay.
    """
    runtime = np.array([float(each[1]) for each in steps])
    asked = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    shape = np.array([each[2] - 1 for each in steps], dtype=np.int32)
    kinds = (shape, asked)
    plan = empty_plan(runtime, np.array([4]), np.zeros(1), np.zeros(1))
    now, last, running = 0.0, 0.0, []
    for job, (gap, _, width, stays) in enumerate(steps):
        now += gap
        if last <= now:
            catch_up(now, *kinds, plan)
        begins = max(now, last)
        while sum(wide for end, wide in running if end > begins) + width > 4:
            begins = min(end for end, _ in running if end > begins)
        assert start_behind(asked[shape[job]], np.inf, *kinds, plan) == begins
        assert start_behind(asked[shape[job]], begins, *kinds, plan) == begins
        assert start_behind(asked[shape[job]], begins - 0.5, *kinds, plan) == np.inf
        if stays:
            extend(job, np.inf, *kinds, plan)
            assert plan.until[0] == begins
            last = begins
            running.append((begins + runtime[job], width))
    times = plan.ends[slice(*plan.span), 0]
    assert np.array_equal(times, np.sort(times))
    assert not plan.more.any()


def test_who_leaves_holds_up_the_line():
    """A wide job that leaves at 5 lets a narrow one start then, and not before."""
    asked = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    kinds = (np.array([0, 1, 0], np.int32), asked)
    plan = empty_plan(np.array([10.0, 10.0, 10.0]), np.array([2]), np.zeros(1), np.zeros(1))
    catch_up(0.0, *kinds, plan)
    extend(0, np.inf, *kinds, plan)
    assert start_behind(asked[1], np.inf, *kinds, plan) == 10.0
    extend(1, 5.0, *kinds, plan)
    assert start_behind(asked[0], np.inf, *kinds, plan) == 5.0
    extend(2, 6.0, *kinds, plan)
    assert plan.machine[2] == 0
