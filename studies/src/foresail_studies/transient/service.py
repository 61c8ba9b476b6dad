"""Study ``transient-service``: how a service fares while its machines are taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.errors import require_at_least
from foresail.model.registry import register
from foresail_studies import cloud as cloud
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    StudyParameters,
    published,
)
from foresail_studies.transient.serving import (
    Clients,
    Cordoned,
    Protection,
    Quickness,
    Unprotected,
    serve_waiting_clients,
    taken_at_random,
)

_THROUGHPUT: Final = Measure("throughput", "requests answered a second")
_KEPT: Final = Measure("throughput_kept", "throughput, of that without revocations", "share")
_LATENCY: Final = Measure("latency_seconds", "mean latency", "duration")
_P95: Final = Measure("p95_latency_seconds", "95 % of latencies below", "duration")
_FAILED: Final = Measure("failed", "failed requests")

_WITH: Final = "with the daemon"
_WITHOUT: Final = "without"
_MEMORY: Final = "working set in memory"
_PARTLY: Final = "working set partly on disk"
_DISK: Final = "working set mostly on disk"
_IN_MEMORY: Final = {_MEMORY: 1.0, _PARTLY: 0.6, _DISK: 0.2}
_RATES: Final = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True, slots=True)
class Minutes:
    """Clients that send for some minutes, while replicas are taken at random."""

    system: str
    in_memory: float
    revocations_per_minute: float
    replicas: int
    clients: int
    seconds: float
    absent_seconds: float
    seed: int

    def measure(self) -> Mapping[str, float]:
        """Throughput, latency and failures."""
        found = self._run(self.revocations_per_minute)
        calm = self._run(0.0)
        return {
            "throughput": found.throughput,
            "throughput_kept": found.throughput / calm.throughput,
            "latency_seconds": float(found.latency_seconds.mean()),
            "p95_latency_seconds": float(np.quantile(found.latency_seconds, 0.95)),
            "failed": float(found.served.failed),
        }

    def _run(self, rate: float) -> Quickness:
        machines = taken_at_random(
            self.replicas,
            revocations_per_minute=rate,
            absent_seconds=self.absent_seconds,
            seconds=self.seconds,
            random=np.random.default_rng([self.seed, 0]),
        )
        return serve_waiting_clients(
            machines,
            Clients(clients=self.clients, in_memory=self.in_memory),
            self._protection(),
            np.random.default_rng([self.seed, 1]),
        )

    def _protection(self) -> Protection:
        if self.system == _WITHOUT:
            return Unprotected()
        return Cordoned(replacement_seconds=self.absent_seconds)


@dataclass(frozen=True, slots=True)
class ServiceParameters(StudyParameters, quick="seeds=5", minutes=(0.5, 2)):
    """Parameters of ``transient-service``."""

    seeds: int = 20
    """How often revocations and requests are drawn."""
    replicas: int = 10
    clients: int = 20
    """Of the service, and those that send to it."""
    seconds: float = 300.0
    """How long they send."""
    absent_seconds: float = 30.0
    """From when a replica is out of service until another takes its place, with a cold memory."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        require_at_least(self, 1, "replicas", "clients", "seconds", "absent_seconds")


@register("study", "transient-service", parameters=ServiceParameters)
def transient_service(parameters: ServiceParameters) -> Study:
    """Measure a service while its machines are taken (section 3.5.3)."""
    cases = [
        GridPoint(
            group,
            rate,
            system,
            seed,
            Minutes(
                system,
                in_memory,
                rate,
                parameters.replicas,
                parameters.clients,
                parameters.seconds,
                parameters.absent_seconds,
                seed,
            ),
        )
        for seed in range(parameters.seeds)
        for group, in_memory in _IN_MEMORY.items()
        for system in (_WITHOUT, _WITH)
        for rate in _RATES
    ]
    defaults = Clients()
    return Study(
        title="How does a service fare while its machines are taken?",
        source=f"{cloud.SOURCE}, section 3.5 (the web server)",
        axis="revocations a minute",
        measures=(_THROUGHPUT, _KEPT, _LATENCY, _P95, _FAILED),
        drawn=(_THROUGHPUT.name, _LATENCY.name, _FAILED.name),
        cases=tuple(cases),
        claims=published(_claims()),
        notes=(
            f"{parameters.clients} clients send as fast as they are answered, to one of "
            f"{parameters.replicas} replicas at random, for {parameters.seconds:g} s. A replica "
            f"answers {defaults.workers} requests at once, in order; from memory in "
            f"{1000 * defaults.hit_seconds:g} ms on average, from disk in "
            f"{1000 * defaults.miss_seconds:g} ms. The publication does not say these numbers; "
            "with the working set in memory they come to its 450,000 requests in five minutes.",
            "A replica that is taken is replaced after "
            f"{parameters.absent_seconds:g} s, from when it is gone or, with the daemon, from when "
            "it leaves the balancer on the warning. The new one's memory is cold, and warms with a "
            f"time constant of {defaults.warming_seconds:g} s: that is why those that live from "
            "memory lose most.",
            "“Slightly” is taken for a sixth, and “linearly” for three to five times as many at "
            "four a minute as at one.",
        ),
    )


def _claims() -> dict[str, Bound]:
    def mean(measure: Measure, system: str, group: str | None, *rates: float) -> Mean:
        return Mean(measure.name, system, group, rates)

    return {
        "Up to one revocation a minute, latency shifts slightly (in memory, without).": Bound(
            mean(_LATENCY, _WITHOUT, _MEMORY, 1.0),
            mean(_LATENCY, _WITHOUT, _MEMORY, 0.0),
            7.0 / 6.0,
        ),
        "... and with the daemon.": Bound(
            mean(_LATENCY, _WITH, _MEMORY, 1.0), mean(_LATENCY, _WITH, _MEMORY, 0.0), 7.0 / 6.0
        ),
        "Throughput falls with the rate.": Bound(
            mean(_THROUGHPUT, _WITH, None, 4.0), mean(_THROUGHPUT, _WITH, None, 0.0)
        ),
        "... most where the working set is in memory.": Bound(
            mean(_KEPT, _WITH, _MEMORY, 4.0), mean(_KEPT, _WITH, _DISK, 4.0)
        ),
        "... more there than where it is partly on disk.": Bound(
            mean(_KEPT, _WITH, _MEMORY, 4.0), mean(_KEPT, _WITH, _PARTLY, 4.0)
        ),
        "Without the daemon, failed requests rise linearly with the rate: not faster.": Bound(
            mean(_FAILED, _WITHOUT, _MEMORY, 4.0), mean(_FAILED, _WITHOUT, _MEMORY, 1.0), 5.0
        ),
        "... nor slower.": Bound(
            mean(_FAILED, _WITHOUT, _MEMORY, 1.0), mean(_FAILED, _WITHOUT, _MEMORY, 4.0), 1.0 / 3.0
        ),
        **{
            f"More than five times fewer fail with the daemon, at {rate:g} a minute.": mean(
                _FAILED, _WITH, _MEMORY, rate
            ).against(_WITHOUT, factor=0.2)
            for rate in (1.0, 2.0, 4.0)
        },
    }
