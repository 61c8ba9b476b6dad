"""The order of the waiting jobs, the releases and the heap of ends, against sorted lists."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.kernels import heaps, waiting_jobs
from foresail.kernels.waiting_jobs import (
    CANDIDATE,
    EXPECTED_END,
    HELD,
    LIKELY,
    ORDER_COLUMNS,
    PASS_COLUMNS,
    PLANNED,
    QUEUE,
    RELEASE_COLUMNS,
    WIDTH,
)
from foresail.schedulers.kernels.backfill import shadow_of

place_after = compiled(waiting_jobs.place_after)
enter = compiled(waiting_jobs.enter)
leave = compiled(waiting_jobs.leave)
show = compiled(waiting_jobs.show)
first_to_fit = compiled(waiting_jobs.first_to_fit)
leave_gap = compiled(waiting_jobs.leave_gap)
next_gap = compiled(waiting_jobs.next_gap)
next_job = compiled(waiting_jobs.next_job)
close_gaps = compiled(waiting_jobs.close_gaps)
advance = compiled(waiting_jobs.advance)
sort = compiled(waiting_jobs.sort)
hold = compiled(waiting_jobs.hold)
let_go = compiled(waiting_jobs.let_go)
heap_push = compiled(heaps.heap_push)
heap_pop = compiled(heaps.heap_pop)
shadow = compiled(shadow_of)

TIMES = st.integers(0, 6).map(float) | st.just(math.inf)


def rows(order, column, count):
    """Keys and slots of the first places."""
    return [(float(key), int(slot)) for key, slot in order[:count, column - 1 : column + 1]]


def filled(column, pairs, room=0):
    """A table with these keys and slots in it."""
    order = np.full((len(pairs) + room, ORDER_COLUMNS), math.nan, order="F")
    for place, pair in enumerate(pairs):
        order[place, column - 1 : column + 1] = pair
    return order


@pytest.mark.parametrize("column", [QUEUE, CANDIDATE])
@given(keys=st.lists(TIMES, max_size=30), data=st.data())
def test_entering_and_leaving_keep_keys_and_arrivals_in_order(column, keys, data):
    """Whatever enters and leaves, the places are a sorted list of (key, slot)."""
    order = filled(column, [], room=len(keys))
    model: list[tuple[float, int]] = []
    for slot, key in enumerate(keys):
        place = place_after(order, column, 0, len(model), key, slot)
        enter(order, column, len(model), place, key, slot)
        model = sorted([*model, (key, slot)])
        assert rows(order, column, len(model)) == model
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(model))
            leave(order, column, place_after(order, column, 0, len(model), *gone), len(model))
            model.remove(gone)
            assert rows(order, column, len(model)) == model


@given(keys=st.lists(TIMES, max_size=30), data=st.data())
def test_what_leaves_gaps_keeps_the_others_in_order(keys, data):
    """Who comes takes the next gap; closed up, the places are a sorted list of (key, slot)."""
    order = filled(QUEUE, [], room=len(keys))
    jobs = np.ones((len(keys), PASS_COLUMNS))
    model: list[tuple[float, int]] = []
    places = 0
    for slot, key in enumerate(keys):
        place = place_after(order, QUEUE, 0, places, key, slot)
        gap = next_gap(order, QUEUE, place, places)
        enter(order, QUEUE, gap, place, key, slot)
        show(order, QUEUE, place, jobs)
        places = max(places, gap + 1)
        model = sorted([*model, (key, slot)])
        while model and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(model))
            leave_gap(order, QUEUE, place_after(order, QUEUE, 0, places, *gone))
            model.remove(gone)
        if model:
            first = next_job(order, QUEUE, 0, places)
            assert rows(order[first:], QUEUE, 1) == model[:1]
    assert close_gaps(order, QUEUE, 0, places) == len(model)
    assert rows(order, QUEUE, len(model)) == model


@given(st.sets(st.integers(0, 9)), st.integers(0, 9), st.integers(0, 9))
def test_who_advances_moves_others_into_the_nearest_gap(gone, one, other):
    """A job's own place is a gap once it has moved."""
    place, at = sorted((one, other))
    order = filled(QUEUE, [(float(slot), slot) for slot in range(10)])
    for slot in range(10):
        show(order, QUEUE, slot, np.ones((10, PASS_COLUMNS)))
    for slot in gone - {at}:
        leave_gap(order, QUEUE, slot)
    gap = min([slot for slot in gone if slot >= place] + [at])
    assert advance(order, QUEUE, at, place, -1.0) == min(gap, at)
    close_gaps(order, QUEUE, 0, 10)
    left = [slot for slot in range(10) if slot not in gone or slot == at]
    model = [slot for slot in left if slot != at]
    model.insert(sum(slot < place for slot in model), at)
    assert [slot for _, slot in rows(order, QUEUE, len(model))] == model


@pytest.mark.parametrize("column", [QUEUE, CANDIDATE])
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 400),
    share=st.sampled_from([0.0, 0.01, 0.2]),
    data=st.data(),
)
def test_first_to_fit_is_that_of_a_loop(column, seed, count, share, data):
    """Many places at once or one by one: cpus, and what ends by the shadow or takes no extra."""
    random = np.random.default_rng(seed)
    jobs = random.integers(1, 9, (count, PASS_COLUMNS)).astype(float)
    jobs[random.random(count) >= share, WIDTH] = 9.0
    order = filled(column, [(0.0, slot) for slot in random.permutation(count)])
    for place in range(count):
        show(order, column, place, jobs)
    free, now, shadow, extra, bold, more = data.draw(st.tuples(*[TIMES] * 6))
    first = data.draw(st.integers(0, count))

    def fits(place):
        job = jobs[int(order[place, column])]
        late, hoped = now + job[PLANNED], now + job[LIKELY]
        delays = late > shadow and job[WIDTH] > extra
        delays_bold = late > bold and hoped > bold and job[WIDTH] > more
        return job[WIDTH] <= free and not delays and not delays_bold

    wanted = next((place for place in range(first, count) if fits(place)), count)
    given_here = (free, now, shadow, extra, bold, more)
    assert first_to_fit(order, column, first, count, *given_here) == wanted


@given(st.lists(TIMES, max_size=60), st.integers(0, 5))
def test_sorting_in_place_is_by_key_and_then_by_slot(keys, first):
    """What is before ``first`` stays."""
    pairs = [(key, (7 * slot) % 61) for slot, key in enumerate(keys)]
    first = min(first, len(pairs))
    order = filled(QUEUE, pairs)
    sort(order, QUEUE, first, len(pairs))
    assert rows(order, QUEUE, len(pairs)) == pairs[:first] + sorted(pairs[first:])


@given(st.integers(1, 20), st.data())
def test_an_advanced_job_leaves_the_others_as_they_were(count, data):
    """One job goes forward; nothing else moves but what is between."""
    pairs = [(float(slot), slot) for slot in range(count)]
    slot = data.draw(st.integers(0, count - 1))
    place = data.draw(st.integers(0, slot))
    order = filled(CANDIDATE, pairs)
    assert advance(order, CANDIDATE, slot, place, -math.inf) == slot
    model = [pair for pair in pairs if pair[1] != slot]
    model.insert(place, (-math.inf, slot))
    assert rows(order, CANDIDATE, count) == model


@given(st.data())
def test_releases_are_a_sorted_list(data):
    """Holding and letting go in any order keeps (time, width, slot) together, sorted by time."""
    room = 20
    release = np.empty((room, RELEASE_COLUMNS))
    model: list[tuple[float, float, int]] = []
    for slot in range(room):
        if model and data.draw(st.booleans()):
            end, _, gone = data.draw(st.sampled_from(model))
            let_go(release, len(model), end, gone)
            model = [entry for entry in model if entry[2] != gone]
        end, width = data.draw(TIMES), float(slot % 4)
        hold(release, len(model), end, width, slot)
        model.append((end, width, slot))
        model.sort(key=lambda entry: entry[0])
        assert [tuple(row) for row in release[: len(model)].tolist()] == model


@given(st.lists(st.none() | TIMES, max_size=40))
def test_heap_pops_by_time_and_then_by_order(script):
    """Numbers push, None pops; as Python's heap of tuples does."""
    heap = np.empty((40, heaps.HEAP_COLUMNS))
    model: list[tuple[float, int, int]] = []
    for number, time in enumerate(script):
        if time is not None:
            heap_push(heap, len(model), time, number, 100 + number)
            heapq.heappush(model, (time, number, 100 + number))
        elif model:
            assert heap_pop(heap, len(model)) == heapq.heappop(model)[2]
    while model:
        assert heap_pop(heap, len(model)) == heapq.heappop(model)[2]


@given(
    st.lists(st.tuples(TIMES, st.integers(1, 4)), max_size=12),
    st.integers(0, 4),
    st.integers(1, 12),
)
def test_shadow_is_the_first_time_with_enough_room(holds, free, needed):
    """All that is released at the shadow time counts; too few releases: never."""
    needed += free  # the head does not fit now
    holds = sorted(holds)
    release = np.zeros((len(holds), RELEASE_COLUMNS))
    release[:, EXPECTED_END] = [time for time, _ in holds]
    release[:, HELD] = [width for _, width in holds]
    room = {time: free + sum(w for t, w in holds if t <= time) for time, _ in holds}
    first = min((time for time in room if room[time] >= needed), default=None)
    expected = (math.inf, 0.0) if first is None else (first, room[first] - needed)
    assert shadow(float(free), float(needed), release, len(holds)) == expected
