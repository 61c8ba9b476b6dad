"""The fewest of the youngest jobs are stopped, as if one after the other were left out."""

from hypothesis import given
from hypothesis import strategies as st

from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.placing import Rooms
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers.stopping import Priority

_NODES = [Node(f"n{number}", Resources(cpus=8.0)) for number in range(6)]
_CLUSTER = Cluster((Partition("all", Resources(cpus=48.0), tuple(_NODES)),))


def _job(name, tasks, cpus, urgent):
    value = DeadlineValue(100.0) if urgent else None
    return Job(name, 0.0, (Stage(tasks, Resources(cpus=cpus)),), value=value)


def _one_by_one(view):
    """Who starts and is stopped, with a look for places after every single victim."""
    room, stopped, starts = Rooms().at(view), [], []
    victims = [each for each in view.running if each.job.deadline_seconds is None]
    for job in sorted((each.job for each in view.pending), key=lambda job: job.value is None):
        placement = room.placement(job)
        if placement is not None:
            room.take(job, placement)
            starts.append((job.job_id, placement))
            continue
        gone = 0
        while job.value is not None and placement is None and gone < len(victims):
            gone += 1
            room.add(victims[-gone].job, victims[-gone].placement)
            placement = room.placement(job)
        for each in victims[len(victims) - gone :]:
            room.take(each.job, each.placement)
        if placement is not None:
            room.take(job, placement)
            stopped += [victims.pop().job.job_id for _ in range(gone)]
    return starts, stopped


@given(
    running=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.booleans()), max_size=14),
    pending=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8), st.booleans()), max_size=8),
)
def test_the_fewest_of_the_youngest_are_stopped(running, pending):
    free = {each.name: 8.0 for each in _NODES}
    jobs = []
    for number, (node, cpus, urgent) in enumerate(running):
        if free[f"n{node}"] >= cpus:
            free[f"n{node}"] -= cpus
            place = Placement((("all", 1),), ((f"n{node}", 1),))
            job = _job(f"r{number}", 1, float(cpus), urgent)
            jobs.append(RunningJob(job, 0.0, number, place, Point(9.0), 9.0))
    waiting = [
        PendingJob(_job(f"p{number}", tasks, float(cpus), urgent), number, Point(9.0), 9.0)
        for number, (tasks, cpus, urgent) in enumerate(pending)
    ]
    rooms = {name: Resources(cpus=cpus) for name, cpus in free.items()}
    total = {"all": Resources(cpus=sum(free.values()))}
    view = ClusterView(0.0, _CLUSTER, total, tuple(waiting), tuple(jobs), rooms)
    decided = Priority(None).decide(view)
    found = [(each.job_id, each.placement) for each in decided.starts]
    assert (found, [each.job_id for each in decided.preemptions]) == _one_by_one(view)
