"""Leaves that may add worth are counted."""

from __future__ import annotations

import pytest
from hypothesis import given as drawn

from drawn_expressions import expressions
from foresail.strl.checking import useful_leaves
from foresail.strl.expression import highest_value, leaves
from foresail.strl.parser import parse

A = "nCk({a,b}, 1, 0, 2, 3)"
B = "nCk({a,b}, 2, 4, 2, 5)"
C = "LnCk({c}, 1, 1, 1, 1)"
NOT_THERE = "nCk({a,b}, 3, 0, 2, 5)"
WORTHLESS = "nCk({a,b}, 1, 0, 2, 0)"


@pytest.mark.parametrize(
    ("text", "useful"),
    [
        (A, 1),
        (NOT_THERE, 0),
        (WORTHLESS, 0),
        ("LnCk({a,b}, 4, 0, 2, 8)", 1),
        (f"max({A}, max({B}, {C}))", 3),
        (f"max({A}, {NOT_THERE}, {WORTHLESS})", 1),
        (f"min({A}, {NOT_THERE})", 0),
        (f"sum({NOT_THERE}, {WORTHLESS})", 0),
        (f"scale(max({A}, scale({C}, 2)), 3)", 2),
        (f"scale({A}, 0)", 0),
        (f"barrier({A}, 2)", 1),
        (f"barrier({A}, 4)", 0),
        (f"barrier({A}, 0)", 0),
        (f"barrier(sum({A}, {B}), 8.5)", 0),
        (f"scale(barrier(sum({A}, {B}), 8), 2)", 2),
    ],
)
def test_hand_cases(text, useful):
    """None of those that can never count."""
    assert useful_leaves(parse(text).expression) == useful


@drawn(expressions)
def test_useful_is_what_may_be_worth_something(expression):
    """None where nothing is worth anything, all at most."""
    useful = useful_leaves(expression)
    assert useful <= len(leaves(expression))
    assert (useful > 0) == (highest_value(expression) > 0.0)
