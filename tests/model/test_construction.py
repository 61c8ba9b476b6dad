"""Records that are made quickly are like all frozen dataclasses."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from foresail.model.construction import quickly_made


@dataclass(frozen=True, slots=True)
class Usual:
    name: str
    count: int = 3
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("a count below 0")


@quickly_made
@dataclass(frozen=True, slots=True)
class Quick:
    name: str
    count: int = 3
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("a count below 0")


@pytest.mark.parametrize("make", [lambda kind: kind("a"), lambda kind: kind("a", words=["b"])])
def test_its_fields_are_those_of_the_usual_one(make):
    usual, quick = make(Usual), make(Quick)
    assert repr(quick) == repr(usual).replace("Usual", "Quick")
    assert type(quick) is Quick
    assert quick == make(Quick)
    assert quick != usual
    assert replace(quick, count=5) == Quick("a", 5, quick.words)
    assert pickle.loads(pickle.dumps(quick)) == copy.deepcopy(quick) == quick
    assert [*inspect.signature(Quick).parameters] == [*inspect.signature(Usual).parameters]


def test_each_has_its_own_of_what_is_made_anew():
    first, second = Quick("a"), Quick("a")
    assert first.words == second.words
    assert first.words is not second.words


def test_it_is_frozen_and_checked():
    with pytest.raises(FrozenInstanceError):
        Quick("a").count = 4  # type: ignore[misc]
    with pytest.raises(ValueError, match="below 0"):
        Quick("a", -1)
    with pytest.raises(TypeError):
        Quick()  # type: ignore[call-arg]
