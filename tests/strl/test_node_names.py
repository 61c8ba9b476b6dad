"""Ranges of nodes and names that need quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.strl.parser import Parser
from foresail.strl.tokens import MOST_NODES, compress, expand, listed, quoted


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("m1", ("m1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("n[3,1]x", ("n3x", "n1x")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("[5]", ("5",)),
    ],
)
def test_a_text_stands_for_names(text, names):
    """Brackets hold numbers and runs; several brackets are all combinations."""
    assert expand(text) == names


@pytest.mark.parametrize("text", ["n[", "n]", "n[]", "n[a]", "n[2-1]", "n[1-2-3]", "n[[1]]"])
def test_what_is_no_range_is_refused(text):
    """Brackets that do not pair or hold no upward runs of numbers are errors."""
    with pytest.raises(ValueError, match=r"brackets|numbers|upwards"):
        expand(text)


@pytest.mark.parametrize("text", ["n[1-9999999]", "n[1-2000]m[1-2000]", "n[1-" + "9" * 15 + "]"])
def test_ranges_have_a_limit(text):
    """A few characters cannot ask for more names than memory holds."""
    with pytest.raises(ValueError, match=f"at most {MOST_NODES:,}"):
        expand(text)


def test_compressed_as_people_list_them():
    """Runs of three or more become ranges, in natural order; padding is kept."""
    assert compress(["n10", "n9", "n11", "gpu-2", "gpu-1"]) == "gpu-1, gpu-2, n[9-11]"
    assert compress(["n01", "n02", "n03", "n10"]) == "n[01-03], n10"
    assert compress(f"n{number:02}" for number in range(1, 13)) == "n[01-12]"
    assert compress(["a b", 'q"', "x\\"]) == '"a b", "q\\"", "x\\\\"'


def test_long_lists_are_cut_for_people():
    """What is shown to people is short."""
    shown = listed([f"n{number}x" for number in range(100)])
    assert len(shown) == 40
    assert shown.endswith("…")


NAMES = st.one_of(
    st.text(min_size=1, max_size=6),
    st.from_regex(r"[a-z]{0,2}-?[0-9]{1,3}", fullmatch=True),
    st.sampled_from(["max", "1e5", "1e-5", "2h", "10.0.0.1", "n[1-2]", "a-b", ".", "-", "0", "00"]),
)


@given(st.frozensets(NAMES, min_size=1, max_size=12))
def test_every_set_of_names_survives_its_text(names):
    """Compressed and read again, exactly the same names come back."""
    text = "x = {" + compress(names) + "}"
    reading = Parser(text, None).reading()
    assert reading.errors == ()
    assert reading.document.node_sets["x"] == names


@given(st.text(min_size=1))
def test_a_quoted_name_is_one_line(name):
    """Names with line ends do not break a line of text."""
    assert "\n" not in quoted(name)
