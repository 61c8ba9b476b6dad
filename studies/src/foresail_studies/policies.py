"""Named policies that only publications need: ablations, baselines, and systems as published.

Packages of studies offer them as ``NAMED_POLICIES``, where ``foresail.control.policy`` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from foresail.control.policy import NAMED_POLICIES
from foresail.model.short_form import name_and_settings, split

_BUMP: Final = "exponential_increment(cycle_seconds=4,growth=1)"
_ABLATIONS: Final = {
    "3sigma-no-dist": "3sigma(distribution=no),jvu,exponential_increment",
    "3sigma-no-oe": "3sigma(over_estimates=off),history,exponential_increment",
    "3sigma-no-adapt": "3sigma(over_estimates=on),history,exponential_increment",
    "point-perfect": "3sigma(distribution=no,over_estimates=off),clairvoyant,exponential_increment",
    "point-real": "3sigma(distribution=no,over_estimates=off),jvu,exponential_increment",
    "tetrisched-nh": f"tetrisched(soft_constraints=no),requested,{_BUMP}",
    "tetrisched-ng": f"tetrisched(placing=in_order),requested,{_BUMP}",
    "tetrisched-np": f"tetrisched(window_slots=1),requested,{_BUMP}",
}


def dropping(text: str) -> str:
    """The short form of a policy that plans ahead, and drops hopeless jobs as published.

    >>> dropping("3sigma(distribution=no),jvu")
    '3sigma(distribution=no,hopeless_jobs=drop),jvu'
    """
    scheduler, *rest = split(text)
    name, settings = name_and_settings(scheduler)
    return ",".join([f"{name}({','.join([*settings, 'hopeless_jobs=drop'])})", *rest])


PLANNING_AHEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        **_ABLATIONS,
        **{
            f"{name}-published": dropping(text)
            for name, text in {
                **{name: NAMED_POLICIES[name] for name in ("3sigma", "tetrisched")},
                **_ABLATIONS,
            }.items()
        },
    }
)
"""Ablations and baselines of 3Sigma and TetriSched; ``-published``: jobs that have become hopeless
are dropped."""

_POINTS: Final = (
    "distsched(distribution=no,over_estimates=off,restarts=no,observed_use=no,preemption=no)"
)
PACKING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dist": "distsched,usage",
        "actual": f"{_POINTS},actual_usage",
        "point": f"{_POINTS},usage(point=yes)",
        "request": f"{_POINTS},usage(resources=requested)",
        "dist-max": "distsched,usage(of=maximum)",
        "actual-max": f"{_POINTS},actual_usage(of=maximum)",
        "point-max": f"{_POINTS},usage(of=maximum,point=yes)",
        "dist-no-dist": "distsched(distribution=no),usage(point=yes)",
        "dist-no-pack": "distsched(cpu_risk=0,memory_risk=0),usage",
        "dist-no-over": "distsched(over_estimates=off),usage",
        "dist-no-obs": "distsched(observed_use=no),usage",
        "dist-no-preempt": "distsched(preemption=no),usage",
    }
)
"""DistSched, the points that it was compared with, and its ablations."""

TASKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "slearn-3sigma": "predicted_queues,history_point",
        "slearn-3sigma-tl": "predicted_queues(thin_below=3),history_point",
        "slearn-point-est": "predicted_queues,history_point(utility=median)",
        "slearn-oracle": "predicted_queues,clairvoyant",
        "slearn-dag": "slearn(later_stages=history),history_point",
        "slearn-surer": "slearn(source=surer),history",
    }
)
"""What SLearn's study compares ``slearn`` with, beside ``las`` and ``task_fifo``."""
