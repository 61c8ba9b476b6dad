"""Beliefs about what a job's tasks use, moved by what those that run were seen to use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.discretisation import atoms_of, joined
from foresail.model.allocation import Allocation
from foresail.model.distribution import Distribution
from foresail.model.resources import Resources

_NODES: Final = 17
_NOVEL_SHARE: Final = 0.05
_NOVEL_LOG_WIDTH: Final = math.log(100.0)
_LOOK_LOG_DEVIATION: Final = 0.4
_INDEPENDENT_SECONDS: Final = 900.0
_ENOUGH_MORE: Final = 1.5
_NORMAL_NODES, _NORMAL_MASSES = np.polynomial.hermite_e.hermegauss(7)


def moved(belief: Distribution, mean: float, looks: float) -> Distribution:
    """What is believed of a job's average use once some of its use was seen (Bayes' rule).

    Each look is as if drawn log-normally around the average that the job really has. That is one of
    those that were believed possible or, with a small probability, any, all orders of magnitude
    alike: so that what history knows nothing of is learned, and several modes stay as many until
    looks tell them apart.

    Parameters
    ----------
    belief
        What was believed before.
    mean
        Mean of what was seen, above 0.
    looks
        On how many independent looks that rests.
    """
    deviation = _LOOK_LOG_DEVIATION / math.sqrt(looks)
    atoms = atoms_of(belief, _NODES)
    known = atoms.values > 0.0
    values, masses = atoms.values[known], atoms.masses[known]
    likelihood = _normal((np.log(values) - math.log(mean)) / deviation) / deviation
    reweighted = (1.0 - _NOVEL_SHARE) * masses * likelihood
    novel = _NOVEL_SHARE / _NOVEL_LOG_WIDTH * _NORMAL_MASSES / _NORMAL_MASSES.sum()
    at = np.concatenate((values, mean * np.exp(deviation * _NORMAL_NODES)))
    weights = np.concatenate((reweighted, novel))
    return joined(at, weights / weights.sum()).as_empirical()


def _normal(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-0.5 * values**2) / math.sqrt(2.0 * math.pi)


@dataclass(slots=True)
class _Evidence:
    """Of a job's stage: task-seconds that were seen, the amounts times these, most tasks at once.

    ``told`` is the same as it was when beliefs were last moved by it; None as long as none was.
    """

    seconds: float = 0.0
    cpus: float = 0.0
    memory: float = 0.0
    tasks: int = 0
    told: tuple[float, float, float, int] | None = None


class MovedBeliefs:
    """What was seen of jobs that wait or run: a look stands for the time since the one before.

    A look at each of its tasks, and one more for every quarter of an hour of each, count as
    independent. Beliefs are moved anew once half as much again was seen.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Evidence] = {}
        self._looked = math.nan

    def look(self, use: Mapping[Allocation, Resources], now: float) -> set[tuple[str, str]]:
        """Note measurements; the stages of whose tasks something else is to be believed."""
        lasted, self._looked = now - self._looked, now
        if not lasted > 0.0:  # nor at the first look
            return set()
        for key, running in Counter((each.job_id, each.stage) for each in use).items():
            evidence = self._seen.setdefault(key, _Evidence())
            evidence.tasks = max(evidence.tasks, running)
        for allocation, measured in use.items():
            evidence = self._seen[allocation.job_id, allocation.stage]
            evidence.seconds += lasted
            evidence.cpus += measured.cpus * lasted
            evidence.memory += measured.memory_bytes * lasted
        return {(each.job_id, each.stage) for each in use if self._tells(each)}

    def _tells(self, allocation: Allocation) -> bool:
        """Whether so much was seen of a stage that beliefs are to be moved by it."""
        each = self._seen[allocation.job_id, allocation.stage]
        if each.told is not None and each.seconds < _ENOUGH_MORE * each.told[0]:
            return False
        each.told = each.seconds, each.cpus, each.memory, each.tasks
        return True

    def told_of(self, job_id: str, stage: str) -> object:
        """What beliefs about a stage rest on: the same as before, if they are."""
        evidence = self._seen.get((job_id, stage))
        return None if evidence is None else evidence.told

    def believe(
        self, job_id: str, stage: str, cpus: Distribution, memory: Distribution
    ) -> tuple[Distribution, Distribution]:
        """The beliefs about a task of a stage, moved by what is known of others like it."""
        evidence = self._seen.get((job_id, stage))
        if evidence is None or evidence.told is None:
            return cpus, memory
        seconds, cpu_seconds, byte_seconds, tasks = evidence.told
        looks = tasks + seconds / _INDEPENDENT_SECONDS
        if cpu_seconds > 0.0:
            cpus = moved(cpus, cpu_seconds / seconds, looks)
        if byte_seconds > 0.0:
            memory = moved(memory, byte_seconds / seconds, looks)
        return cpus, memory

    def forget_all_but(self, living: Container[str]) -> None:
        """Only jobs that wait or run are still of interest."""
        for key in [each for each in self._seen if each[0] not in living]:
            del self._seen[key]

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "looked": self._looked,
            "seen": [
                [*key, each.seconds, each.cpus, each.memory, each.tasks, each.told]
                for key, each in self._seen.items()
            ],
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Go on from what another one knew."""
        self._looked = plain["looked"]
        for job_id, stage, seconds, cpus, memory, tasks, told in plain["seen"]:
            known = None if told is None else tuple(told)
            self._seen[job_id, stage] = _Evidence(seconds, cpus, memory, tasks, known)
