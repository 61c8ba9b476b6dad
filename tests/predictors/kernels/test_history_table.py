"""The table of histories against a dictionary in order of use; keys of jobs."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.kernels.columns import CPUS, REQUESTED, SPEC_COLUMNS, SUBMIT, USER
from foresail.predictors.kernels.history_table import (
    ATTRIBUTES,
    EVICTIONS,
    FEATURE_COLUMNS,
    KEY_COLUMNS,
    TABLE_HEAD,
    USED,
    fill_key,
    find_row,
    make_row,
    row_place,
    table_model,
    touch,
)

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.5, 1e9, -1.0])


def table(rows):
    """An empty table whose rows have one column behind their key."""
    model, size = table_model(TABLE_HEAD, np.zeros((1, FEATURE_COLUMNS)), rows, KEY_COLUMNS + 1)
    return np.concatenate((model, np.zeros(size - model.size)))


def last_place(model, row):
    """Where the column behind a row's key is."""
    return compiled(row_place)(model, row) + KEY_COLUMNS


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS), max_size=80),
)
def test_equals_a_dictionary_in_order_of_use(rows, keys):
    """Found, made and evicted as in an ordered dictionary that forgets what was unused longest."""
    model = table(rows)
    known: OrderedDict[tuple[float, ...], float] = OrderedDict()
    evicted = 0
    for number, (feature, first, second) in enumerate(keys):
        key = np.array([feature, first, second, 0.0, 0.0])
        as_key = tuple(key + 0.0)
        row = compiled(find_row)(model, key)
        assert (row >= 0) == (as_key in known)
        if row >= 0:
            assert model[last_place(model, row)] == known[as_key]
            compiled(touch)(model, row)
            known.move_to_end(as_key)
            continue
        if len(known) == rows:
            known.popitem(last=False)
            evicted += 1
        row = compiled(make_row)(model, key)
        assert model[last_place(model, row)] == 0.0
        model[last_place(model, row)] = known[as_key] = number
    assert (model[USED], model[EVICTIONS]) == (len(known), evicted)
    for as_key in known:
        assert compiled(find_row)(model, np.array(as_key)) >= 0


def feature(*names):
    """A feature's row."""
    row = np.zeros(FEATURE_COLUMNS)
    row[0] = len(names)
    for i, name in enumerate(names):
        row[1 + 2 * i : 3 + 2 * i] = ATTRIBUTES[name]
    return row


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), [7.0, 0.0, 0.0, 0.0, 0.0]),
        (("user", "cpus"), [7.0, 5.0, 16.0, 0.0, 0.0]),
        (("hour", "day"), [7.0, 1.0, 2.0, 0.0, 0.0]),
        (("group",), None),
        (("user", "requested"), None),
        (("memory",), None),
        (("gpus",), [7.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_the_value_of_a_feature(names, expected):
    """Codes, numbers, times of day; nothing where an attribute is unknown."""
    spec = np.zeros(SPEC_COLUMNS)
    spec[[SUBMIT, CPUS, REQUESTED, USER]] = 2 * 86_400.0 + 3_700.0, 16.0, np.inf, 5.0
    spec[ATTRIBUTES["group"][1]] = -1.0
    key = np.full(KEY_COLUMNS, np.nan)
    assert compiled(fill_key)(7, feature(*names), spec, key) == (expected is not None)
    if expected is not None:
        assert key.tolist() == expected
