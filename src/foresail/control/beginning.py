"""How every run begins: its controller, and the first record of its event log."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

from foresail import __version__
from foresail.control.loop import Controller
from foresail.control.policy import Policy
from foresail.model.cluster import Cluster
from foresail.model.conventions import STANDARD, Conventions
from foresail.model.protocols import NeedsTruth, Predictor
from foresail.record.log import EventLog
from foresail.record.records import Manifest


def controller_of(
    policy: Policy,
    cluster: Cluster,
    conventions: Conventions = STANDARD,
    *,
    teach: Callable[[Predictor], object] | None = None,
    log: EventLog | None = None,
) -> Controller:
    """A fresh controller; ``teach`` is given its predictor, unless that is an oracle."""
    scheduler, predictor, correction = policy.build()
    if teach is not None and not isinstance(predictor, NeedsTruth):
        teach(predictor)
    return Controller(cluster, scheduler, predictor, correction, conventions, log=log)


def manifest_of(
    policy: Policy,
    cluster: Cluster,
    conventions: Conventions = STANDARD,
    *,
    inputs: Mapping[str, str | None],
    origin_unix_seconds: float | None = None,
    seed: int | None = None,
) -> Manifest:
    """What repeats such a run; ``inputs`` are digests by source, None where there is none."""
    return Manifest(
        policy=policy.text,
        cluster=cluster,
        conventions=conventions,
        seed=seed,
        versions={"foresail": __version__, "python": platform.python_version()},
        inputs={source: digest for source, digest in inputs.items() if digest is not None},
        origin_unix_seconds=origin_unix_seconds,
        starts_tasks=policy.starts_tasks,
    )
