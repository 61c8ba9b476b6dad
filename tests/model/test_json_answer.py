"""Answers for programs."""

import json
import math

from foresail.model.documents import json_answer


def test_version_and_null():
    """The version is first, what is not finite is null however deep, and other text stays."""
    text = json_answer({"a": [1.0, math.inf], "b": {"c": (math.nan, "é")}})
    assert list(json.loads(text).items()) == [
        ("version", 1),
        ("a", [1.0, None]),
        ("b", {"c": [None, "é"]}),
    ]
    assert "é" in text


def test_a_version_of_its_own_stays():
    """A plan is read again by its own version."""
    assert json.loads(json_answer({"version": 7})) == {"version": 7}
