"""The plan of a moment as people get it: words, picture, table; with real and with odd data."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from foresail.distributions.basic import Point
from foresail.explain.chances import (
    PlannedSlowdowns,
    chance_of_running,
    chance_of_start,
    still_running,
)
from foresail.explain.run_snapshot import ReasonShare, snapshot_of, waits_by_reason
from foresail.model.cluster import Cluster
from foresail.model.decision import AlikeReasons, Placement, ReasonCode, Start
from foresail.model.event import Submitted
from foresail.model.preference import Preference, PreferenceKind
from foresail.record.records import (
    Decided,
    EventTaken,
    Instructed,
    Manifest,
    Predicted,
    ReasonsChanged,
)
from foresail.reports import figure as images
from foresail.reports.figure import Figure, MissingFigure, write_images
from foresail.reports.plan.page import PlanPart, plan_page, waiting_by_reason, write_plan
from foresail.reports.plan.view import Lanes, chance_words, in_words, plan_view, solver_words
from made_moments import NOW, SOLVED, ended, huge, job, moment, racks, runs, waits
from reading_pages import drawn_values


@pytest.fixture(scope="module")
def busy():
    """Eight nodes: two jobs run, one has ended, two wait, a node is down."""
    late = runs("late", ["rack1-1", "rack1-2"], NOW - 300.0, 600.0, deadline=NOW + 100.0)
    easy = runs("easy", ["rack2-1"], NOW - 30.0, 60.0, deadline=NOW + 900.0)
    return moment(
        racks(2, 4),
        running=[late, easy],
        past=[ended(runs("gone", ["rack1-3"], NOW - 500.0, 60.0), NOW - 200.0)],
        waiting=[
            waits("next", 3, NOW + 120.0, deadline=NOW + 1000.0),
            waits("<b>lost</b>", 30, None, deadline=NOW + 10.0),
        ],
        down={"rack2-3": NOW - 100.0},
        solved=SOLVED,
    )


ODD = {
    "nothing": moment(racks(2, 4)),
    "idle with somebody waiting": moment(racks(1, 1), waiting=[waits("a", 1)]),
    "one job": moment(racks(1, 1), running=[runs("a", ["rack1-1"], NOW, 5.0)]),
    "one huge job": moment(
        racks(4, 500),
        running=[
            runs("a", [f"rack{r}-{n}" for r in range(1, 5) for n in range(1, 501)], NOW - 9e5, 9e6)
        ],
    ),
    "a pool of processors": moment(Cluster.of_processors(100_000), policy="easy"),
    "an unknown policy": moment(racks(1, 1), policy="somebody's own"),
    "no cluster": moment(Cluster(())),
    "ten thousand nodes": huge(),
    "the very start": moment(racks(1, 2), now=0.0, waiting=[waits("a", 1, 60.0)]),
    "never": moment(racks(1, 2), waiting=[waits("a", 1, float("inf"))]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_moments_are_drawn_and_told(name):
    """A page with words, few marks, numbers that JSON can hold, and a table of what is drawn."""
    part = PlanPart.from_snapshot(ODD[name])
    marks = sum(len(t["x"]) for t in part.figure.traces if isinstance(t.get("x"), list))
    assert marks <= 10_000
    assert all(finding.endswith(".") for finding in part.figure.findings)
    assert part.figure.findings
    json.dumps([part.figure.traces, part.figure.layout], allow_nan=False)
    assert not re.search(r'"#[0-9a-f]{6}"', json.dumps(part.figure.layout))
    page = plan_page(part, name)
    assert len(page) < 6e6
    assert part.tables["waiting"].height == len(ODD[name].waiting)
    drawn = len(part.view.running) + len(part.view.planned) + len(part.view.past)
    assert part.tables["plan"].height == drawn


def test_words_say_what_the_picture_shows(busy):
    """Who runs, waits and is late; each with the number behind it, and as text alternative."""
    part = PlanPart.from_snapshot(busy)
    assert part.figure.findings == [
        "2 jobs run on 3 of 8 cpus; half of that should be free in 3 min.",
        "2 jobs wait; 1 of them planned, job next first, in 2 min.",
        "Of 3 jobs with a deadline that run or are planned, 1 is likelier to miss it than not: "
        "late.",
        "Node rack2-3 is down.",
    ]
    page = plan_page(part, "a run", "foresail explain run").replace("\u00a0", " ")
    assert "aria-labelledby='plan-finding'" in page
    assert "<ul class='finding' id='plan-finding'>" in page
    assert "Made by <code>foresail explain run</code>" in page
    table = page[page.index("id='waiting-table'") : page.index("id='solver'")]
    assert "&lt;b&gt;lost" in table
    assert "<b>lost" not in page
    assert re.findall(r"<th scope='row'>([^<]*)<", table) == ["next", "&lt;b&gt;lost&lt;/b&gt;"]
    assert "needs 30 cpus and 0 are free" in table
    assert "not planned" in table
    assert "at most" in table
    assert "worth 1,234" in page
    assert "gap 1.2 %" in page
    assert "85 columns" in page


def test_nobody_waiting_is_a_designed_state():
    """It says so, and what to do."""
    page = plan_page(PlanPart.from_snapshot(ODD["nothing"]), "a run")
    assert "No job waits at this moment." in page
    assert "--at" in page


def test_files(busy, tmp_path):
    """A page and two tables whose numbers count from the start of the run."""
    write_plan(PlanPart.from_snapshot(busy), tmp_path / "new", "a run")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "plan.html",
        "plan.csv",
        "waiting.csv",
    }
    bars = pl.read_csv(tmp_path / "new" / "plan.csv")
    assert bars["state"].to_list() == ["ended", "running", "running", "planned"]
    late = bars.row(1, named=True)
    assert late["start_seconds"] == NOW - 300.0
    assert late["end_low_seconds"] < late["end_likely_seconds"] < late["end_high_seconds"]
    assert late["chance_of_deadline"] < 0.5


def test_risk_is_told_apart_without_colour(busy):
    """A deadline that will rather be missed has a cross and a thick tick of its own."""
    traces = {
        trace["name"]: trace for trace in reversed(PlanPart.from_snapshot(busy).figure.traces)
    }
    assert len(traces["crosses"]["x"]) == 1
    assert traces["crosses"]["x"][0] == pytest.approx(100.0 / 60.0, abs=1e-3)
    assert traces["deadline-risk"]["line"]["width"] > traces["deadline"]["line"]["width"]
    named = [
        trace["name"]
        for trace in PlanPart.from_snapshot(busy).figure.traces
        if trace.get("showlegend")
    ]
    assert "deadline, chance below a half" in named


def test_bars_fade_as_their_belief_does(busy):
    """The drawn probability is the survival given the time already run, 1 up to now."""
    view = plan_view(busy, 200)
    late = busy.running[0]
    middles = (view.times[:-1] + view.times[1:]) / 2
    drawn = view.still_running[0]
    assert (drawn[(middles <= NOW) & (middles > NOW - 250)] == 1.0).all()
    later = middles > NOW
    given = late.prediction.given(300.0).survival(middles[later] - late.start_seconds)
    assert drawn[later] == pytest.approx(given, abs=1e-9)
    assert (np.diff(drawn[later]) <= 1e-12).all()


def test_a_job_that_has_outlived_its_belief_runs_to_its_corrected_end():
    """As schedulers assume; then it is thought to be gone."""
    old = runs("old", ["rack1-1"], NOW - 5000.0, 100.0, deadline=NOW + 50.0)
    times = np.array([NOW - 10.0, NOW + 5.0, NOW + 30.0])
    for end, expected in ((NOW + 20.0, [1, 1, 0]), (NOW - 20.0, [1, 0, 0])):
        corrected = type(old)(
            old.job, old.start_seconds, 0, old.placement, old.prediction, end, corrections=3
        )
        assert still_running(corrected, times, NOW).tolist() == expected
        assert chance_of_running(corrected, NOW) == 1.0


def test_chances_follow_the_belief():
    """Half of the runtimes fit, all do, none does; without a deadline there is no chance."""
    spread = runs("a", ["rack1-1"], NOW, 100.0).prediction
    assert chance_of_start(job("a", 1, NOW + 100.0), spread, NOW) == pytest.approx(0.5)
    assert chance_of_start(job("a", 1, NOW + 100.0), spread, NOW, 2.0) == pytest.approx(0.1)
    assert chance_of_start(job("a", 1, NOW + 100.0), Point(100.0), NOW) == 1.0
    assert chance_of_start(job("a", 1, NOW - 1.0), spread, NOW) == 0.0
    assert chance_of_start(job("a", 1, NOW + 1.0), spread, float("inf")) == 0.0
    assert chance_of_start(job("a", 1), spread, NOW) is None


@pytest.mark.parametrize(
    ("kind", "names", "where", "slowdown"),
    [
        (PreferenceKind.PARTITION, ("rack1",), Placement.whole("rack1", 2), 1.0),
        (PreferenceKind.PARTITION, ("rack2",), Placement.whole("rack1", 2), 3.0),
        (PreferenceKind.ATTRIBUTE, ("rack",), Placement.whole("rack1", 2), 1.0),
        (PreferenceKind.ATTRIBUTE, ("gpu",), Placement.whole("rack1", 2), 3.0),
        (PreferenceKind.SAME, ("rack",), Placement((("rack1", 1), ("rack2", 1))), 3.0),
        (PreferenceKind.SPREAD, ("rack",), Placement((("rack1", 1), ("rack2", 1))), 1.0),
        (PreferenceKind.SAME, ("rack",), Placement.whole("rack1", 2), 1.0),
    ],
)
def test_slowdowns_of_placements(kind, names, where, slowdown):
    """Of partitions it is known only what all of their nodes have in common."""
    made = job("a", 2)
    made = type(made)(made.job_id, 0.0, made.stages, preference=Preference(kind, names, 3.0))
    assert PlannedSlowdowns(racks(2, 2)).factor(made, where) == slowdown
    assert PlannedSlowdowns(Cluster.of_processors(4)).factor(made, Placement.whole("all", 2)) == 1.0


def test_lanes_are_never_shared_while_taken():
    """Attempts lie on lanes of their own nodes, each on others than those that still run."""
    lanes = Lanes(racks(2, 2, 4.0))
    taken = [
        lanes.take(job("a", 3), Placement((("rack2", 3),), (("rack2-1", 3),)), 0.0, 100.0),
        lanes.take(job("b", 1), Placement((("rack2", 1),), (("rack2-1", 1),)), 10.0, 100.0),
        lanes.take(job("c", 4), Placement((("rack2", 4),), (("rack2-2", 4),)), 10.0, 20.0),
        lanes.take(job("d", 2), Placement((("rack2", 2),), (("rack2-2", 2),)), 20.0, 30.0),
    ]
    assert taken == [((8, 11),), ((11, 12),), ((12, 16),), ((12, 14),)]


def test_planned_jobs_lie_where_room_is_likeliest():
    """In the partition they are planned for, on lanes that are likely to be free by then."""
    lanes = Lanes(racks(2, 4))
    lanes.hold(((0, 2),), NOW + 300.0)
    wanted = Placement.whole("rack1", 2)
    assert lanes.foresee(job("a", 2), wanted, NOW + 60.0, NOW + 99.0) == ((2, 4),)
    assert lanes.foresee(job("b", 2), wanted, NOW + 60.0, NOW + 99.0) == ((4, 6),)  # no room there
    assert lanes.foresee(job("c", 3), wanted, NOW + 60.0, NOW + 99.0) == ((0, 1), (2, 4))


def test_too_many_jobs_are_shaded_by_how_much_is_expected_to_be_in_use():
    """Of ten thousand nodes several cpus share a row; its shade accounts for all of them."""
    part = PlanPart.from_snapshot(ODD["ten thousand nodes"])
    view = part.view
    shade = next(trace for trace in part.figure.traces if trace["type"] == "heatmap")
    cells = np.abs(drawn_values(shade["z"]).astype(float) - 100.0) / 100.0
    now = np.searchsorted(view.times, NOW) + 1
    expected = np.array([bar.job.cpus for bar in view.running]) @ view.still_running[:, now]
    assert cells[:, now].sum() * shade["dy"] == pytest.approx(expected, rel=0.03)
    assert len(part.figure.layout["yaxis"]["ticktext"]) <= 24


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (in_words(-5.0), "now"),
        (in_words(600.0), "in 10 min"),
        (in_words(float("inf")), "at no known time"),
        (chance_words(None, True), "no deadline"),
        (chance_words(0.254, True), "25 %"),
        (chance_words(0.5, False), "at most 50 %"),
        (solver_words(None)[:9], "Not known"),
        (
            solver_words(replace(SOLVED, left_out=3)).removeprefix(solver_words(SOLVED)),
            " It left out 3 waiting jobs: plan and bound are about the others.",
        ),
    ],
)
def test_words(said, expected):
    """Times, chances and what is not known."""
    assert said == expected


def test_waiting_time_by_reason():
    """Each second counts for the last reason given; before the first pass there is none."""
    made = job("1", 4)
    records = [
        Manifest("toy", Cluster.of_processors(4)),
        _event(Submitted, 0.0, made),
        Predicted(0, 0.0, "1", 60.0, 60.0, 60.0, 60.0, 60.0),
        _reason(0.0, ReasonCode.NOT_CHOSEN),
        _pass(2.0),
        _pass(10.0),
        _reason(10.0, ReasonCode.RESERVED),
        Instructed(3, 40.0, Start("1", Placement.whole("all", 4))),
        _event(Submitted, 50.0, job("2", 1)),
        Predicted(4, 50.0, "2", 60.0, 60.0, 60.0, 60.0, 60.0),
        _pass(60.0),
    ]
    assert waits_by_reason(records) == (
        ReasonShare(ReasonCode.RESERVED, 30.0, 1),
        ReasonShare(None, 10.0 + 2.0, 2),
        ReasonShare(ReasonCode.NOT_CHOSEN, 8.0, 1),
    )


def _event(kind, time, made):
    return EventTaken(0, time, kind(time, made))


def _reason(time, code):
    numbers = {"ahead": 0.0, "cpus": 4.0, "start": 9.0}
    return ReasonsChanged(0, time, AlikeReasons(code, ("1",), numbers))


def _pass(time):
    return Decided(0, time, 1, 0, 4.0, (), (), {})


def test_waiting_time_is_a_table_of_bars():
    """The longest reason first, in words; nobody waiting says so."""
    figure = waiting_by_reason(
        (ReasonShare(ReasonCode.NO_ROOM, 90.0, 3), ReasonShare(None, 10.0, 4))
    )
    assert isinstance(figure, Figure)
    assert figure.findings == [
        "Jobs waited for 100 s in all, 90 % of it with the reason “not enough is free”."
    ]
    assert figure.table["share"].to_list() == [0.9, 0.1]
    assert isinstance(waiting_by_reason(()), MissingFigure)


@pytest.mark.skipif(images.browser() is None, reason="no browser to draw with")
def test_the_picture_is_drawn_as_png(busy, tmp_path):
    """A real browser draws it, 2000 pixels wide."""
    pytest.importorskip("kaleido")
    (path,) = write_images([PlanPart.from_snapshot(busy).figure], tmp_path)
    assert path.name == "plan.png"
    header = path.read_bytes()[:24]
    assert int.from_bytes(header[16:20], "big") == 2000


def test_a_moment_of_nothing_but_a_manifest():
    """Nothing runs, nothing waits, all is idle."""
    made = snapshot_of([Manifest("toy", Cluster.of_processors(4))], 0.0)
    assert (made.running, made.waiting, made.idle_cpus) == ((), (), 4.0)


def test_names_do_not_hide_each_other():
    """Of bars over one another the largest is named; a name that has no room is left out."""
    crowd = [waits(f"job-{number}", 8, NOW + 300.0, mean=900.0) for number in range(6)]
    figure = PlanPart.from_snapshot(
        moment(racks(1, 8), waiting=[*crowd, waits("x" * 90, 8, NOW)])
    ).figure
    labels = next(trace for trace in figure.traces if trace["name"] == "labels")
    assert len(labels["text"]) == 1
    assert labels["text"][0].startswith(" job-")
