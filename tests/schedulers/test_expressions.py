"""Order expressions, against what Python itself makes of the same text."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.kernels.columns import CPUS, REQUESTED, SPEC_COLUMNS, SUBMIT, SUMMARY_NAMES
from foresail.kernels.expression import STACK_DEPTH, value_of
from foresail.model.errors import InputError, UnknownNameError
from foresail.schedulers.order_expression import FIELD_NAMES, NAMED_ORDERS, compile_expression
from long_series import of_a_series


def values(text, now, jobs):
    """The expression's value for each job, a mapping from field to number."""
    specs, summaries = (
        np.zeros((len(jobs), SPEC_COLUMNS)),
        np.zeros((len(jobs), len(SUMMARY_NAMES))),
    )
    for row, job in enumerate(jobs):
        specs[row, [SUBMIT, CPUS, REQUESTED]] = job["submit"], job["cpus"], job["requested"]
        summaries[row] = [job[name] for name in SUMMARY_NAMES]
    program = compile_expression(text)
    pilots = np.array([job["probe"] for job in jobs])
    stack = np.empty(STACK_DEPTH)
    rows = zip(specs, summaries, pilots, strict=True)
    return np.array(
        [value_of(program.code, stack, spec, summary, now, each) for spec, summary, each in rows]
    )


def plainly(text, now, job):
    """The same by Python, with the machine's answers where Python would raise."""

    def logarithm(x):
        return math.log(x) if x > 0 else -math.inf

    names = {**job, "now": now, "wait": now - job["submit"]}
    names |= {"min": min, "max": max, "abs": abs, "log": logarithm, "sqrt": math.sqrt}
    return float(eval(text, {"__builtins__": {}}, names))


NUMBERS = st.integers(1, 9).map(float)
JOB = st.fixed_dictionaries(
    dict.fromkeys(("submit", "cpus", "requested", "probe", *SUMMARY_NAMES), NUMBERS)
)


def combined(inner):
    """Expressions made of smaller ones; parentheses are drawn, so that precedence is tested."""
    wrapped = inner | inner.map(lambda text: f"({text})")
    pair = st.tuples(wrapped, wrapped)
    return (
        st.tuples(wrapped, st.sampled_from([" + ", " - ", "*", " * "]), wrapped).map("".join)
        | inner.map(lambda text: f"-({text})")
        | pair.map(lambda two: f"({two[0]}) / (1 + abs({two[1]}))")
        | pair.map(lambda two: f"min({two[0]}, {two[1]})")
        | pair.map(lambda two: f"max({two[0]}, {two[1]})")
        | inner.map(lambda text: f"sqrt(abs({text}))")
        | inner.map(lambda text: f"log({text} + 0 * cpus)")
        | st.tuples(wrapped, st.sampled_from(["<", "<=", ">", ">="]), wrapped, wrapped).map(
            lambda four: f"(({four[0]}) if ({four[2]}) {four[1]} ({four[3]}) else 2)"
        )
    )


TEXTS = st.recursive(
    st.sampled_from(FIELD_NAMES) | st.sampled_from(["1", "2.5", "-3", "1e3"]),
    combined,
    max_leaves=6,
)


@settings(max_examples=of_a_series(300, short=75))
@given(TEXTS, JOB, st.integers(9, 20).map(float))
def test_values_are_pythons(text, job, now):
    """Operators, precedence, functions and conditions."""
    expected = plainly(text, now, job)
    try:
        (value,) = values(text, now, [job])
    except InputError:  # no number for any job
        value = math.nan
    if math.isnan(value):
        assert not math.isfinite(expected)
    elif math.isnan(expected):
        assert value == math.inf
    else:
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", NAMED_ORDERS)
def test_named_orders_are_their_expressions(name):
    """A name and its expression give the same values."""
    job = dict.fromkeys(("submit", "cpus", "requested", "probe", *SUMMARY_NAMES), 3.0)
    assert values(name, 5.0, [job]) == values(NAMED_ORDERS[name], 5.0, [job])


def test_what_is_not_a_number_comes_last():
    """0 / 0, the root of a negative number and inf - inf become infinite."""
    job = dict.fromkeys(("submit", "cpus", "requested", "probe", *SUMMARY_NAMES), 0.0)
    job["requested"] = math.inf
    for text in ("cpus / cpus", "sqrt(cpus - 1)", "requested - requested", "(cpus - 8) ** 0.5"):
        assert values(text, 5.0, [job]).tolist() == [math.inf]


@pytest.mark.parametrize(
    "text", ["sqrt(cpus - 64)", "log(probe)", "1 / (cpus < 8)", "sqrt(wait - 86400)", "0 * cpus"]
)
def test_what_is_a_number_for_some_jobs_is_an_order(text):
    """However few of them there may be."""
    assert compile_expression(text).code.size


@pytest.mark.parametrize(
    ("text", "moves", "follows"),
    [
        ("predicted", False, False),
        ("predicted + wait", True, False),
        ("now", True, False),
        ("q50 / probe", False, True),
        ("wait / probe", True, True),
    ],
)
def test_what_a_value_depends_on(text, moves, follows):
    """Only orders that change with time, or with who else waits, are kept up to date so."""
    program = compile_expression(text)
    assert (program.changes_with_time, program.follows_probes) == (moves, follows)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", InputError, "not an expression"),
        ("predicted *", InputError, "not an expression"),
        ("1" + "0" * 400, InputError, "not an expression"),
        ("+".join(["cpus"] * 5000), InputError, "not an expression"),
        ("(" * 300 + "cpus" + ")" * 300, InputError, "not an expression"),
        ("1-(" * 20 + "cpus" + ")" * 20, InputError, "nested too deeply"),
        ("shortst", UnknownNameError, "did you mean 'shortest'"),
        ("predict * cpus", UnknownNameError, "did you mean 'predicted'"),
        ("sqr(cpus)", UnknownNameError, "did you mean 'sqrt'"),
        ("min(cpus)", InputError, "min takes 2 arguments"),
        ("1/0", InputError, "'1 / 0' is no number"),
        ("cpus + 10**400", InputError, "'10 ** 400' is no number"),
        ("predicted * log(0 - 1)", InputError, "'log(0 - 1)' is no number"),
        ("cpus + requested / (2 - 2)", InputError, "'requested / (2 - 2)' is no number"),
        ("sqrt(-cpus)", InputError, "'sqrt(-cpus)' is no number for any job"),
        ("wait + (submit - now) ** 0.5", InputError, "is no number for any job"),
        ("log(-q50) if cpus > 0 else cpus", InputError, "is no number for any job"),
        ("log(cpus, base=2)", InputError, "log takes 1 argument"),
        ("cpus % 2", InputError, "cannot use 'cpus % 2'"),
        ("1 < cpus < 3", InputError, "cannot use '1 < cpus < 3'"),
        ("cpus == 2", InputError, "cannot use 'cpus == 2'"),
        ("'a'", InputError, "cannot use"),
        ("__import__('os')", UnknownNameError, "unknown function"),
        ("cpus.real", InputError, "cannot use"),
        ("[cpus]", InputError, "cannot use"),
    ],
)
def test_texts_that_are_no_orders(text, error, words):
    """Each is refused in words, and nothing is executed."""
    with pytest.raises(error, match=re.escape(words)):
        compile_expression(text)
