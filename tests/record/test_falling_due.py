"""State of jobs that it comes to be known of when they are due."""

from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.event import NotStarted
from foresail.model.job import Job
from foresail.model.view import Due, PendingJob
from foresail.record.state import State


def test_who_falls_due_while_it_is_put_off_is_due_when_it_may_start_again():
    """A start is refused for ten seconds, in which its turn is found."""
    state = State(Cluster((Partition("all", Resources(4.0)),)))
    job = Job.gang("j1", 0.0, 1, 60.0, "ann")
    state.submit(PendingJob(job, 0, Point(60.0), 60.0), 0.0)
    state.start("j1", Placement.whole("all", 1), 5.0)
    state.unstart(NotStarted(6.0, "j1", 1, "no room", 10.0), 6.0)
    state.falls_due("j1", Due(2.0, 8.0, 9.0))
    assert not state.startable
    assert state.let_begin(16.0)
    assert state.startable["j1"].due == Due(2.0, 8.0, 9.0)
