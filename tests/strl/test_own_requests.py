"""A job's own STRL: which options it is read as, and the words for what cannot be one."""

import pytest

from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.preference import OptionPart, PlacementOption
from foresail.strl.own_requests import RequestPlaces, own_options
from planning_problems import racks

PLACES = RequestPlaces.on(racks(2, 2, gpu=(1,)))
GPU = ("n11", "n12")
ALL = (*GPU, "n21", "n22")


def option(nodes, tasks, slowdown, *starts):
    """An option of one set of nodes."""
    return PlacementOption((OptionPart(nodes, tasks),), slowdown, starts)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("nCk(gpu, 2, 0, 10, 4)", [option(GPU, 2, 1.0, (0.0, 4.0))]),
        (
            "max(nCk(rack.r1, 2, 0, 10, 4), nCk(all, 2, 0, 20, 1), nCk(all, 2, 1min, 20, 3))",
            [option(GPU, 2, 1.0, (0.0, 4.0)), option(ALL, 2, 2.0, (0.0, 1.0), (60.0, 3.0))],
        ),
        ("mine = {n11, n21}\nnCk(mine, 2, 5, 10, 4)", [option(("n11", "n21"), 2, 1.0, (5.0, 4.0))]),
        ("scale(nCk(r2, 2, 0, 10, 4), 0.5)", [option(ALL[2:], 2, 1.0, (0.0, 2.0))]),
        ("LnCk(all, 4, 0, 10, 4)", [option(ALL, 2, 1.0, (0.0, 2.0))]),
        (
            "barrier(max(nCk(gpu, 2, 0, 10, 4), nCk(all, 2, 0, 10, 2)), 3)",
            [option(GPU, 2, 1.0, (0.0, 3.0)), option(ALL, 2, 1.0, (0.0, 0.0))],
        ),
        (
            "min(nCk(r1, 1, 0, 10, 4), nCk(r2, 1, 0, 10, 2))",
            [PlacementOption((OptionPart(GPU, 1), OptionPart(ALL[2:], 1)), 1.0, ((0.0, 2.0),))],
        ),
        (
            "sum(LnCk(r1, 1, 0, 10, 3), LnCk(r2, 9, 0, 10, 27))",
            [PlacementOption((OptionPart(GPU, 1), OptionPart(ALL[2:], 2)), 1.0, ((0.0, 6.0),))],
        ),
        (
            "barrier(sum(LnCk(r1, 1, 5, 10, 1), LnCk(r2, 1, 5, 10, 1)), 2)",
            [PlacementOption((OptionPart(GPU, 1), OptionPart(ALL[2:], 1)), 1.0, ((5.0, 2.0),))],
        ),
    ],
)
def test_requests_become_options(text, options):
    """Every construct that is a choice of where and when all tasks start."""
    assert own_options(text, 2, PLACES) == tuple(options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nCk(gpu, 2, 0, 10)", "nCk is incomplete (line 1, column 18 of the request)"),
        ("nCk(gpus, 2, 0, 10, 1)", "an unknown name (line 1, column 5 of the request)"),
        ("nCk({n11, m7}, 2, 0, 10, 1)", "there are no such nodes (found 'm7'); expected nodes of"),
        ("nCk(gpu, 3, 0, 10, 1)", "start together (found 'k=3'); expected k=2, its tasks"),
        ("LnCk(gpu, 1, 0, 10, 1)", "start together (found 'k=1'); expected k=2, its tasks"),
        ("sum(nCk(r1, 1, 0, 9, 1), nCk(r2, 1, 0, 9, 1))", "a sum is worth something without all"),
        (
            "sum(LnCk(r1, 1, 0, 9, 1), LnCk(r2, 1, 0, 9, 2))",
            "a task is worth more in one part of a sum than in another",
        ),
        (
            "sum(LnCk(r1, 1, 0, 9, 1), LnCk(r2, 1, 5, 9, 1))",
            "all tasks of a job start together and run equally long",
        ),
        (
            "min(sum(LnCk(r1, 1, 0, 9, 1), LnCk(r2, 1, 0, 9, 1)), nCk(r1, 1, 0, 9, 1))",
            "a sum says all about where the tasks of a job are",
        ),
        (
            "min(nCk(r1, 1, 0, 9, 1), nCk(r2, 1, 5, 9, 1))",
            "all tasks of a job start together and run equally long",
        ),
        ("max(nCk(r1, 2, 0, 9, 1), nCk(r1, 2, 0, 8, 1))", "two durations on the same nodes"),
        ("nCk(gpu, 2, 0, 10, 0)", "it can never be worth anything"),
        ("nCk(gpu, 2, -5, 10, 1)", "a start before the submission (found -5.0)"),
        ("slot 5s\nnCk(gpu, 2, 0, 10, 1)", "what there is is known (line 1, column 1"),
        ("a = nCk(gpu, 2, 0, 10, 1)\nb = nCk(gpu, 2, 0, 10, 1)", "2 requests (found 'a, b')"),
        ("mine = {n11}", "0 requests"),
    ],
)
def test_what_is_no_option_is_refused(text, words):
    """With the field, what was found and what was expected."""
    with pytest.raises(InputError) as raised:
        own_options(text, 2, PLACES)
    assert str(raised.value).startswith("field 'strl': ")
    assert words in str(raised.value)


def test_a_sum_has_room_for_all_tasks():
    """Two in one rack and one in the other are no places for four."""
    with pytest.raises(InputError, match=r"found 'k=3'\); expected at least k=4, its tasks"):
        own_options("sum(LnCk(r1, 2, 0, 9, 2), LnCk(r2, 1, 0, 9, 1))", 4, PLACES)


def test_too_many_alternatives_are_refused():
    """Each is looked at in every cycle: twenty places for each of five tasks are too many."""
    places = RequestPlaces.on(racks(20))
    one = f"max({', '.join(f'nCk({{n1{at}}}, 1, 0, 10, 1)' for at in range(1, 21))})"
    with pytest.raises(InputError, match="too many alternatives"):
        own_options(f"one = {one}\nmin(one, one, one, one, one)", 5, places)


def test_processors_without_nodes_are_a_place_each_partition():
    """On one's own machine there is when to choose, not where."""
    places = RequestPlaces.on(Cluster.of_processors(4))
    assert own_options("nCk(all, 3, 1min, 10, 1)", 3, places) == (
        option(("all",), 3, 1.0, (60.0, 1.0)),
    )
    for text in (
        "min(nCk(all, 1, 0, 9, 1), nCk(all, 1, 0, 9, 1))",
        "sum(LnCk(all, 1, 0, 9, 1), LnCk(all, 1, 0, 9, 1))",
    ):
        with pytest.raises(InputError, match="need nodes with names"):
            own_options(text, 2, places)
