"""Schedulers from outside that do not decide: refused with their name and what they did."""

from __future__ import annotations

import pytest

from foresail.control.policy import parse_policy
from foresail.model import registry
from foresail.model.errors import InputError
from foresail.model.registry import load_plugin
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate

PLUG_IN = '''\
from foresail.model.decision import Decision, Placement, Start
from foresail.model.protocols import Scheduler
from foresail.model.registry import register


class Bad(Scheduler):
    """Decides as it should not."""

    def __init__(self, how):
        self.how = how

    def decide(self, view):
        if self.how == "raises":
            return 1 / 0
        if self.how == "exits":
            raise SystemExit(0)
        if self.how == "nothing":
            return Decision()
        if self.how == "misplaces":
            place = Placement.whole("nowhere", 1)
            return Decision(starts=tuple(Start(each.job.job_id, place) for each in view.pending))
        if self.how == "odd":
            return Decision(starts=tuple(each.job.job_id for each in view.pending))
        if self.how == "ticks":
            return Decision(ticks=("soon",))
        return None


for how in ("raises", "exits", "none", "nothing", "misplaces", "odd", "ticks"):

    def make(_, how=how):
        return Bad(how)

    make.__doc__ = "Decides as it should not."
    register("scheduler", f"bad-{how}")(make)
'''


@pytest.fixture
def plug_in(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(PLUG_IN)
    load_plugin(path)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", r"bad.py, line 14: the scheduler fails: ZeroDivisionError"),
        ("exits", r"bad.py, line 16: the scheduler fails: SystemExit"),
        ("none", r"scheduler Bad of bad.py decides nothing that can be read.*a Decision"),
        ("nothing", r"scheduler Bad of bad.py started none of 2 jobs; expected"),
        (
            "misplaces",
            r"Bad of bad.py started none of 2 jobs; .* job 'a': .*partition 'nowhere'",
        ),
        ("ticks", r"scheduler Bad of bad.py decides nothing that can be read.*'soon'"),
        ("odd", r"bad.py, line \d+: Bad returns what cannot be used: AttributeError"),
    ],
)
def test_a_plug_in_that_does_not_decide_is_named(plug_in, how, words):
    """The sentence names the scheduler, its file, and what it did."""
    jobs = jobs_table(
        {
            "job_id": ["a", "b"],
            "submit_seconds": [0.0, 5.0],
            "runtime_seconds": [10.0, 10.0],
            "requested_seconds": [10.0, 10.0],
            "tasks": [1, 1],
        }
    )
    with pytest.raises(InputError, match=words):
        simulate(
            Workload(jobs, WorkloadMeta("made", "made", 4)), parse_policy(f"bad-{how},requested")
        )


def test_a_plug_in_that_takes_no_parameters_is_refused(tmp_path):
    """When its file is loaded, with what would be taken."""
    path = tmp_path / "bare.py"
    path.write_text(
        "from foresail.model.registry import register\n\n"
        '@register("scheduler", "bare")\nclass Bare:\n    """Has no constructor."""\n'
    )
    with pytest.raises(InputError, match=r"bare.py.*scheduler 'bare'.*one argument, the record"):
        load_plugin(path)


SCHEDULER = """
from foresail.model.protocols import Scheduler
from foresail.model.registry import register

{before}@register("scheduler", "{name}"{parameters})
class Mine(Scheduler):
    \"\"\"Starts nothing.\"\"\"

    def __init__(self, parameters):
        super().__init__()
"""


@pytest.mark.parametrize(
    ("name", "parameters", "before", "words"),
    [
        ("easy", "", "", "scheduler 'easy' (is )?already"),
        ("mine-1", ", parameters=P", "class P:\n    x: int = 1\n\n", "cannot be made of its param"),
        ("mine-2", ", parameters=3", "", "cannot be made of its parameters"),
        (
            "mine-3",
            ", parameters=P",
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: 'Unknown' = 1\n\n",
            "cannot be made of its parameters: name 'Unknown' is not defined",
        ),
    ],
)
def test_a_name_that_is_taken_and_parameters_that_are_none_are_refused(
    tmp_path, name, parameters, before, words
):
    """When the file is loaded; what was there stays."""
    path = tmp_path / f"{name.replace('-', '_')}_file.py"
    path.write_text(SCHEDULER.format(name=name, parameters=parameters, before=before))
    with pytest.raises(InputError, match=words):
        load_plugin(path)
    assert parse_policy("easy,requested").build()[0].backfills


def test_files_of_the_same_name_do_not_replace_each_other(tmp_path):
    """Two files register one name: the second is refused, whatever it is called."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        text = SCHEDULER.format(name="of-two-files", parameters="", before="")
        (tmp_path / folder / "same_stem.py").write_text(text)
    load_plugin(tmp_path / "a" / "same_stem.py")
    other = tmp_path / "same_stem.py"
    other.write_text(SCHEDULER.format(name="of-another-file", parameters="", before=""))
    load_plugin(other)
    load_plugin(tmp_path / "a" / "same_stem.py")  # the same file again replaces nobody's
    with pytest.raises(InputError, match="'of-two-files' is already registered"):
        load_plugin(tmp_path / "b" / "same_stem.py")


def test_a_scheduler_without_its_method_is_named(tmp_path):
    """With its file and line, as a predictor is."""
    path = tmp_path / "lacking.py"
    path.write_text(SCHEDULER.format(name="lacking", parameters="", before=""))
    load_plugin(path)
    jobs = jobs_table(
        {"job_id": ["a"], "submit_seconds": [0.0], "runtime_seconds": [10.0], "tasks": [1]}
    )
    workload = Workload(jobs, WorkloadMeta("made", "made", 4))
    with pytest.raises(InputError, match=r"lacking.py, line 5: Mine lacks the method decide"):
        simulate(workload, parse_policy("lacking,requested"))


CORRECTION = """
from foresail.model.registry import register


@register("correction", "by_nothing")
class ByNothing:
    \"\"\"Goes on by less than a clock can tell.\"\"\"

    def __init__(self, _):
        pass

    def correct(self, job, prediction, initial, current, count):
        return ESTIMATE
"""


@pytest.mark.parametrize(
    ("name", "estimate", "said"),
    [
        ("by_nothing", "current * (1 + 1e-15) + 1e-13", "fewer than 100,000 correc"),
        ("negative", "-current", "expects no usable time of job a"),
    ],
)
def test_a_correction_that_gets_nowhere_is_named(tmp_path, name, estimate, said):
    """It was asked for ever, or not heard."""
    path = tmp_path / f"{name}.py"
    path.write_text(CORRECTION.replace("by_nothing", name).replace("ESTIMATE", estimate))
    load_plugin(path)
    jobs = jobs_table(
        {
            "job_id": ["a", "b"],
            "submit_seconds": [0.0, 1e6],
            "runtime_seconds": [9e6, 10.0],
            "requested_seconds": [1e4, 1e7],
            "tasks": [1, 1],
        }
    )
    workload = Workload(jobs, WorkloadMeta("made", "made", 4))
    with pytest.raises(InputError, match=rf"ByNothing of {name}.py.*{said}"):
        simulate(workload, parse_policy(f"easy,requested,{name}"))


@pytest.mark.parametrize("name", ["easy++", "foresail", "guarded", "dist", "las", "a,b", ""])
def test_a_name_by_which_something_else_is_meant_is_refused(name, tmp_path, monkeypatch):
    """Of a policy, here or of the studies, of a scheduler of tasks, or for short: with its line."""
    monkeypatch.setattr(registry, "_ENTRIES", {**registry._ENTRIES})
    monkeypatch.setattr(registry, "_PLUGINS", {})
    path = tmp_path / "taken.py"
    path.write_text(PLUG_IN.replace('f"bad-{how}"', repr(name)).replace('"none", ', ""))
    said = r"taken\.py, line \d+: .*(there is a \w+ '.*' already|is no name)"

    def typed():
        load_plugin(path)
        parse_policy(name)

    with pytest.raises(InputError, match=said):
        typed()
