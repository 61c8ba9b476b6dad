"""A session of the service: one daemon, as the store's log leaves the run."""

from __future__ import annotations

from dataclasses import replace

from foresail.control.policy import parse_policy
from foresail.live.cluster_contact import ClusterContact, FirstContact
from foresail.live.cluster_plugin import RunContext
from foresail.live.daemon import Daemon
from foresail.live.run_directory import RunHistory
from foresail.model.cluster import Cluster, require_same_processors
from foresail.scenario.beginning import controller_of, manifest_of, rehearse
from foresail.scenario.engines import engine_of
from foresail.scenario.scenario import Scenario
from foresail.service.configuration import ServiceConfiguration
from foresail.service.exchange import Exchange, StoreLog, recovered
from foresail.service.metrics import CycleWatch
from foresail.service.parts import ServiceParts


class _AcceptedCommands:
    """Commands that the service runs, as a scenario has them: they arrive by requests."""

    def origin(self) -> tuple[str, str | None]:
        """The service itself."""
        return "service", None


def scenario_of_service(configuration: ServiceConfiguration) -> Scenario:
    """Return the scenario of a configuration; the adapter decides on which cluster."""
    return Scenario(None, parse_policy(configuration.policy), commands=_AcceptedCommands())


def require_engine(configuration: ServiceConfiguration) -> None:
    """Refuse a configuration that no engine carries out; raises ``ForesailError``."""
    engine_of(scenario_of_service(configuration))


def rehearse_session(configuration: ServiceConfiguration, cluster: Cluster) -> None:
    """Have compiled what the policy of a configuration needs on a cluster."""
    rehearse(controller_of(replace(scenario_of_service(configuration), place=cluster)))


def daemon_of(
    configuration: ServiceConfiguration,
    parts: ServiceParts,
    cluster: FirstContact,
    cycles: CycleWatch,
) -> Daemon:
    """The daemon of a session, as the store's log leaves the run.

    Raises ``ConnectionError`` if the cluster is away, or has not answered yet.
    """
    folder, store, inbox, snapshots = parts.folder, parts.store, parts.inbox, parts.snapshots
    served = parts.served
    context = RunContext(
        folder.attempts,
        folder.logs,
        inbox.commands,
        snapshots.note,
        store.keep_samples,
        snapshots.keep_estimates,
        identity=store.identity,
        account_of_job=(lambda job: served.account(job.user)) if served.keeps_apart else None,
    )
    adapter, there = cluster.connected(context)
    scenario = replace(scenario_of_service(configuration), place=there)
    engine_of(replace(scenario, place="processors"))
    known = recovered(store, scenario.policy_in_force.compares_with)
    is_new, manifest = not len(known.compaction), manifest_of(scenario)
    exchange = Exchange(store, inbox, parts.feed, cycles)
    log = StoreLog(exchange, manifest if is_new else None, known)
    controller = controller_of(scenario, log)
    if not is_new:
        log.note_policy(known, manifest)
        require_same_processors(known.run.state.cluster, there)
        snapshots.recovered(known.run)
        controller.take_over(known.run)
    log.follow(controller.state)
    history = RunHistory(None, snapshots.note)
    return Daemon(controller, log, ClusterContact(adapter), inbox, history, None, snapshots)
