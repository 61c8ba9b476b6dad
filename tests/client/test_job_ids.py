"""Ids of jobs as people type them."""

import pytest

from foresail.client.connection import job_ids
from foresail.model.errors import InputError


def test_an_array_is_named_as_a_whole_or_by_members():
    words = ["18,17_3", "18_[1-3,7]", "18_[2-6:2]"]
    assert job_ids(words) == ["18", "17_3", "18_1", "18_2", "18_3", "18_7", "18_4", "18_6"]


@pytest.mark.parametrize("word", ["18_[5-2]", "18_[1,5-2]", "18_[]", "x", "18_[1-99999]", "18_"])
def test_what_names_no_job_is_refused(word):
    """A range that is empty selected none, and nothing was done without a word."""
    with pytest.raises(InputError, match="no id of a job"):
        job_ids([word])
