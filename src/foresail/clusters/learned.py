"""The learned state of a run's predictor: where it begins, and the file that it is kept in.

A run begins with what the file held, which it copies into its directory, so that a recovery begins
with the same knowledge and nothing is learned twice. What the predictor knows is the copy and the
run's own outcomes; the file is replaced by that from time to time and at the end. A recovery
restores both, outcomes in their order. It does not restore what a predictor noted of single jobs
when it predicted them: it learns from these as from jobs of an earlier run, whose features are
those of their start. It is replaced only if it still holds what this run read or wrote: where
another run has written meanwhile, this one's knowledge stays in its directory.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from foresail import __version__
from foresail.clusters.run_directory import RunDirectory
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.model.protocols import Predictor
from foresail.predictors._steps import SteppedPredictor
from foresail.predictors.saving import (
    StateHeader,
    load_state,
    read_header,
    require_savable,
    save_state,
)

KEPT_EVERY_SECONDS: Final = 60.0
"""How often the file is written while a run goes on and learns."""

_SHARE: Final = 20.0
"""How many times longer than it takes to write must pass before the file is written again."""


def require_learnable(policy: str, path: Path) -> None:
    """Refuse a file that a run under this policy could not go on from.

    Raises
    ------
    InputError
        If the policy's predictor has nothing to save, or there is a file and it cannot be used.
    """
    part = parse_policy(policy).predictor
    predictor = part.build()
    require_savable(predictor, part.text)
    if path.exists():
        load_state(path, predictor, part.text)
    elif not path.parent.is_dir():
        raise InputError("there is no such folder", source=path.parent)


def recall(run: RunDirectory, predictor: Predictor) -> None:
    """Let a fresh predictor know what was known when the run began.

    Raises
    ------
    InputError
        If the copy in the run's directory cannot be used.
    """
    if not run.learned_before.exists():
        return
    load_state(run.learned_before, predictor, parse_policy(run.settings().policy).predictor.text)
    if isinstance(predictor, SteppedPredictor):
        predictor.forget_in_flight()  # of a run that is over, or that goes on elsewhere


class LearnedFile:
    """The file in which a run keeps what its predictor knows.

    Parameters
    ----------
    run
        A run whose settings name such a file.
    path
        That file.
    """

    def __init__(self, run: RunDirectory, path: Path) -> None:
        settings = run.settings()
        self._before = run.learned_before
        self._aside = run.learned_aside
        self._path = path
        predictor = parse_policy(settings.policy).predictor.text
        self._header = StateHeader(predictor, settings.learned_as, __version__)
        self._due = time.monotonic() + KEPT_EVERY_SECONDS

    @property
    def is_due(self) -> bool:
        """Whether it is time to write again."""
        return time.monotonic() >= self._due

    def keep(self, predictor: Predictor) -> None:
        """Write what the predictor knows: whole, or not at all.

        Raises
        ------
        InputError
            If another run has written the file since, and this one's knowledge was put into the
            run's directory instead; or if neither can be written.
        """
        begin = time.monotonic()
        if self._is_ours():
            save_state(self._path, predictor, self._header)
            end = time.monotonic()
            self._due = end + max(KEPT_EVERY_SECONDS, _SHARE * (end - begin))
            return
        save_state(self._aside, predictor, self._header)
        raise InputError(
            "was written by another run meanwhile, and is left as it is",
            source=self._path,
            expected=f"what this run learned is in {self._aside}: see foresail predict merge",
        )

    def _is_ours(self) -> bool:
        if not self._path.exists():
            return True
        if self._before.exists() and self._path.read_bytes() == self._before.read_bytes():
            return True
        return read_header(self._path).written_by == self._header.written_by
