"""A store of a service that many jobs have gone through, made in a minute: nothing of them is run.

Jobs are accepted, decided and written down by the service's own code, a step each for 64 that come
and 64 that end, under a clock that ends now.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Final

from foresail.live.cluster_plugin import ClusterPlugin, RunContext
from foresail.live.command_job import CommandJob
from foresail.model.decision import Start
from foresail.model.event import Ended, EndedBecause, Event, Outcome
from foresail.model.short_form import part_of
from foresail.scenario.beginning import controller_of, manifest_of
from foresail.service.configuration import ServiceConfiguration
from foresail.service.exchange import Exchange, Inbox, StoreLog, recovered
from foresail.service.feed import Feed
from foresail.service.metrics import CycleWatch, ServiceMetrics
from foresail.service.session import scenario_of_service
from foresail.service.state_folder import GivenNumbers, StateFolder
from foresail.service.store import sql_store
from foresail.service.store.protocol import KeyedCall, Submit
from foresail.service.store.sql_store import SqlStore

_STEP_SECONDS: Final = 60.0
_USERS: Final = 20


def fill(configuration: ServiceConfiguration, finished: int, queued: int, cpus: int) -> None:
    """Let so many jobs have come and ended, as many at a time as there are cpus, and so many wait.

    The last that has started holds all cpus, so that nothing else starts; the service begins it.
    """
    folder = StateFolder(configuration.state)
    folder.make()
    store = SqlStore.in_file(folder.database)
    given = GivenNumbers(folder, store)
    inbox = Inbox(store)
    plugin: ClusterPlugin = part_of("cluster", configuration.cluster).build()
    adapter = plugin.connect(RunContext(folder.attempts, folder.logs, inbox.commands, print))
    scenario = replace(scenario_of_service(configuration), place=adapter.cluster)
    adapter.close()
    known = recovered(store, scenario.policy_in_force.compares_with)
    cycles = CycleWatch(ServiceMetrics(), 1e9, lambda _: None)
    exchange = Exchange(store, inbox, Feed(store), cycles)
    log = StoreLog(exchange, manifest_of(scenario), known)
    controller = controller_of(scenario, log)
    log.follow(controller.state)
    draw = random.Random(1)
    now = time.time() - (2 + finished // cpus) * _STEP_SECONDS
    running: list[tuple[str, float]] = []
    jobs = [*range(1, finished + 1)]
    lots = [jobs[begin : begin + cpus] for begin in range(0, finished, cpus)]
    waiting = [*range(finished + 2, finished + queued + 2)]
    lots += [[], [finished + 1], *(waiting[at : at + 1_000] for at in range(0, queued, 1_000))]
    for lot in lots:
        sql_store.time = SimpleNamespace(time=lambda now=now: now)  # type: ignore[assignment]
        submitted = [_job(number) for number in lot]
        if lot == [finished + 1]:
            submitted = [replace(submitted[0], command="sleep 100000", cpus=cpus)]
        calls = [
            KeyedCall(each.user, (Submit(each),), first_number=int(each.job_id))
            for each in submitted
        ]
        for answer in store.accept(calls):
            inbox.put(answer.requests)
        events: list[Event] = [_ended(job_id, begun, now, draw) for job_id, begun in running]
        events += inbox.arrived(now) if calls else []
        started = [each for each in controller.step(now, events) if isinstance(each, Start)]
        running = [(each.job_id, now) for each in started if each.job_id != str(finished + 1)]
        if len(controller.state.ended) >= configuration.remembered_jobs + 1_000:
            controller.forget_ended(configuration.remembered_jobs)
        now = min(time.time(), now + _STEP_SECONDS)
    sql_store.time = time
    inbox.close()
    given.close()
    store.close()


def _job(number: int) -> CommandJob:
    return CommandJob(
        str(number),
        f"train-{number % 7}",
        f"python train.py --data /data/set-{number} --epochs 30 --seed {number}",
        "/",
        requested_seconds=2 * _STEP_SECONDS,
        user=f"user-{number % _USERS}",
    )


def _ended(job_id: str, begun: float, now: float, draw: random.Random) -> Ended:
    end = draw.uniform(begun, now)
    return Ended(now, Outcome(job_id, begun, end, EndedBecause.COMPLETED, exit_code=0))
