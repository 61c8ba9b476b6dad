"""The page of an advice: its words, its pictures, and that they add up."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from foresail.cloud.advising.advice import advise
from foresail.cloud.advising.question import AdviceQuestion
from foresail.cloud.prices_reading import load_prices
from foresail.model.documents import json_answer
from foresail.reports.renting.advice_page import (
    compared_table,
    frontier_figure,
    record,
)
from foresail.reports.renting.advice_words import (
    RULE_NAMES,
    how_sure,
    rests_on,
    rule_words,
    sentences,
)
from foresail.reports.renting.page import demand_figure
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

PRICES = replace(load_prices("thesis"), source="a paper")


def advised(**question):
    """The advice on 300 jobs of six weeks."""
    random = np.random.default_rng(3)
    table = jobs_table(
        {
            "job_id": [str(n) for n in range(300)],
            "submit_seconds": np.sort(random.uniform(0.0, 42 * 86_400.0, 300)),
            "runtime_seconds": random.exponential(30_000.0, 300),
            "tasks": np.ones(300, np.int64),
            "cpus_per_task": random.integers(1, 4, 300).astype(float),
        }
    )
    workload = Workload(table, WorkloadMeta("made", "made", 8))
    asked = AdviceQuestion(
        waiting_seconds=(3600.0,), short_seconds=(600.0,), node="standard-1", **question
    )
    believed = table["runtime_seconds"].to_numpy()
    return advise(workload, load_prices("thesis"), asked, believed, "somebody")


@pytest.fixture(scope="module")
def advice():
    return advised()


def test_every_rule_has_words_with_its_thresholds():
    """A person can follow the rule: its limit and what is short are in it."""
    rules = list(AdviceQuestion(waiting_seconds=(7200.0,), short_seconds=(900.0,)).rules())
    assert {rule.name for rule in rules} == set(RULE_NAMES)
    for rule in rules:
        words = rule_words(rule)
        assert ("2 h" in words) == (
            rule.name in ("all-jobs-wait-threshold", "compound", "speculative")
        )
        assert ("15 min" in words) == (rule.name in ("compound", "speculative"))


def test_pictures_mark_today_and_the_advice(advice):
    """Both are named where they are drawn, and the advised cores are a line through demand."""
    frontier = frontier_figure(advice, PRICES)
    words = {text for trace in frontier.traces for text in trace.get("text", ())}
    assert words - {""} == {f"advised: {advice.advised.tried.nodes}", "today: 8"}
    assert not any(name.startswith(("advised", "today")) for name in frontier.legend)
    (level,) = demand_figure(advice.use_over_time, "cores", "advised").layout["shapes"]
    assert level["y0"] == advice.advised.tried.nodes * advice.market.node.cores


def test_what_it_rests_on_is_said(advice):
    """Prices with their day and source, the log, the worth of waiting, who believed what."""
    words = " ".join(rests_on(advice, PRICES))
    for part in ("2018-12-31", "a paper", "300 jobs", "repeat", "10 %", "somebody", "processors"):
        assert part in words
    stated = " ".join(rests_on(advised(wait_price_per_hour=2.0, owned=4), PRICES))
    assert "2 USD: as stated" in stated
    assert "processors" not in stated


def test_what_never_waits_is_no_number_of_nodes(advice):
    """It is bought in cores, and under the table is said why it may be dearer or cheaper."""
    table = compared_table(advice, PRICES)
    rows = {row[0]: row[1] for row in table.rows}
    for name in ("no waiting, foreseen", "no waiting, hindsight"):
        assert rows[name].endswith(" cores")
    assert rows["advised"] == str(advice.advised.tried.nodes)
    told = {row["what"]: row for row in table.table.to_dicts()}
    assert told["no waiting, hindsight"]["nodes"] is None
    assert told["no waiting, hindsight"]["cores"] > 0.0
    assert "counted otherwise than the advice, and may lie on either side" in table.note


def test_a_target_that_forces_nodes_is_named():
    """Nodes that pay less surely than is asked for are there for the target, and that is said."""
    forced = advised(risk=0.05, most_cost_per_month=107.0)
    assert forced.chance_to_pay < 1.0 - forced.question.risk
    assert forced.within_risk.nodes < forced.advised.tried.nodes
    words = " ".join(how_sure(forced, PRICES))
    assert "The target of 107 USD a month forces more nodes than the risk allows" in words
    assert f"that would be {forced.within_risk.nodes:,} node" in words
    assert "forces" not in " ".join(how_sure(advised(), PRICES))


def test_what_today_rests_on_is_said(advice):
    """Nodes that nobody stated are called what they are: the log's processors."""
    said = (
        "What there is today was not said: the log's processors are counted as so many standard-1"
    )
    assert said in " ".join(sentences(advice, PRICES))
    assert said not in " ".join(sentences(advised(owned=4), PRICES))


def test_owned_nodes_are_not_reserved():
    """With a price of one's own, nodes are owned, and no term is named."""
    first = sentences(advised(node_price_per_hour=0.01), PRICES)[0]
    assert first.startswith("Own ")
    assert "years" not in first


def test_a_record_has_nothing_that_is_not_finite(advice):
    """JSON has no infinity: limits that there are none of are null."""
    told = json.loads(json_answer(record(advice, PRICES)))
    assert told["compared"][1]["waiting_seconds"] is None
