"""Random STRL expressions and allocations, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from foresail.strl.expression import (
    Barrier,
    Expression,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
    leaves,
)

NODES = ("m1", "m2", "m3", "m4", "m5")
QUARTERS = st.integers(0, 20).map(lambda n: n / 4)


@st.composite
def leaf(draw: st.DrawFn) -> Expression:
    """A leaf over a few nodes, sometimes asking for more than there are, sometimes worthless."""
    return draw(st.sampled_from((NChooseK, LinearNChooseK)))(
        draw(st.frozensets(st.sampled_from(NODES), min_size=1)),
        draw(st.integers(1, 4)),
        float(draw(st.integers(-1, 3))),
        float(draw(st.integers(1, 3))),
        draw(QUARTERS),
    )


def _over(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(children, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        several.map(Maximum),
        several.map(Minimum),
        several.map(Sum),
        st.builds(Scale, children, QUARTERS),
        st.builds(Barrier, children, QUARTERS),
    )


expressions = st.recursive(leaf(), _over, max_leaves=8)
"""Expressions over all seven operators."""


def allocations(expression: Expression) -> st.SearchStrategy[dict[int, frozenset[str]]]:
    """Nodes for some of the leaves; often exactly as many as asked for, not always possible."""

    def given(number: int) -> st.SearchStrategy[frozenset[str]]:
        asked = leaves(expression)[number]
        among = sorted(asked.nodes)
        right = min(asked.count, len(among))
        return st.one_of(
            st.just(frozenset(among[:right])),
            st.frozensets(st.sampled_from(among)),
            st.just(frozenset()),
        )

    return st.fixed_dictionaries({n: given(n) for n in range(len(leaves(expression)))})


@st.composite
def given(draw: st.DrawFn) -> tuple[Expression, dict[int, frozenset[str]]]:
    """An expression and an allocation to its leaves."""
    expression = draw(expressions)
    return expression, draw(allocations(expression))
