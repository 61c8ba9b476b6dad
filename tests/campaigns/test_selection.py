"""Leave-one-out selection, on tables small enough to check by eye."""

import polars as pl
import pytest

from foresail.campaigns.selection import SelectionRule, candidates, leave_one_out, ranking
from foresail.model.errors import InputError
from made_campaigns import results_table

A, B, C = "easy(order=shortest)", "easy,recent", "fcfs"
ORACLE = "easy,clairvoyant"
RESULTS = results_table(
    {
        "small": {"easy": 10.0, A: 5.0, B: 8.0, ORACLE: 1.0},
        "middle": {"easy": 10.0, A: 9.0, B: 6.0, ORACLE: 1.0},
        "large": {"easy": 1000.0, A: 990.0, B: 980.0, ORACLE: 1.0},
    }
)


def test_the_judged_log_is_not_looked_at():
    """The choice for a log comes from the sums over the others, and is judged on the log."""
    chosen = leave_one_out(RESULTS, SelectionRule())
    assert chosen["log"].to_list() == ["small", "middle", "large"]
    # small: A 999, B 986; middle: A 995, B 988; large: A 14, B 14, of which the first given wins
    assert chosen["policy"].to_list() == [B, B, A]
    assert chosen["average_bounded_slowdown"].to_list() == [8.0, 6.0, 990.0]
    assert chosen["baseline"].to_list() == [10.0, 10.0, 1000.0]
    assert chosen["reduction"].to_list() == pytest.approx([0.2, 0.4, 0.01])


def test_changing_the_judged_log_changes_no_choice():
    """Whatever the scores on a log are, what is chosen for it stays."""
    worse = RESULTS.with_columns(
        average_bounded_slowdown=pl.when(pl.col("log") == "small", pl.col("policy") == B)
        .then(1e9)
        .otherwise(pl.col("average_bounded_slowdown"))
    )
    assert leave_one_out(worse, SelectionRule())["policy"][0] == B


def test_ratios_give_every_log_the_same_say():
    """A log with large values decides a sum, not a mean of ratios."""
    others = RESULTS.filter(pl.col("log") != "middle")
    assert ranking(others, SelectionRule("sum"), [A, B])["policy"][0] == B
    ranked = ranking(others, SelectionRule("ratios"), [A, B])
    assert ranked["policy"].to_list() == [A, B]
    assert ranked["score"].to_list() == pytest.approx([(0.5 + 0.99) / 2, (0.8 + 0.98) / 2])


def test_clairvoyant_and_incomplete_policies_are_no_candidates():
    """Nobody can use the oracle; a policy not replayed everywhere has no fair sum."""
    partly = pl.concat([RESULTS, results_table({"small": {C: 0.1}})])
    assert candidates(partly) == ("easy", A, B)


def test_longest_wait_excludes():
    """A policy that lets a job wait too long on a log looked at is not chosen."""
    waits = {"large": {B: 126.0, A: 125.0}}
    results = results_table(
        {"small": {"easy": 10.0, A: 5.0, B: 8.0}, "large": {"easy": 1000.0, A: 990.0, B: 980.0}},
        waits,
    )
    guarded = SelectionRule(longest_wait_ratio=1.25)
    assert ranking(results, SelectionRule(), [A, B])["policy"].to_list() == [B, A]
    ranked = ranking(results, guarded, [A, B])
    assert ranked["policy"].to_list() == [A]
    assert ranked["longest_wait_ratio"].to_list() == [1.25]
    chosen = leave_one_out(results, guarded)
    assert chosen["policy"].to_list() == [A, A]  # large is judged by small, where all wait alike
    assert chosen["longest_wait_ratio"].to_list() == [1.0, 1.25]


def test_nobody_waits():
    """Where nobody waits under any policy, the longest wait excludes none."""
    nobody = {log: {"easy": 0.0, A: 0.0} for log in ("one", "two")}
    results = results_table({log: {"easy": 1.0, A: 1.0} for log in nobody}, nobody)
    chosen = leave_one_out(results, SelectionRule(longest_wait_ratio=1.0))
    assert chosen["longest_wait_ratio"].to_list() == [1.0, 1.0]


def test_given_policies_only():
    """A family of one's own can be chosen among, whatever else was replayed."""
    assert leave_one_out(RESULTS, SelectionRule(), [A])["policy"].to_list() == [A, A, A]


def test_refusals():
    """One log, no baseline, nothing to choose among: each says what is missing."""
    with pytest.raises(InputError, match="other logs"):
        leave_one_out(RESULTS.filter(pl.col("log") == "small"), SelectionRule())
    with pytest.raises(InputError, match="baseline was not replayed on large, middle"):
        leave_one_out(RESULTS, SelectionRule(baseline="fcfs"))
    with pytest.raises(InputError, match="no policy can be chosen for small"):
        leave_one_out(RESULTS, SelectionRule(longest_wait_ratio=0.5))
