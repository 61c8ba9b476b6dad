"""The learned state of a run's predictor: where it begins, and the file that it is kept in.

A run begins with what the file held, which it copies into its directory, so that a recovery begins
with the same knowledge and nothing is learned twice. What the predictor knows is the copy and the
run's own predictions and outcomes, which a recovery repeats in their order; the file is replaced by
that from time to time and at the end. It is replaced only if it still holds what this run read or
wrote: where another run has written meanwhile, this one's knowledge stays in its directory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from foresail import __version__
from foresail.control.policy import parse_policy
from foresail.live.run_directory import RunDirectory
from foresail.model.errors import InputError
from foresail.model.protocols import Predictor
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

    Raises ``InputError`` if the policy's predictor has nothing to save, or there is a file and it
    cannot be used.
    """
    part = parse_policy(policy).predictor
    predictor = part.build()
    require_savable(predictor, part.text)
    if path.exists():
        load_state(path, predictor, part.text)
    elif not path.parent.is_dir():
        raise InputError("there is no such folder", source=path.parent)


class LearnedFile:
    """The file in which a run keeps what its predictor knows; a run does not fail without it."""

    def __init__(self, run: RunDirectory, note: Callable[[str], None]) -> None:
        self._settings = run.settings()
        self._before = run.learned_before
        self._aside = run.learned_aside
        path = self._settings.learned
        self._path = None if path is None else Path(path)
        self._note = note
        self._due = time.monotonic() + KEPT_EVERY_SECONDS

    @property
    def knew_before(self) -> bool:
        """Whether the run began with what such a file held."""
        return self._before.exists()

    def keep_if_due(self, predictor: Predictor) -> None:
        """As ``keep``, if the file was not written for long."""
        if time.monotonic() >= self._due:
            self.keep(predictor)

    def keep(self, predictor: Predictor) -> None:
        """Write what the predictor knows, whole or not at all; it is said if that cannot be."""
        if self._path is None:
            return
        begin = time.monotonic()
        try:
            self._write(self._path, predictor)
        except InputError as error:
            self._path = None
            self._note(f"what was learned is not kept: {error}")
        end = time.monotonic()
        self._due = end + max(KEPT_EVERY_SECONDS, _SHARE * (end - begin))

    def _write(self, path: Path, predictor: Predictor) -> None:
        """Into the file; beside it, which is an error, if another run has written it since."""
        learned_by = parse_policy(self._settings.policy).predictor.text
        header = StateHeader(learned_by, self._settings.learned_as, __version__)
        if self._is_ours(path):
            save_state(path, predictor, header)
            return
        save_state(self._aside, predictor, header)
        raise InputError(
            "was written by another run meanwhile, and is left as it is",
            source=path,
            expected=f"what this run learned is in {self._aside}: see foresail predict merge",
        )

    def _is_ours(self, path: Path) -> bool:
        if not path.exists():
            return True
        if self.knew_before and path.read_bytes() == self._before.read_bytes():
            return True
        return read_header(path).written_by == self._settings.learned_as
