"""Late tuples: as good as the tuples that they make."""

import pickle
from array import array

from foresail.model.containers import FloatColumn, LateTuple


class Counting(LateTuple[int]):
    """Makes its tuple anew each time, and counts how often."""

    def __init__(self, *entries):
        self.entries = entries
        self.made = 0

    def materialise(self):
        self.made += 1
        return self.entries


def test_it_is_as_good_as_a_tuple():
    some = Counting(3, 1, 2)
    assert some.made == 0
    assert some == (3, 1, 2) == some
    assert some == Counting(3, 1, 2)
    assert some != (3, 1)
    assert hash(some) == hash((3, 1, 2))
    assert (len(some), some[0], some[1:], list(some)) == (3, 3, (1, 2), [3, 1, 2])
    assert 1 in some
    assert some.index(2) == 2
    assert repr(some) == "(3, 1, 2)"
    assert pickle.loads(pickle.dumps(some)) == (3, 1, 2)


def test_numbers_are_kept_to_the_last_digit():
    numbers = [0.1, -2.5, 1e300, float("inf")]
    column = FloatColumn(array("d", numbers).tobytes())
    assert column == tuple(numbers)
    assert column == tuple(numbers)
    assert len(FloatColumn(b"")) == 0
