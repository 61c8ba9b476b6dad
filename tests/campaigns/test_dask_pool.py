"""The same campaign on a Dask cluster: a real scheduler and workers, one of them killed."""

import os
import signal

import pytest

from foresail.campaigns.results import Results
from foresail.campaigns.running import carry_out
from foresail.model.errors import InputError
from made_campaigns import carried_out, comparable, made_plan

distributed = pytest.importorskip("distributed")

pytestmark = [
    # Dask leaves sockets and event loops to the garbage collector when a cluster is closed after
    # one of its workers was killed; none of them is ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def cluster():
    """A scheduler and three worker processes on loopback, without the dashboard."""
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",
        silence_logs="CRITICAL",
    ) as cluster:
        yield cluster


def test_same_results_though_a_worker_is_killed(cluster, tmp_path):
    """Results equal those of one process; a worker killed in mid-run costs only its own runs."""
    from foresail.campaigns.running import DaskPool

    plan = made_plan(tmp_path, jobs=3000)
    expected = comparable(carried_out(plan, tmp_path / "one"))  # compiles, too: workers need not
    results = Results(tmp_path / "dask")
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        pids = client.run(os.getpid)
    seen = []

    def kill_one(run, measured):
        seen.append(run.key)
        if len(seen) == 2:
            os.kill(next(iter(pids.values())), signal.SIGKILL)

    count = carry_out(
        plan,
        results,
        DaskPool(cluster.scheduler_address),
        preparing=lambda _: None,
        finished=kill_one,
    )
    assert count == len(seen) == len(set(seen)) == 12
    assert comparable(results).equals(expected)


def test_nobody_at_the_address(monkeypatch, tmp_path):
    """An address without a scheduler is an error that says so."""
    from foresail.campaigns import running

    monkeypatch.setattr(running, "_SECONDS_TO_CONNECT", 1)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        list(running.DaskPool("tcp://127.0.0.1:9").replay([], Results(tmp_path)))
