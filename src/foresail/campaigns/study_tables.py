"""The published study's tables, from the results of a campaign (spec of backfilling, 8 and 10).

Results tables are those of ``foresail.campaigns.results.Results.table``.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from foresail.campaigns.selection import SCORE, candidates
from foresail.campaigns.triples import EASY_PLUS_PLUS, VARIANTS, clairvoyant_triples
from foresail.control.policy import parse_policy


def correlations(results: pl.DataFrame) -> pl.DataFrame:
    """Pearson correlation of policies' scores between each pair of logs.

    Policies are the ``candidates``. Columns: ``log``, ``other``, ``correlation``; NaN where a log's
    scores are all equal.
    """
    policies = list(candidates(results))
    logs = results["log"].unique(maintain_order=True).to_list()
    wide = (
        results.filter(pl.col("policy").is_in(policies))
        .pivot("log", index="policy", values=SCORE)
        .select(logs)
        .to_numpy()
    )
    with np.errstate(invalid="ignore"):
        matrix = np.corrcoef(wide, rowvar=False).reshape(len(logs), len(logs))
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


def is_learned(policy: str) -> bool:
    """Whether a policy predicts by one of the study's regressions."""
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
            if is_learned(policy) and parse_policy(policy).scheduler.text == variant
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
