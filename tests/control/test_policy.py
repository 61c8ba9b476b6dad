"""The policy short form: reading, writing, and what it says of texts that are no policies."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.control.policy import PARTS, named_policies, parse_policy
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import entries

ORDERS = ["shortest", "-predicted", "max(q50, 10) / probe", "q50 if cpus < 4 else min(q90, 7)"]
SECONDS = st.floats(0.1, 1e9) | st.sampled_from([60.0, 86400.0, 1 / 3])
PARAMETERS = {
    "easy": {
        "order": st.sampled_from(ORDERS),
        "queue": st.sampled_from(ORDERS),
        "plan": st.sampled_from(["q75", "min(requested, q90)"]),
        "reservations": st.integers(0, 9),
        "age_limit_seconds": SECONDS | st.just(math.inf),
    },
    "conservative": {"queue": st.sampled_from(ORDERS)},
    "guarded": {"plan": st.sampled_from(["q25", "max(q10, 5)"]), "patience": st.floats(0.0, 9.0)},
    "fcfs": {},
    "recent": {"k": st.integers(1, 5), "whole_seconds": st.booleans()},
    "regression": {"over": st.sampled_from(["squared", "linear"])},
    "clairvoyant": {},
    "requested": {},
    "similar": {},
    "incremental": {"reading": st.sampled_from(["cumulative", "absolute"])},
    "doubling": {},
    "quantile": {},
}
FAMILIES = (
    ("easy", "conservative", "guarded", "fcfs"),
    ("recent", "regression", "clairvoyant", "requested", "similar"),
    ("incremental", "doubling", "quantile", "requested"),
)


@st.composite
def parts(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """One part, with some of its parameters, spaced and quoted as people may."""
    name = draw(st.sampled_from(names))
    settings = []
    for parameter, values in PARAMETERS[name].items():
        if draw(st.booleans()):
            quote = draw(st.sampled_from(["", '"', "'"]))
            space = draw(st.sampled_from(["", " "]))
            settings.append(f"{parameter}{space}={space}{quote}{draw(values)}{quote}")
    inside = ", ".join(settings)
    return f"{name}({inside})" if settings or draw(st.booleans()) else name


@given(st.tuples(*(parts(names) for names in FAMILIES)))
def test_text_reads_back(three):
    """The canonical text of a policy is that policy, and is its own canonical text."""
    policy = parse_policy(",".join(three))
    again = parse_policy(policy.text)
    assert again == policy
    assert again.text == policy.text
    policy.build()


@given(st.permutations([0, 1, 2]), st.tuples(*(parts(names[:3]) for names in FAMILIES)))
def test_parts_come_in_any_order(order, three):
    """Names that one family alone has need no order."""
    assert parse_policy(",".join(three[index] for index in order)) == parse_policy(",".join(three))


def test_defaults():
    """What is left out is EASY, the request, and correction to the request."""
    assert parse_policy("easy") == parse_policy("easy(),requested,requested")
    assert parse_policy("recent").text == "easy,recent"
    assert parse_policy("doubling").text == "easy,doubling"
    assert parse_policy("requested,requested").text == "easy"


def test_a_name_of_two_families_is_the_first_open_part():
    """``requested`` is a predictor and a correction."""
    policy = parse_policy("fcfs,requested,requested")
    assert (policy.predictor.entry.family, policy.correction.entry.family) == PARTS[1:]
    assert parse_policy("recent,requested").correction.entry.name == "requested"


@pytest.mark.parametrize("name", named_policies())
def test_named_policies_are_their_short_forms(name):
    """Whatever the case; the name is shown instead of the short form."""
    policy = parse_policy(f" {name.upper()} ")
    plain = parse_policy(named_policies()[name])
    assert policy.text == plain.text
    assert (policy.label, plain.label) == (name, plain.text)
    policy.build()


def test_every_plug_in_is_found_by_its_bare_name():
    """All registered parts have defaults for all parameters."""
    for family in PARTS:
        for entry in entries(family):
            text = f"easy,recent,{entry.name}" if family == "correction" else entry.name
            assert getattr(parse_policy(text), family).entry == entry


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90), ("90s", 90), ("1.5h", 5400), ("2 d", 172800), ("1w", 604800)],
)
def test_durations_have_units(written, seconds):
    """Of parameters that are seconds."""
    policy = parse_policy(f"easy(age_limit_seconds={written})")
    assert policy.scheduler.parameters.age_limit_seconds == seconds
    assert policy.text == f"easy(age_limit_seconds={seconds})"


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", InputError, "a part is empty"),
        ("  ", InputError, "a part is empty"),
        ("easy,,recent", InputError, "a part is empty"),
        ("easy,", InputError, "a part is empty"),
        ("easy(order=shortest", InputError, "do not match"),
        ("easy)order=shortest(", InputError, "do not match"),
        ('easy(order="shortest)', InputError, "do not match"),
        ("easy(order=shortest)x", InputError, "after a closing parenthesis"),
        ("easy(order)", InputError, "expected parameter=value"),
        ("easy(order=)", InputError, "expected parameter=value"),
        ("easy(order=shortest,order=fcfs)", InputError, "given twice"),
        ("easy,fcfs", InputError, "two parts of the same kind"),
        ("requested,requested,requested", InputError, "two parts of the same kind"),
        ("esy", UnknownNameError, "did you mean 'easy'"),
        ("easy,recnt", UnknownNameError, "did you mean 'recent'"),
        ("foresial", UnknownNameError, "did you mean 'foresail'"),
        ("easy+", UnknownNameError, "'easy++'"),
        ("easy(ordr=shortest)", UnknownNameError, "did you mean 'order'"),
        ("fcfs(order=shortest)", UnknownNameError, "unknown parameter of fcfs 'order'"),
        ("easy(reservations=two)", InputError, "field 'reservations'"),
        ("easy(age_limit_seconds=1 fortnight)", InputError, "found '1 fortnight'"),
        ("incremental(reading=other)", InputError, "field 'reading'"),
    ],
)
def test_texts_that_are_no_policies(text, error, words):
    """Refused, saying what is wrong and, for a name, what may have been meant."""
    with pytest.raises(error) as caught:
        parse_policy(text)
    assert words in str(caught.value)


def test_an_unknown_order_is_refused_when_the_policy_is_built():
    """Orders belong to schedulers; the message offers the nearest."""
    with pytest.raises(UnknownNameError, match="did you mean 'shortest'"):
        parse_policy("easy(order=shortst)").build()
