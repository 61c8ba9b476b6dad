"""A session of a service without its daemon: requests, the controller, and the store's log."""

from __future__ import annotations

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.command_job import CommandJob
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.event import STANDARD
from foresail.record.records import Manifest
from foresail.service.exchange import Exchange, Inbox, StoreLog, recovered
from foresail.service.feed import Feed
from foresail.service.metrics import CycleWatch, ServiceMetrics
from foresail.service.store.protocol import KeyedCall, Submit

BEGIN = 1_780_000_000.0
CLUSTER = Cluster((Partition("all", Resources(2.0)),))
POLICY = "easy,recent,incremental"


class Session:
    """A controller that goes on from where the store's log ends."""

    def __init__(self, store):
        self.store, self.inbox = store, Inbox(store)
        self.inbox.begin_again()
        known = recovered(store)
        manifest = None if len(known.compaction) else Manifest(POLICY, CLUSTER, STANDARD)
        cycles = CycleWatch(ServiceMetrics(), 10.0, lambda _: None)
        exchange = Exchange(store, self.inbox, Feed(store), cycles)
        self.log = StoreLog(exchange, manifest, known)
        self.controller = Controller(CLUSTER, *parse_policy(POLICY).build(), STANDARD, self.log)
        if manifest is None:
            self.controller.take_over(known.run)
        self.log.follow(self.controller.state)

    def submit(self, number, now):
        """A job comes; what is instructed then."""
        job = CommandJob(str(number), "name", "true", "/", user="ann")
        (accepted,) = self.store.accept([KeyedCall("ann", (Submit(job),), None, number)])
        self.inbox.put(accepted.requests)
        return self.controller.step(now, list(self.inbox.earlier((), now)))
