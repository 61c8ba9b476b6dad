"""The shipped suites, run over everything that is registered."""

from __future__ import annotations

import pytest

from checks.read_files import examples_of
from foresail.checks.predictors import check_correction, check_predictor
from foresail.checks.readers import check_reader
from foresail.checks.schedulers import check_scheduler
from foresail.model.registry import entries


@pytest.mark.parametrize("entry", list(entries("scheduler")), ids=lambda entry: entry.name)
def test_scheduler_conforms(entry):
    """Every registered scheduler keeps every rule."""
    check_scheduler(entry)


@pytest.mark.parametrize("entry", list(entries("predictor")), ids=lambda entry: entry.name)
def test_predictor_conforms(entry):
    """Every registered predictor keeps every rule."""
    check_predictor(entry)


@pytest.mark.parametrize("entry", list(entries("correction")), ids=lambda entry: entry.name)
def test_correction_conforms(entry):
    """Every registered correction keeps every rule."""
    check_correction(entry)


@pytest.mark.parametrize("entry", list(entries("reader")), ids=lambda entry: entry.name)
def test_reader_conforms(entry):
    """Every registered reader keeps every rule, those about good logs where there is an example."""
    check_reader(entry, text_example(entry))


def text_example(entry):
    """The text of the first example that is a text alone; of the others there are folders."""
    alone = [each.files[each.given] for each in examples_of(entry) if [*each.files] == [each.given]]
    texts = [content.decode() for content in alone if not content.startswith(b"PAR1")]
    return texts[0] if texts else None


@pytest.mark.parametrize(
    ("family", "least"), [("scheduler", 7), ("predictor", 5), ("correction", 4), ("reader", 7)]
)
def test_the_families_are_found(family, least):
    """The tests above are not empty: discovery finds what the package has."""
    assert len(list(entries(family))) >= least
