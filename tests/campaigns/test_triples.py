"""The 128 heuristic triples."""

from collections import Counter

from foresail.campaigns.plan import (
    clairvoyant_triples,
    heuristic_triples,
    is_clairvoyant,
)
from foresail.control.policy import parse_policy


def test_count():
    """128 different triples: (20 regressions + AVE2) x 3 x 2, and the requested time x 2."""
    parsed = [parse_policy(text) for text in heuristic_triples()]
    assert len({policy.text for policy in parsed}) == 128
    families = Counter(policy.predictor.entry.name for policy in parsed)
    assert families == {"regression": 120, "recent": 6, "requested": 2}
    corrections = Counter(policy.correction.entry.name for policy in parsed)
    assert corrections == {"requested": 44, "incremental": 42, "doubling": 42}
    assert Counter(policy.scheduler.text for policy in parsed) == {
        "easy": 64,
        "easy(order=shortest)": 64,
    }
    assert not any(map(is_clairvoyant, parsed))


def test_texts_are_canonical():
    """Every triple is written as the parser writes it, so that equal policies are equal texts."""
    for text in (*heuristic_triples(), *clairvoyant_triples()):
        assert parse_policy(text).text == text


def test_named_policies_are_among_them():
    """EASY, EASY-SJBF, EASY++ and the study's winner are triples."""
    triples = heuristic_triples()
    for name in ("easy", "easy-sjbf", "easy++", "e-learning"):
        assert parse_policy(name).text in triples


def test_readings_of_the_study():
    """AVE2 is cut to whole seconds and Incremental is absolute, everywhere."""
    triples = heuristic_triples()
    recent = [text for text in triples if "recent" in text]
    assert len(recent) == 6
    assert all("recent(whole_seconds=true)" in text for text in recent)
    incremental = [text for text in triples if "incremental" in text]
    assert len(incremental) == 42
    assert all("incremental(reading=absolute)" in text for text in incremental)


def test_clairvoyant_triples_are_clairvoyant():
    """The two bounds are told apart from the candidates."""
    assert len(clairvoyant_triples()) == 2
    assert all(is_clairvoyant(parse_policy(text)) for text in clairvoyant_triples())
