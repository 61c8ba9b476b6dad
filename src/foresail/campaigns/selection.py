"""Choosing a policy for a log from the results on the other logs: leave-one-out.

All functions take a results table with the columns ``log``, ``policy``,
``average_bounded_slowdown`` and ``max_wait_seconds``, a row per run. Source: paper 004 section 2.6,
spec of backfilling, section 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from foresail.campaigns.triples import is_clairvoyant
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError

SCORE: Final = "average_bounded_slowdown"
WORST_WAIT: Final = "max_wait_seconds"


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """How a policy is chosen from its results on some logs."""

    combine: Literal["sum", "ratios"] = "sum"
    """``sum`` of the average bounded slowdowns, as the study did (logs with large values decide),
    or mean of the ``ratios`` to the baseline's."""
    longest_wait_ratio: float | None = None
    """Only policies whose longest wait is at most this multiple of the baseline's on every log
    looked at; any if None."""
    baseline: str = "easy"
    """The policy that others are measured against, in canonical short form."""


def candidates(results: pl.DataFrame) -> tuple[str, ...]:
    """Policies that were replayed on all logs of the table and are not clairvoyant."""
    logs = results["log"].n_unique()
    counts = results.group_by("policy", maintain_order=True).agg(logs=pl.col("log").n_unique())
    complete = counts.filter(pl.col("logs") == logs)["policy"].to_list()
    return tuple(policy for policy in complete if not is_clairvoyant(parse_policy(policy)))


def ranking(results: pl.DataFrame, rule: SelectionRule, policies: Sequence[str]) -> pl.DataFrame:
    """Policies by the rule, the best first; ties stay in the order given.

    Returns
    -------
    DataFrame
        Columns ``policy``, ``score`` (sum or mean ratio, smaller is better) and
        ``longest_wait_ratio`` (the worst over the logs). Policies that wait too long are left out.

    Raises
    ------
    InputError
        If the baseline was not replayed on every log of the table.
    """
    judged = _against(results, rule.baseline).filter(pl.col("policy").is_in(list(policies)))
    combined = (
        pl.col(SCORE).sum()
        if rule.combine == "sum"
        else (pl.col(SCORE) / pl.col("baseline")).mean()
    )
    scores = judged.group_by("policy").agg(
        score=combined,
        longest_wait_ratio=(pl.col(WORST_WAIT) / pl.col("baseline_wait")).fill_nan(1.0).max(),
    )
    given = pl.DataFrame({"policy": list(policies)}, schema={"policy": pl.String})
    ranked = given.join(scores, on="policy", maintain_order="left")
    if rule.longest_wait_ratio is not None:
        ranked = ranked.filter(pl.col("longest_wait_ratio") <= rule.longest_wait_ratio)
    return ranked.sort("score", maintain_order=True)


def leave_one_out(
    results: pl.DataFrame, rule: SelectionRule, policies: Sequence[str] | None = None
) -> pl.DataFrame:
    """For each log, the policy that the other logs recommend, and what it does on this one.

    ``results`` are of at least two logs; ``policies`` are by default all ``candidates``.

    Returns
    -------
    DataFrame
        A row per log: ``log``, ``policy`` chosen, its ``average_bounded_slowdown``, the
        ``baseline``'s, the ``reduction`` (share of one), and ``longest_wait_ratio``.

    Raises
    ------
    InputError
        If there are fewer than two logs, the baseline is missing, or no policy can be chosen.
    """
    logs = results["log"].unique(maintain_order=True).to_list()
    if len(logs) < 2:
        raise InputError("leave-one-out needs results on other logs", expected="two logs or more")
    among = candidates(results) if policies is None else policies
    chosen = []
    for log in logs:
        ranked = ranking(results.filter(pl.col("log") != log), rule, among)
        if ranked.is_empty():
            raise InputError(
                f"no policy can be chosen for {log}",
                expected="a policy replayed on every log whose waits the rule allows",
            )
        chosen.append({"log": log, "policy": ranked["policy"][0]})
    judged = _against(results, rule.baseline)
    return (
        pl.DataFrame(chosen)
        .join(judged, on=["log", "policy"], maintain_order="left")
        .select(
            "log",
            "policy",
            SCORE,
            "baseline",
            reduction=1.0 - pl.col(SCORE) / pl.col("baseline"),
            longest_wait_ratio=(pl.col(WORST_WAIT) / pl.col("baseline_wait")).fill_nan(1.0),
        )
    )


def _against(results: pl.DataFrame, baseline: str) -> pl.DataFrame:
    """The results with the baseline's score and longest wait on the same log beside them."""
    base = results.filter(pl.col("policy") == baseline).select(
        "log", baseline=SCORE, baseline_wait=WORST_WAIT
    )
    missing = set(results["log"]) - set(base["log"])
    if missing:
        raise InputError(
            f"the baseline was not replayed on {', '.join(sorted(missing))}", value=baseline
        )
    return results.join(base, on="log", maintain_order="left")
