"""Simpler expressions are worth the same."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from drawn_expressions import NODES, allocations, expressions
from foresail.strl.checking import simplify
from foresail.strl.expression import LinearNChooseK, Maximum, Minimum, NChooseK, Scale, Sum
from foresail.strl.solving import solve
from foresail.strl.supply import Supply
from foresail.strl.text import parse
from foresail.strl.tree import children, leaves, walk
from printed import format_expression
from slow_evaluation import evaluate

A = "nCk({a,b}, 1, 0, 2, 3)"
B = "nCk({a,b}, 2, 4, 2, 5)"
C = "LnCk({c}, 1, 1, 1, 1)"
NOT_THERE = "nCk({a,b}, 3, 0, 2, 5)"
WORTHLESS = "nCk({a,b}, 1, 0, 2, 0)"


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        (A, A),
        (NOT_THERE, None),
        (WORTHLESS, None),
        ("LnCk({a,b}, 4, 0, 2, 8)", "LnCk({a,b}, 2, 0, 2, 4)"),
        (f"max({A}, max({B}, {C}))", f"max({A}, {B}, {C})"),
        (f"sum(sum({A}), sum({B}, {C}))", f"sum({A}, {B}, {C})"),
        (f"min(min({A}, {B}), {C})", f"min({A}, {B}, {C})"),
        (f"sum(max({A}, {B}), max({A}, {B}))", f"sum(max({A}, {B}), max({A}, {B}))"),
        (f"max({A}, {NOT_THERE}, {WORTHLESS})", A),
        (f"min({A}, {NOT_THERE})", None),
        (f"sum({NOT_THERE}, {WORTHLESS})", None),
        (f"scale(max({A}, scale({C}, 2)), 3)", "max(nCk({a,b},1,0,2,9), LnCk({c},1,1,1,6))"),
        (f"scale({A}, 0)", None),
        (f"barrier({A}, 2)", "nCk({a,b}, 1, 0, 2, 2)"),
        (f"barrier({A}, 4)", None),
        (f"barrier({A}, 0)", None),
        (f"barrier(sum({A}, {B}), 8.5)", None),
        (
            f"scale(barrier(sum({A}, {B}), 8), 2)",
            "barrier(sum(nCk({a,b},1,0,2,6), nCk({a,b},2,4,2,10)), 16)",
        ),
    ],
)
def test_hand_cases(text, simple):
    """Folded, flattened, pruned; nothing where nothing could ever count."""
    found = simplify(parse(text).expression).expression
    if simple is None:
        assert found is None
    else:
        assert format_expression(found) == format_expression(parse(simple).expression)


def test_origins_lead_back():
    """Of each leaf that is left it is known which it was."""
    found = simplify(parse(f"max({NOT_THERE}, {A}, {WORTHLESS}, {B})").expression)
    assert found.origins == (1, 3)


@drawn(st.data())
def test_the_value_is_the_same_under_every_allocation(data):
    """What is left of an expression is worth what the whole is, for any allocation to it."""
    expression = data.draw(expressions)
    found = simplify(expression)
    allocation = data.draw(allocations(expression))
    whole = evaluate(expression, allocation).value
    if found.expression is None:
        assert whole == 0.0
        return
    left = {number: allocation[origin] for number, origin in enumerate(found.origins)}
    assert math.isclose(evaluate(found.expression, left).value, whole, rel_tol=1e-9, abs_tol=1e-12)
    kept = {origin: allocation[origin] for origin in found.origins}
    assert math.isclose(evaluate(expression, kept).value, whole, rel_tol=1e-9, abs_tol=1e-12)


@drawn(expressions)
def test_nothing_is_left_to_simplify(expression):
    """A simplified expression has no scale, no lone child, no like in like, nothing hopeless."""
    simple = simplify(expression).expression
    if simple is None:
        return
    again = simplify(simple)
    assert again.expression == simple
    assert again.origins == tuple(range(len(leaves(simple))))
    for each in walk(simple):
        assert not isinstance(each, Scale)
        if isinstance(each, Maximum | Minimum | Sum):
            assert len(each.children) > 1
            assert not any(isinstance(child, type(each)) for child in children(each))
        if isinstance(each, NChooseK | LinearNChooseK):
            assert each.value > 0
            assert each.count <= len(each.nodes)


@settings(max_examples=30)
@drawn(expressions, st.dictionaries(st.sampled_from(NODES), st.integers(0, 3).map(float)))
def test_the_optimum_is_the_same(expression, busy_until):
    """The best plan for what is left is worth what the best plan for the whole is."""
    assume(all(leaf.start_seconds >= 0.0 for leaf in leaves(expression)))
    supply = Supply(frozenset(NODES), busy_until)
    whole = solve(expression, supply, 1.0).value
    left = simplify(expression)
    if left.expression is None:
        assert whole == 0.0
        return
    best = solve(left.expression, supply, 1.0)
    assert best.value == pytest.approx(whole)
    original = {left.origins[number]: nodes for number, nodes in best.allocation.items()}
    assert evaluate(expression, original).value == pytest.approx(whole)
