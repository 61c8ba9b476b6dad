"""All options together: each takes effect, or the scenario is refused with a sentence."""

from dataclasses import replace
from itertools import combinations, product

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.model.event import PREDICTSIM, STANDARD
from foresail.record.log_text import read_log
from foresail.scenario.engines import COMPILED_REPLAY, EVENT_ENGINE
from foresail.scenario.learned_before import HistoryWorkload
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from foresail.traces.folder import write_folder
from foresail.traces.schedule import read_schedule
from scenario.small_cluster import CYCLE_SECONDS, history, workload

compare = app_of("compare")
simulate = app_of("simulate")

WISHES = {
    "nodes": ("--on-nodes",),
    "conventions": ("--conventions", "predictsim"),
    "limits": ("--enforce-limits",),
    "events": ("--events", "{folder}/events.jsonl"),
    "cycle": ("--cycle", str(CYCLE_SECONDS)),
    "learn": ("--learn-from", "{folder}/history"),
}
NEED_EVENTS = {"nodes", "events", "cycle", "learn"}


def subsets(names):
    """Every choice of them."""
    return [
        frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)
    ]


def demand_effect(schedule, wishes, events):
    """Everything wished for can be seen in the schedule, and nothing else."""
    jobs, meta = schedule.jobs, schedule.meta
    assert jobs["start_seconds"].null_count() == 0
    conventions = PREDICTSIM if "conventions" in wishes else STANDARD
    assert meta.conventions == (conventions.in_cycles() if "cycle" in wishes else conventions).name
    slow_to_react = (jobs["start_seconds"] % CYCLE_SECONDS == 0).all()
    assert slow_to_react == ("cycle" in wishes)
    longest = (jobs["end_seconds"] - jobs["start_seconds"]).max()
    assert longest == (40.0 if "limits" in wishes else 50.0)
    assert ("limit" in jobs["ended_because"]) == ("limits" in wishes)
    assert jobs["predicted_seconds"][0] == (3.5 if "learn" in wishes else 20.0)
    if "nodes" not in wishes:
        assert set(jobs["placement"]) == {"all"}
    else:
        assert jobs["placement"].str.contains("n[1-4]").all()
    assert events.exists() == ("events" in wishes)
    if "events" in wishes:
        manifest = next(iter(read_log(events)))
        assert manifest.conventions.name == meta.conventions
        (partition,) = manifest.cluster.partitions
        assert len(partition.nodes) == (4 if "nodes" in wishes else 0)


@pytest.mark.parametrize("wishes", subsets(WISHES), ids=lambda wishes: "+".join(sorted(wishes)))
@pytest.mark.parametrize("policy", ["easy,recent", "prio,recent"])
def test_every_product_of_options(tmp_path, policy, wishes):
    """With either engine asked for, or none."""
    events = tmp_path / "events.jsonl"
    scenario = Scenario(
        workload(),
        parse_policy(policy),
        place="nodes" if "nodes" in wishes else "processors",
        conventions=PREDICTSIM if "conventions" in wishes else STANDARD,
        conditions=ClusterConditions(cycle_seconds=CYCLE_SECONDS if "cycle" in wishes else None),
        enforce_limits="limits" in wishes,
        event_log=events if "events" in wishes else None,
        learned_before=HistoryWorkload(history()) if "learn" in wishes else None,
    )
    compiled = policy.startswith("easy") and not wishes & NEED_EVENTS
    quickest = COMPILED_REPLAY if compiled else EVENT_ENGINE
    tables = []
    for engine in (None, EVENT_ENGINE.name, COMPILED_REPLAY.name):
        events.unlink(missing_ok=True)
        if engine == COMPILED_REPLAY.name and not compiled:
            with pytest.raises(InputError, match="this engine does not have"):
                run_scenario(replace(scenario, engine=engine))
            assert not events.exists()
            continue
        schedule = run_scenario(replace(scenario, engine=engine))
        demand_effect(schedule, wishes, events)
        assert schedule.meta.engine == (engine or quickest.name)
        tables.append(schedule.jobs)
    assert all(table.equals(tables[0]) for table in tables)


@pytest.fixture
def folder(tmp_path):
    """The workload and its history, for the command line."""
    write_folder(workload(), tmp_path / "small")
    write_folder(history(), tmp_path / "history")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "pair"), list(product(("simulate", "compare"), combinations(WISHES, 2)))
)
def test_all_pairs_on_the_command_line(folder, command, pair):
    """``simulate`` and ``compare`` take the same, and what they take has effect."""
    options = [each.format(folder=folder) for name in pair for each in WISHES[name]]
    options += ["--output", str(folder / "result"), "--filter", "drop_no_runtime"]
    app = simulate if command == "simulate" else compare
    policies = ("prio,recent",) if command == "simulate" else ("prio,recent", "easy,recent")
    asked = [part for policy in policies for part in ("--with", policy)]
    result = CliRunner().invoke(app, [str(folder / "small"), *asked, *options])
    assert result.exit_code == 0, result.output + str(result.exception)
    for number in range(1, len(policies) + 1):
        events = folder / ("events.jsonl" if len(policies) == 1 else f"events-{number}.jsonl")
        schedule = read_schedule(folder / "result" / f"schedule-{number}.parquet")
        demand_effect(schedule, set(pair), events)
    engines = {schedule.meta.engine}
    assert all(name in (folder / "result" / "report.html").read_text() for name in engines)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--outages", "100,10"), "only with --on-nodes"),
        (("--conditions-seed", "1"), "nothing to draw"),
        (("--on-nodes", "--engine", "compiled-replay"), "does not have places other than"),
        (("--cycle", "4", "--engine", "compiled-replay"), "scheduling in cycles"),
        (("--engine", "replay"), "compiled-replay"),
        (("--learn-from", "none"), "none"),
    ],
)
@pytest.mark.parametrize("app", [simulate, compare])
def test_what_cannot_be_is_said_before_the_log_is_read(tmp_path, app, options, words):
    """Each wish that nothing meets is refused with one sentence."""
    result = CliRunner().invoke(app, [str(tmp_path / "no-log"), "--with", "easy", *options])
    assert words in str(result.exception)
    assert "no-log" not in str(result.exception)
