"""Jobs on slower nodes: what is expected of them, how that is corrected, and what they teach."""

from dataclasses import replace

import pytest

from foresail.control.loop import Controller
from foresail.distributions.basic import Uniform
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, Start
from foresail.model.event import Ended, EstimateExpired, Outcome, Submitted
from foresail.model.free_resources import Slowdowns
from foresail.model.preference import Preference, PreferenceKind
from foresail.model.protocols import Predictor
from foresail.model.registry import find
from planning_problems import job, racks
from toys import Scripted

LIKES = Preference(PreferenceKind.PARTITION, ("r1",), 1.5)
ELSEWHERE = Placement((("r2", 1),), (("n21", 1),))
PREFERRED = Placement((("r1", 1),), (("n11", 1),))


class Believing(Predictor):
    """Predicts a uniform belief, and keeps what it is told."""

    def __init__(self):
        self.told = []

    def predict(self, job, now):
        return Uniform(10.0, 30.0)

    def observe(self, job, outcome):
        self.told.append(outcome)


def started(placement, correction="quantile", cluster=None):
    """A controller that has started one job, its predictor, and the job as it runs."""
    entry = find("correction", correction)
    predictor = Believing()
    controller = Controller(
        cluster or racks(1, 1),
        Scripted(Decision((Start("a", placement),))),
        predictor,
        entry.build(entry.parameters()),
    )
    controller.step(0.0, [Submitted(0.0, job("a", 1, preference=LIKES))])
    return controller, predictor


@pytest.mark.parametrize(("placement", "end"), [(PREFERRED, 20.0), (ELSEWHERE, 30.0)])
def test_the_expected_end_is_that_of_the_placement(placement, end):
    """A job is expected to run longer where it is slower."""
    controller, _ = started(placement)
    assert controller.running["a"].expected_end_seconds == end
    assert controller.running["a"].slowdown == end / 20.0


@pytest.mark.parametrize(
    ("placement", "correction", "corrected"),
    [
        (PREFERRED, "quantile", 25.0),
        (ELSEWHERE, "quantile", 37.5),
        (ELSEWHERE, "exponential_increment", 32.0),
        (ELSEWHERE, "doubling", 60.0),
    ],
)
def test_corrections_know_the_slower_belief(placement, correction, corrected):
    """The next quantile is that of the belief there; steps in seconds stay what they are."""
    controller, _ = started(placement, correction)
    expired = controller.running["a"].expected_end_seconds
    controller.step(expired, [EstimateExpired(expired, "a")])
    assert controller.running["a"].expected_end_seconds == pytest.approx(corrected)


def test_a_slower_run_teaches_what_it_would_have_taken():
    """The predictor learns of the slowdown, and the runtime without it."""
    controller, predictor = started(ELSEWHERE)
    controller.step(24.0, [Ended(24.0, Outcome("a", 0.0, 24.0))])
    (told,) = predictor.told
    assert (told.runtime_seconds, told.slowdown) == (24.0, 1.5)
    assert told.preferred_runtime_seconds == 16.0


def test_a_slower_machine_teaches_what_speed_1_would_have_taken():
    """Beside what the place does to the job."""
    (rack, elsewhere) = racks(1, 1).partitions
    nodes = tuple(replace(node, speed=0.5) for node in elsewhere.nodes)
    cluster = Cluster((rack, replace(elsewhere, nodes=nodes)))
    controller, predictor = started(ELSEWHERE, cluster=cluster)
    assert controller.running["a"].expected_end_seconds == 60.0
    controller.step(48.0, [Ended(48.0, Outcome("a", 0.0, 48.0))])
    (told,) = predictor.told
    assert (told.slowdown, told.preferred_runtime_seconds) == (3.0, 16.0)


@pytest.mark.parametrize("name", ["history", "recent", "similar"])
def test_predictors_learn_runtimes_without_the_slowdown(name):
    """A history of slowed runs predicts as one of the same runs where they are fast."""
    entry = find("predictor", name)
    slow, fast = (entry.build(entry.parameters()) for _ in range(2))
    for at in range(5):
        made = job(f"j{at}", 1, submit=100.0 * at)
        for predictor, factor in ((slow, 1.5), (fast, 1.0)):
            predictor.predict(made, 100.0 * at)
            end = 100.0 * at + factor * (10.0 + at)
            predictor.observe(made, Outcome(f"j{at}", 100.0 * at, end, slowdown=factor))
    asked = job("next", 1, submit=1000.0)
    assert slow.predict(asked, 1000.0).mean() == pytest.approx(fast.predict(asked, 1000.0).mean())


def test_pools_and_jobs_without_preference_are_never_slower():
    """Only a preference that is not given slows a job down."""
    assert Slowdowns(racks(1, 1)).factor(job("a", 1), ELSEWHERE) == 1.0
    pool = Slowdowns(Cluster.of_processors(4))
    assert pool.factor(job("a", 1, preference=LIKES), Placement.whole("all", 1)) == 1.0
    whole = Slowdowns(racks(1, 1))
    assert whole.factor(job("a", 1, preference=LIKES), Placement.whole("r1", 1)) == 1.0
    assert whole.factor(job("a", 1, preference=LIKES), Placement.whole("r2", 1)) == 1.5
