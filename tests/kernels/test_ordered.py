"""Ordered arrays and the heap, against sorted lists."""

from __future__ import annotations

import bisect
import heapq
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foresail.kernels.easy import shadow_of
from foresail.kernels.ordered import (
    heap_pop,
    heap_push,
    hold,
    insert_key,
    position_after,
    release,
)

TIMES = st.integers(0, 6).map(float) | st.just(math.inf)


@given(st.lists(TIMES, max_size=30))
def test_insertion_keeps_keys_sorted_and_ties_in_order(keys):
    """Inserting behind equal keys is a stable sort."""
    array, slots = np.empty(len(keys)), np.empty(len(keys), np.int64)
    for slot, key in enumerate(keys):
        at = position_after(array, slot, key)
        assert at == bisect.bisect_right(sorted(keys[:slot]), key)
        insert_key(array, slots, slot, at, key, slot)
    assert array.tolist() == sorted(keys)
    assert slots.tolist() == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.data())
def test_releases_are_a_sorted_list(data):
    """Holding and releasing in any order keeps (time, width, slot) together, sorted by time."""
    room = 20
    times, widths, slots = np.empty(room), np.empty(room), np.empty(room, np.int64)
    model: list[tuple[float, float, int]] = []
    for slot in range(room):
        if model and data.draw(st.booleans()):
            end, _, gone = data.draw(st.sampled_from(model))
            release(times, widths, slots, len(model), end, gone)
            model = [entry for entry in model if entry[2] != gone]
        end, width = data.draw(TIMES), float(slot % 4)
        hold(times, widths, slots, len(model), end, width, slot)
        model.append((end, width, slot))
        model.sort(key=lambda entry: entry[0])
        count = len(model)
        assert times[:count].tolist() == [entry[0] for entry in model]
        held = set(zip(times[:count], widths[:count], slots[:count], strict=True))
        assert held == set(model)


@given(st.lists(st.none() | TIMES, max_size=40))
def test_heap_pops_by_time_and_then_by_order(script):
    """Numbers push, None pops; as Python's heap of tuples does."""
    times, order, slots = np.empty(40), np.empty(40, np.int64), np.empty(40, np.int64)
    model: list[tuple[float, int, int]] = []
    for number, time in enumerate(script):
        if time is not None:
            heap_push(times, order, slots, len(model), time, number, 100 + number)
            heapq.heappush(model, (time, number, 100 + number))
        elif model:
            assert heap_pop(times, order, slots, len(model)) == heapq.heappop(model)[2]
    while model:
        assert heap_pop(times, order, slots, len(model)) == heapq.heappop(model)[2]


@given(
    st.lists(st.tuples(TIMES, st.integers(1, 4)), max_size=12),
    st.integers(0, 4),
    st.integers(1, 12),
)
def test_shadow_is_the_first_time_with_enough_room(holds, free, needed):
    """All that is released at the shadow time counts; too few releases: never."""
    needed += free  # the head does not fit now
    holds = sorted(holds)
    times, widths = np.array([h[0] for h in holds]), np.array([float(h[1]) for h in holds])
    room = {time: free + sum(w for t, w in holds if t <= time) for time, _ in holds}
    first = min((time for time in room if room[time] >= needed), default=None)
    expected = (math.inf, 0.0) if first is None else (first, room[first] - needed)
    assert shadow_of(float(free), float(needed), times, widths, len(holds)) == expected
