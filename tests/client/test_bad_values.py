"""Bad values of every option and of every field: refused with what was expected, in our words."""

from __future__ import annotations

import json
import re
import time

import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from foresail.client.job_options import OPTIONS, asked_by_script, asked_jobs
from foresail.live.jobs_file import InvalidJobs
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.service.api.problems import _refusal
from foresail.service.api.submissions import JobChecks, JobRequest, JobsRequest
from foresail.service.parts import ClusterLimits, KnownDirectories

OF_A_LIBRARY = re.compile(
    r"Input should|should (have|match|be)|alidation error|Error\b|Value error|out of range|"
    r"too large|invalid literal|could not convert|Invalid isoformat|No closing|not permitted",
)
NAMES = sorted(name for each in OPTIONS if each.form for name in each.names.split())
BAD = ["0", "-1", "1.5", "x", "", " ", "1e9", "9" * 40, "٣", "a/b", "1-3%0", "%q", "=", ",", "\x1b"]
BAD += [
    "now+999999999weeks",
    "9999-12-31T23:59",
    "0000-00-00",
    "99:99",
    "1?2",
    ":",
    "afterok",
    "1:",
]
BAD += ["0M", "-5G", "x" * 100_001, "afterok:1+5", "gpu:", "gpu:a:1", "1:2:3:4", "999999-0"]
VALUES = st.sampled_from(BAD) | st.text(max_size=12) | st.text("0123456789-:,%.+ GMxn", max_size=9)


def nobody(_):
    raise LookupError


CHECKS = JobChecks("ann", ClusterLimits(Cluster.of_processors(4)), KnownDirectories())


def answer_to(content):
    """Answer of the service to a call of this content; None if it takes it."""
    try:
        asked = TypeAdapter(JobsRequest).validate_json(content)
        CHECKS.submission(asked.jobs, nobody)
    except ValidationError as error:
        errors = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        return _refusal(RequestValidationError(errors))
    except (InputError, InvalidJobs) as error:
        return _refusal(error)
    return None


def require_our_words(said):
    assert not OF_A_LIBRARY.search(said), said


@pytest.mark.parametrize("name", NAMES)
@given(value=VALUES)
def test_any_value_of_an_option_is_taken_or_refused_in_our_words(name, value):
    """On the command line and on a line of a script, by the client and by the service."""
    for words in ([name, value, "--wrap", "true"], None):
        try:
            if words is None:
                asked_by_script(f"#!/bin/sh\n#SBATCH {name} {value}\n", "h.sh")
                continue
            jobs = asked_jobs(words, time.time()).jobs
        except InputError as error:
            require_our_words(str(error).replace(repr(error.value), ""))
            continue
        refused = answer_to(json.dumps({"jobs": jobs}))
        if refused is not None:
            require_our_words(refused.detail.replace(repr(refused.value), ""))
            assert refused.field


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | VALUES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(VALUES, inner, max_size=2),
    max_leaves=3,
)


@pytest.mark.parametrize("field", [*JobRequest.model_fields, "cpu"])
@given(value=ANYTHING)
@example(value=10**30)
@example(value=0)
@example(value={"1A": "SECRET"})
@example(value={"A": ["SECRET"]})
def test_any_value_of_a_field_is_taken_or_refused_in_our_words(field, value):
    """The interface refuses them by type too; what variables hold is not repeated."""
    content = json.dumps({"jobs": [{"command": "true", field: value}]}, allow_nan=True)
    try:
        content.encode()
    except UnicodeEncodeError:
        return
    refused = answer_to(content)
    if refused is not None:
        require_our_words(refused.detail.replace(repr(refused.value), ""))
        assert field != "environment" or "SECRET" not in f"{refused.detail} {refused.value}"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-c", "0"], "field '-c': not usable (found '0'); expected a whole number, at least 1"),
        (["--days", "0"], "field '--days': no such option here; expected one that"),
        (["--gpus", "1.5"], "field '--gpus': not usable (found '1.5'); expected gpu:N"),
        (["--mem", "0"], "field '--mem': not usable (found '0'); expected megabytes"),
        (["--mem", "0"], "0, all of a node, is not supported"),
        (["-d", "1?2"], "field '-d': not usable (found '1?2'); expected ? is not supported"),
        (["--key", "a\nb"], r"field '--key': not usable (found 'a\nb'); expected at most 200"),
        (["--key", "x" * 201], "expected at most 200 letters, digits and signs of ASCII"),
        (["--env", "1A=2"], "field '--env': not usable (found '1A=2'); expected NAME=value"),
    ],
)
def test_option_value_and_what_was_expected_are_said(options, says):
    with pytest.raises(InputError, match=re.escape(says)):
        asked_jobs([*options, "--wrap", "true"], time.time())


def test_names_are_taken_as_sbatch_takes_them():
    """With spaces and signs; by the service too."""
    (job,) = asked_jobs(["-J", " my =job: 1,2 ü", "--wrap", "true"], time.time()).jobs
    assert job["name"] == " my =job: 1,2 ü"
    assert answer_to(json.dumps({"jobs": [job]})) is None
