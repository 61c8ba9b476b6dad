"""Predictors made of other predictors: any registered one with compiled steps can be a member.

A member's steps are called by address, on its blocks of the composite's arrays; see
``foresail.predictors.kernels.members`` for how these lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from foresail.distributions.quantiles import Quantiles
from foresail.kernels.columns import BELIEF_LEVELS, SPEC_COLUMNS
from foresail.kernels.compile import Step
from foresail.kernels.steps import PredictorState, PredictorSteps, fill_belief, step_address
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import InputError
from foresail.model.short_form import part_of
from foresail.predictors import stepped
from foresail.predictors.kernels import members
from foresail.predictors.kernels.members import point_belief

_COPIED_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True)
class Own:
    """State of a composite besides its members: numbers, and columns of users and of jobs."""

    numbers: Floats
    user_columns: int
    job_columns: int


def member(text: str, field: str) -> stepped.SteppedPredictor:
    """The predictor with this short form, as a member of a composite.

    Raises ``UnknownNameError`` if there is none of this name, or it has no such parameter;
    ``InputError`` if the text is malformed, or the predictor cannot be a member; ``field`` is the
    parameter that named it.
    """
    built = part_of("predictor", text).build()
    if not isinstance(built, stepped.SteppedPredictor) or built.needs_truth:
        raise InputError(
            "cannot be a member of another predictor",
            field=field,
            value=text,
            expected="a predictor with compiled steps that needs no truth",
        )
    return built


class CompositePredictor(stepped.SteppedPredictor):
    """A predictor with members; subclasses give its own steps."""

    def __init__(
        self, steps: PredictorSteps, made_of: Sequence[stepped.SteppedPredictor], own: Own
    ) -> None:
        self._members = tuple(made_of)
        self._own = own
        features = dict.fromkeys(name for each in made_of for name in each.source_features)
        layout = stepped.Layout(
            np.zeros(0), own.user_columns, own.job_columns, features=tuple(features)
        )
        super().__init__(steps, layout)
        users = [width for each in made_of for width in each.user_widths]
        jobs = [width for each in made_of for width in each.job_widths]
        self.user_widths = (own.user_columns, *users)
        self.job_widths = (own.job_columns, *jobs)

    def compiled(
        self, specs: Floats, features: tuple[str, ...] = ()
    ) -> tuple[PredictorSteps, PredictorState]:
        """Steps and fresh state for a compiled replay; see ``SteppedPredictor.compiled``."""
        return self._steps, self._packed([each.compiled(specs, features) for each in self._members])

    @property
    def steps(self) -> tuple[Step, ...]:
        """Its own steps and those of its members."""
        of_members = [step for each in self._members for step in each.steps]
        return (*super().steps, *of_members, point_belief)

    def restore(self, known: stepped.PredictorSnapshot) -> None:
        """Restore like ``SteppedPredictor.restore``; step addresses are those of this process."""
        super().restore(known)
        self._write_addresses()

    def __setstate__(self, known: dict[str, Any]) -> None:
        self.__dict__.update(known)
        self._write_addresses()

    def _write_addresses(self) -> None:
        fresh = self._fresh_state(2, 1).model
        places = self._address_places()
        self._state.model[places] = fresh[places]

    def _address_places(self) -> list[int]:
        """Return where in the model addresses are, those of the members' members too."""
        places: list[int] = []
        for number, each in enumerate(self._members):
            at = members.FIRST_MEMBER + number * members.MEMBER_COLUMNS
            places += range(at, at + members.MODEL)
            if isinstance(each, CompositePredictor):
                begin = int(self._state.model[at + members.MODEL])
                places += [begin + place for place in each._address_places()]
        return places

    def _model_used(self) -> int:
        model = self._state.model
        used = 0
        for begin in range(0, model.size, _COPIED_AT_ONCE):
            if model[begin : begin + _COPIED_AT_ONCE].any():
                used = begin + _COPIED_AT_ONCE
        return min(used, model.size)

    def _fresh_state(self, users: int, slots: int) -> PredictorState:
        features = self._layout.features
        blank = np.zeros((slots, SPEC_COLUMNS + len(features)))
        parts = [each.compiled(blank, features) for each in self._members]
        longer = [
            (steps, state._replace(users=stepped.lengthened(state.users, users, each.user_widths)))
            for each, (steps, state) in zip(self._members, parts, strict=True)
        ]
        return self._packed(longer)

    def _packed(self, parts: Sequence[tuple[PredictorSteps, PredictorState]]) -> PredictorState:
        """The members' states as blocks of one, behind the composite's own columns."""
        begin = members.first_own_number(len(parts)) + self._own.numbers.size
        model = np.zeros(begin + sum(state.model.size for _, state in parts))
        model[members.MEMBERS] = len(parts)
        model[members.OWN_USER_COLUMNS] = self._own.user_columns
        model[members.OWN_JOB_COLUMNS] = self._own.job_columns
        model[members.first_own_number(len(parts)) : begin] = self._own.numbers
        place = begin
        users = [np.zeros((len(parts[0][1].users), self._own.user_columns))]
        jobs = [np.zeros((len(parts[0][1].jobs), self._own.job_columns))]
        for number, (steps, state) in enumerate(parts):
            at = members.FIRST_MEMBER + number * members.MEMBER_COLUMNS
            model[at : at + members.MODEL] = _addresses(steps)
            model[at + members.MODEL : at + members.MEMBER_COLUMNS] = (
                place,
                state.model.size,
                sum(block.shape[1] for block in users),
                state.users.shape[1],
                sum(block.shape[1] for block in jobs),
                state.jobs.shape[1],
            )
            _copy_what_is_there(state.model, model[place : place + state.model.size])
            place += state.model.size
            users.append(state.users)
            jobs.append(state.jobs)
        return PredictorState(model, stepped.joined(users), stepped.joined(jobs))

    def _belief(self, slot: int) -> Distribution:
        row = np.empty(len(BELIEF_LEVELS))
        address = step_address(self._steps.belief)
        fill_belief(address, slot, self._specs, *self._state, self._summaries, row)
        return Quantiles(BELIEF_LEVELS, row)


def _addresses(steps: PredictorSteps) -> list[float]:
    known = [step_address(step) for step in (steps.predict, steps.started, steps.observe)]
    belief = step_address(steps.belief or point_belief)
    refresh = 0.0 if steps.refresh is None else step_address(steps.refresh)
    return [*known, belief, refresh]


def _copy_what_is_there(source: Floats, target: Floats) -> None:
    """Copy into zeros without touching the pages of stretches that are zeros in the source too."""
    for begin in range(0, source.size, _COPIED_AT_ONCE):
        part = source[begin : begin + _COPIED_AT_ONCE]
        if part.any():
            target[begin : begin + _COPIED_AT_ONCE] = part
