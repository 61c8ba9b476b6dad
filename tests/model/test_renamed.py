"""Words that have another name now: short names stay good, deprecated words are warned of."""

import pytest

from foresail.cli.main import _show_warning
from foresail.control.policy import parse_policy
from foresail.model.event import STANDARD, Conventions
from foresail.model.registry import DEPRECATED, PUBLISHED, DeprecatedWordWarning, find, todays_name
from foresail.schedulers.order_expression import compile_expression


@pytest.mark.parametrize(
    ("kind", "short", "long"),
    [(kind, short, long) for kind, names in PUBLISHED.items() for short, long in names.items()],
)
def test_short_names_are_the_long_ones(kind, short, long):
    """Both are good, without a warning; a long name is its own."""
    assert todays_name(kind, short) == todays_name(kind, long) == long


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [(kind, old, new) for kind, words in DEPRECATED.items() for old, new in words.items()],
)
def test_old_words_are_warned_of(kind, old, new):
    """An old word is understood, and the warning names the new one."""
    with pytest.warns(DeprecatedWordWarning, match=f"{kind} {old} is now called {new}"):
        assert todays_name(kind, old) == new


@pytest.mark.parametrize("short", PUBLISHED["scheduler"])
def test_schedulers_by_their_short_names(short):
    """A short name finds the scheduler, and the canonical text has the long one."""
    long = PUBLISHED["scheduler"][short]
    assert find("scheduler", short) is find("scheduler", long)
    assert parse_policy(f"{short},recent").text == f"{long},recent"


def test_old_words_in_policies():
    """A policy and an order of the version before mean what they meant."""
    with pytest.warns(DeprecatedWordWarning, match="scheduler three_sigma"):
        assert parse_policy("three_sigma,recent").text == "3sigma,recent"
    with pytest.warns(DeprecatedWordWarning, match="order pilot"):
        old = compile_expression("max(q50, 11) / pilot")
    assert old.code.tolist() == compile_expression("max(q50, 11) / probe").code.tolist()


@pytest.mark.parametrize("name", ["3sigma", "tetrisched"])
def test_a_scheduler_alone_is_not_the_policy_of_its_name(name):
    """The canonical text of a bare scheduler names its predictor, and is read as the same."""
    alone = parse_policy(f"{name},requested")
    assert alone.text == f"{name},requested"
    assert parse_policy(alone.text) == alone
    assert parse_policy(name).text != alone.text


def test_records_of_the_version_before():
    """The conventions that were called ``foresail`` are read as what they are called now."""
    assert Conventions("foresail", "per_instant", "ends_first", "actual") == STANDARD


def test_the_command_line_prints_a_note(capsys):
    """A deprecated word is one line on standard error; other warnings look as they always do."""
    _show_warning(DeprecatedWordWarning("a is now called b"), DeprecatedWordWarning, "x.py", 1)
    assert capsys.readouterr().err == "foresail: a is now called b\n"
    _show_warning(RuntimeWarning("oh"), RuntimeWarning, "x.py", 1)
    assert capsys.readouterr().err.startswith("x.py:1: RuntimeWarning: oh\n")
