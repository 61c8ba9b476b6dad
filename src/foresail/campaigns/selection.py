"""Choice of a policy for a log by the results on the others, and the tables of the study.

All functions take a results table with the columns ``log``, ``policy``,
``average_bounded_slowdown`` and ``max_wait_seconds``, a row per run. Source: V. Reis' thesis,
section 2.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.campaigns.plan import EASY_PLUS_PLUS, VARIANTS, clairvoyant_triples, is_clairvoyant
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError

SCORE: Final = "average_bounded_slowdown"
WORST_WAIT: Final = "max_wait_seconds"


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """Rule by which a policy is chosen from its results on some logs."""

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

    Raises ``InputError`` if the baseline was not replayed on every log of the table.

    Returns
    -------
    DataFrame
        Columns ``policy``, ``score`` (sum or mean ratio, smaller is better) and
        ``longest_wait_ratio`` (the worst over the logs). Policies that wait too long are left out.
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

    Raises ``InputError`` if there are fewer than two logs, the baseline is missing, or no policy
    can be chosen.

    Returns
    -------
    DataFrame
        A row per log: ``log``, ``policy`` chosen, its ``average_bounded_slowdown``, the
        ``baseline``'s, the ``reduction`` (share of one), and ``longest_wait_ratio``.
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


def correlations(results: pl.DataFrame) -> pl.DataFrame:
    """Pearson correlation of policies' scores between each pair of logs.

    Policies are the ``candidates``. Columns: ``log``, ``other``, ``correlation``; NaN where a log's
    scores are all equal, as those of a single policy are.
    """
    policies = list(candidates(results))
    logs = results["log"].unique(maintain_order=True).to_list()
    wide = (
        results.filter(pl.col("policy").is_in(policies))
        .pivot("log", index="policy", values=SCORE)
        .select(logs)
        .to_numpy()
    )
    matrix = np.full((len(logs), len(logs)), np.nan)
    if len(policies) > 1:
        with np.errstate(invalid="ignore"):
            matrix = np.corrcoef(wide, rowvar=False).reshape(matrix.shape)
    return pl.DataFrame(
        [
            {"log": log, "other": other, "correlation": float(matrix[i, j])}
            for i, log in enumerate(logs)
            for j, other in enumerate(logs)
        ]
    )


def correlation_spread(matrix: pl.DataFrame) -> tuple[float, float, float]:
    """Smallest, mean and largest of the ``correlations`` between different logs, two at least."""
    pairs = matrix.filter(pl.col("log") != pl.col("other"))["correlation"].to_numpy()
    return float(pairs.min()), float(pairs.mean()), float(pairs.max())


def _is_learned(policy: str) -> bool:
    """Return whether a policy predicts by one of the study's regressions."""
    return parse_policy(policy).predictor.entry.name == "regression"


def headline(results: pl.DataFrame, choices: pl.DataFrame | None) -> pl.DataFrame:
    """Average bounded slowdown per log as in the study's Tables 2.1, 2.6 and 2.7.

    ``choices`` are those of ``leave_one_out``, for the last columns, which are null without.

    Returns
    -------
    DataFrame
        A row per log: ``log``, ``easy``, ``clairvoyant_fcfs``, ``clairvoyant_sjbf``,
        ``easy_plus_plus``, ``learned_fcfs_best``, ``learned_fcfs_worst``, ``learned_sjbf_best``,
        ``learned_sjbf_worst``, ``chosen``, ``chosen_policy``; null for what was not replayed.
    """
    fcfs, sjbf = VARIANTS
    fcfs_bound, sjbf_bound = clairvoyant_triples()
    single = {
        "easy": "easy",
        "clairvoyant_fcfs": fcfs_bound,
        "clairvoyant_sjbf": sjbf_bound,
        "easy_plus_plus": EASY_PLUS_PLUS.text,
    }
    learned = {
        name: [
            policy
            for policy in results["policy"].unique(maintain_order=True)
            if _is_learned(policy) and parse_policy(policy).scheduler.text == variant
        ]
        for name, variant in (("learned_fcfs", fcfs), ("learned_sjbf", sjbf))
    }
    score, policy = pl.col(SCORE), pl.col("policy")
    table = results.group_by("log", maintain_order=True).agg(
        *(score.filter(policy == text).first().alias(name) for name, text in single.items()),
        *(
            getattr(score.filter(policy.is_in(texts)), how)().alias(f"{name}_{word}")
            for name, texts in learned.items()
            for how, word in (("min", "best"), ("max", "worst"))
        ),
    )
    if choices is None:
        nothing = pl.lit(None)
        return table.with_columns(
            chosen=nothing.cast(pl.Float64), chosen_policy=nothing.cast(pl.String)
        )
    chosen = choices.select("log", chosen=SCORE, chosen_policy="policy")
    return table.join(chosen, on="log", how="left", maintain_order="left")


def prediction_errors(results: pl.DataFrame) -> pl.DataFrame:
    """Mean absolute error and mean E-Loss of each predictor on each log (Table 2.8).

    A prediction depends a little on the schedule (what has ended by then): figures are means over
    the policies with the same predictor. Columns: ``log``, ``predictor``, ``policies``,
    ``mean_absolute_error_seconds``, ``mean_e_loss``, ``under_predicted_share``.
    """
    predictors = {
        policy: parse_policy(policy).predictor.text for policy in results["policy"].unique()
    }
    return (
        results.with_columns(predictor=pl.col("policy").replace_strict(predictors))
        .group_by("log", "predictor", maintain_order=True)
        .agg(
            policies=pl.len(),
            mean_absolute_error_seconds=pl.col("mean_absolute_error_seconds").mean(),
            mean_e_loss=pl.col("mean_e_loss").mean(),
            under_predicted_share=pl.col("under_predicted_share").mean(),
        )
    )
