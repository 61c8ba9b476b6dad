"""What tasks use at instants ahead, by their age: in which part of its life each is then.

A task of age a whose life lasts T in all (seconds) is at an instant d ahead in the part
floor((a + d) / T * parts), and gone if that is not below the number of parts. What is believed of T
is atoms, of which those at or below a are ruled out; so each part has a probability, what the task
uses is a mixture of what it uses in these, and nothing once it is gone. A task that has outlived
all atoms is in its last part. Beyond spec 3sigma-distsched, section 7.4, where use does not depend
on time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part
from foresail.schedulers.kernels import packing

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SECONDS: Final = 0
PROBABILITY: Final = 1
LIFE_COLUMNS: Final = 2
"""Of an atom of a life."""


@part
def _weigh(lives: Floats, age: float, ahead: float, weights: Floats) -> float:
    """The probability of each part at an instant, and that the task is gone then."""
    for at in range(weights.size):
        weights[at] = 0.0
    total = gone = 0.0
    for atom in range(lives.shape[0]):
        seconds, probability = lives[atom, SECONDS], lives[atom, PROBABILITY]
        if seconds <= age:
            continue
        total += probability
        if age + ahead >= seconds:
            gone += probability
        else:
            share = (age + ahead) / seconds
            weights[min(int(share * weights.size), weights.size - 1)] += probability
    if total <= 0.0:
        weights[weights.size - 1] = 1.0
        return 0.0
    for at in range(weights.size):
        weights[at] /= total
    return gone / total


@part
def _mix(
    kind: Floats,
    kind_masses: Floats,
    kind_expected: Floats,
    weights: Floats,
    gone: float,
    steps: Floats,
    task: Floats,
    task_masses: Floats,
) -> None:
    """The mixture of what a task uses in each part, and nothing if it is gone."""
    bins = task_masses.shape[1]
    task[packing.TASK_REQUEST] = kind[packing.TASK_REQUEST]
    task[packing.TASK_GONE] = gone
    for resource in range(packing.RESOURCES):
        masses = task_masses[resource]
        for at in range(bins):
            masses[at] = 0.0
        least, expected = kind[packing.TASK_LEAST + resource], 0.0
        shift = least / steps[resource] if gone > 0.0 else 0.0
        whole = int(shift)
        rest = shift - whole
        for number in range(weights.size):
            weight = weights[number]
            if weight <= 0.0:
                continue
            expected += weight * kind_expected[number, resource]
            for at in range(int(kind[packing.TASK_HIGHEST + resource]) + 1):
                mass = weight * kind_masses[number, resource, at]
                masses[min(at + whole, bins - 1)] += (1.0 - rest) * mass
                if rest > 0.0:
                    masses[min(at + whole + 1, bins - 1)] += rest * mass
        masses[0] += gone
        highest = bins - 1
        while highest > 0 and masses[highest] <= 0.0:
            highest -= 1
        task[packing.TASK_LEAST + resource] = 0.0 if gone > 0.0 else least
        task[packing.TASK_EXPECTED + resource] = expected
        task[packing.TASK_HIGHEST + resource] = highest


@bare_kernel
def use_ahead(
    kind: Floats,
    kind_masses: Floats,
    kind_expected: Floats,
    lives: Floats,
    age: float,
    ahead: Floats,
    steps: Floats,
    weights: Floats,
    task: Floats,
    task_masses: Floats,
) -> None:
    """What a task uses at some instants.

    Parameters
    ----------
    kind
        A row of ``kernels.packing``'s tasks: what it uses at least, the highest step of any part.
    kind_masses, kind_expected
        Of each part of its life; shapes (parts, resources, bins), (parts, resources).
    lives
        How long it may live in all; shape (atoms, 2), of any order.
    age, ahead
        Its seconds up to now, and those from now to each instant.
    steps
        Of cpu and memory.
    weights
        Room for as many numbers as there are parts.
    task, task_masses
        Are given rows and masses for each instant.
    """
    for instant in range(ahead.size):
        gone = _weigh(lives, age, ahead[instant], weights)
        _mix(
            kind,
            kind_masses,
            kind_expected,
            weights,
            gone,
            steps,
            task[instant],
            task_masses[instant],
        )


@bare_kernel
def add_ahead(
    kinds: Floats,
    kind_masses: Floats,
    kind_expected: Floats,
    lives: Floats,
    kind_of: Integers,
    ages: Floats,
    machine_of: Integers,
    ahead: Floats,
    steps: Floats,
    weights: Floats,
    task: Floats,
    task_masses: Floats,
    before: Floats,
    machines: Floats,
    machine_masses: Floats,
) -> None:
    """Add up what the tasks of machines use at some instants, in their order.

    Parameters
    ----------
    kinds, kind_masses, kind_expected, lives
        As of ``use_ahead``, of each kind of task.
    kind_of, ages, machine_of
        Of each task.
    ahead, steps
        As of ``use_ahead``.
    weights, task, task_masses, before
        Room, as there; ``before`` for as many numbers as there are bins.
    machines, machine_masses
        Tables of machines at each instant, shapes (machines, instants, ...), which are added to.
    """
    for at in range(kind_of.size):
        kind, machine = kind_of[at], machine_of[at]
        use_ahead(
            kinds[kind],
            kind_masses[kind],
            kind_expected[kind],
            lives[kind],
            ages[at],
            ahead,
            steps,
            weights,
            task,
            task_masses,
        )
        for instant in range(ahead.size):
            packing.add_tasks(
                machines[machine, instant],
                machine_masses[machine, instant],
                task[instant],
                task_masses[instant],
                1,
                before,
            )
