"""Jobs of a workload that wait for others: what is kept, and what is odd about them."""

import pytest

from foresail.model.errors import InputError
from foresail.traces.plausibility import clean_and_check
from foresail.traces.validation import validate
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def workload(**after):
    """Jobs by name, each with the jobs that it waits for."""
    table = jobs_table(
        {
            "job_id": list(after),
            "submit_seconds": [0.0] * len(after),
            "runtime_seconds": [1.0] * len(after),
            "requested_seconds": [1.0] * len(after),
            "tasks": [1] * len(after),
            "after_jobs": list(after.values()),
        }
    )
    return Workload(table, WorkloadMeta("made", "", processors=1))


def findings(made):
    """Findings about dependencies: name, count, the example."""
    return [
        (each.name, each.count, each.example)
        for each in validate(made).findings
        if each.name.endswith("_dependency")
    ]


def test_jobs_wait_for_those_that_they_name():
    """Several names are separated by commas."""
    made = workload(a=None, b="a", c="a,b")
    assert made.has_dependencies
    assert [each.after for each in made.specifications()] == [(), ("a",), ("a", "b")]
    assert findings(made) == []


def test_a_workload_without_dependencies_has_none():
    """Nothing to look at, and nothing found."""
    made = workload(a=None, b=None)
    assert not made.has_dependencies
    assert findings(made) == []


def test_a_job_that_is_not_there_is_not_waited_for():
    """It is counted, and said."""
    made = workload(a="gone,b", b=None, c="gone")
    assert [each.after for each in made.specifications()] == [("b",), (), ()]
    assert findings(made) == [("unknown_dependency", 2, "job a, after_jobs = gone")]


def test_a_circle_is_found():
    """Jobs that wait for each other never start: one circle is shown."""
    ((name, count, example),) = findings(workload(a="c", b="a", c="b", d="a"))
    assert (name, count) == ("circular_dependency", 3)
    assert example.count("<") == 3


def test_what_simulations_say_of_dependencies():
    """It is odd, not only wrong in form: a replay says it, and a strict one refuses it."""
    made = workload(a="gone", b="c", c="b")
    found = clean_and_check(made, ()).findings
    assert {each.name for each in found if each.severity == "odd"} >= {
        "unknown_dependency",
        "circular_dependency",
    }
    with pytest.raises(InputError, match="waits for"):
        clean_and_check(made, (), strict=True)
