"""What expressions are worth under an allocation: hand cases of the spec's section 4.2 and 11."""

from __future__ import annotations

import pytest
from hypothesis import given as drawn

from drawn_expressions import given
from foresail.strl.expression import highest_value, leaves, walk
from foresail.strl.parser import parse
from slow_evaluation import conflicts, evaluate


def worth(text, *nodes):
    """Value and counting leaves of an expression whose leaves are given these nodes, in order."""
    allocation = {n: frozenset(names.split()) for n, names in enumerate(nodes) if names}
    found = evaluate(parse(text).expression, allocation)
    assert bool(found.counting) == (found.value > 0)
    return found.value, sorted(found.counting)


GPU_OR_ANY = "max(nCk({M1,M2}, 2, 0, 2, 4), nCk({M[1-4]}, 2, 0, 3, 3))"
NINE = "min(max(nCk({a1,a2},2,0,1,3), nCk({b1,b2},2,0,1,1)), nCk({c1},1,0,1,2))"
RACKS = "barrier(sum(LnCk({a[1-3]},2,0,1,2), LnCk({b[1-3]},2,0,1,2), LnCk({c[1-3]},2,0,1,2)), 4)"


@pytest.mark.parametrize(
    ("text", "given", "value", "counting"),
    [
        ("nCk({a,b,c}, 2, 0, 1, 5)", ["a b"], 5, [0]),
        ("nCk({a,b,c}, 2, 0, 1, 5)", ["a"], 0, []),
        ("nCk({a,b,c}, 2, 0, 1, 5)", ["a b c"], 0, []),
        ("nCk({a,b,c}, 2, 0, 1, 5)", ["a b z"], 5, [0]),
        ("LnCk({a,b,c,d}, 4, 0, 2, 8)", ["a b c"], 6, [0]),
        ("LnCk({a,b,c}, 2, 0, 2, 8)", ["a b c"], 0, []),
        ("LnCk({a,b,c}, 2, 0, 2, 8)", [""], 0, []),
        (GPU_OR_ANY, ["M1 M2", ""], 4, [0]),
        (GPU_OR_ANY, ["", "M2 M3"], 3, [1]),
        (GPU_OR_ANY, ["M1 M2", "M3 M4"], 4, [0]),
        ("min(nCk({M1,M2},1,0,3,1), nCk({M3,M4},1,0,3,1))", ["M2", "M4"], 1, [0, 1]),
        ("min(nCk({M1,M2},1,0,3,1), nCk({M3,M4},1,0,3,1))", ["M2", ""], 0, []),
        (NINE, ["a1 a2", "", "c1"], 2, [0, 2]),
        (NINE, ["", "b1 b2", "c1"], 1, [1, 2]),
        (NINE, ["", "", "c1"], 0, []),
        (RACKS, ["a1 a2", "b1", "c1"], 4, [0, 1, 2]),
        (RACKS, ["a1 a2", "b1", ""], 0, []),
        (RACKS, ["a1 a2", "b1 b2", "c1 c2"], 4, [0, 1, 2]),
        (f"scale({RACKS}, 10)", ["a1 a2", "b1", "c1"], 40, [0, 1, 2]),
        ("scale(nCk({a},1,0,1,1), 0)", ["a"], 0, []),
        ("sum(nCk({a},1,0,1,1), nCk({b},1,0,1,2), nCk({c},1,0,1,4))", ["a", "", "c"], 5, [0, 2]),
        ("barrier(nCk({a},1,0,1,1), 0)", ["a"], 0, []),
    ],
)
def test_hand_cases(text, given, value, counting):
    """Each operator as the spec's table has it; H2, H4, H7, H8 and H9 of its golden tests."""
    assert worth(text, *given) == (value, counting)


def test_shares_reach_a_barrier_in_spite_of_rounding():
    """Three tenths are 0.3, though their floating-point sum is not."""
    tenths = ", ".join(f"nCk({{n{number}}},1,0,1,0.1)" for number in range(3))
    assert worth(f"scale(barrier(sum({tenths}), 0.3), 1)", "n0", "n1", "n2") == (0.3, [0, 1, 2])
    assert worth(f"barrier(sum({tenths}), 0.31)", "n0", "n1", "n2") == (0, [])


def test_the_papers_example_has_one_best_order():
    """H1: of all combinations of starts, exactly one is worth 3 and can be carried out."""
    document = parse(
        "all = {M[1-3]}\n"
        "job1 = nCk(all, 2, 0, 10, 1)\n"
        "job2 = max(nCk(all,1,0,20,1), nCk(all,1,10,20,1), nCk(all,1,20,20,1))\n"
        "job3 = max(nCk(all, 3, 0, 10, 1), nCk(all, 3, 10, 10, 1))\n"
    )
    nodes = ("M1", "M2", "M3")
    best = []
    for one in (None, 0):
        for two in (None, 1, 2, 3):
            for three in (None, 4, 5):
                chosen = {
                    leaf: frozenset(nodes[3 - count :] if leaf == 0 else nodes[:count])
                    for leaf, count in ((one, 2), (two, 1), (three, 3))
                    if leaf is not None
                }
                if not conflicts(document.expression, chosen):
                    best.append((evaluate(document.expression, chosen).value, (one, two, three)))
    assert len(best) == 15
    assert [starts for value, starts in best if value == 3] == [(0, 3, 5)]


def test_what_cannot_be_carried_out_is_said():
    """Foreign, busy and twice given nodes, and leaves that are not there."""
    expression = parse("sum(nCk({a,b}, 1, 0, 2, 1), nCk({a,b}, 1, 1, 2, 1))").expression
    assert conflicts(expression, {0: frozenset("a"), 1: frozenset("b")}) == ()
    assert conflicts(expression, {0: frozenset("z")}) == (
        "leaf 0 is given z, which is not of its set",
    )
    assert conflicts(expression, {0: frozenset("a"), 1: frozenset("a")}) == (
        "a is given to leaf 0 and to leaf 1 at one time",
    )
    assert conflicts(expression, {0: frozenset("a")}, {"a": 0.5}) == (
        "leaf 0 is given a, which is busy",
    )
    assert conflicts(expression, {1: frozenset("a")}, {"a": 1.0}) == ()
    assert conflicts(expression, {2: frozenset("a")}) == ("there is no leaf 2",)


@drawn(given())
def test_values_have_bounds_and_counting_leaves_suffice(pair):
    """A value is between nothing and the most; what counts alone is worth as much, or the same."""
    expression, allocation = pair
    found = evaluate(expression, allocation)
    assert 0.0 <= found.value <= highest_value(expression) * (1 + 1e-9)
    assert all(allocation.get(number) for number in found.counting)
    alone = {number: allocation[number] for number in found.counting}
    assert evaluate(expression, alone) == found
    assert bool(found.counting) == (found.value > 0)


def test_walking_a_tree():
    """Parents before children, left to right; leaves are numbered in that order."""
    expression = parse(NINE).expression
    kinds = [type(each).__name__ for each in walk(expression)]
    assert kinds == ["Minimum", "Maximum", "NChooseK", "NChooseK", "NChooseK"]
    assert [leaf.value for leaf in leaves(expression)] == [3, 1, 2]
    assert highest_value(expression) == 2
