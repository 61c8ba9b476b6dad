"""Records that are made quickly are like all frozen dataclasses."""

import copy
import inspect
import pickle
from dataclasses import dataclass, field, replace

import pydantic
import pytest

from foresail.model.containers import quickly_made, replaced


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
    assert replace(quick, count=5) == replaced(quick, count=5) == Quick("a", 5, quick.words)
    assert pickle.loads(pickle.dumps(quick)) == copy.deepcopy(quick) == quick
    assert [*inspect.signature(Quick).parameters] == [*inspect.signature(Usual).parameters]


def test_each_has_its_own_of_what_is_made_anew():
    first, second = Quick("a"), Quick("a")
    assert first.words == second.words
    assert first.words is not second.words


def test_it_is_frozen_and_checked():
    with pytest.raises(AttributeError):
        Quick("a").count = 4  # type: ignore[misc]
    with pytest.raises(ValueError, match="below 0"):
        Quick("a", -1)
    with pytest.raises(TypeError):
        Quick()  # type: ignore[call-arg]


def test_its_fields_are_checked_as_those_of_the_usual_one():
    usual, quick = pydantic.TypeAdapter(Usual), pydantic.TypeAdapter(Quick)
    for fields in ({"name": "a"}, {"name": "a", "count": "4", "words": ("b", "c")}):
        expected = usual.validate_python(fields)
        made = quick.validate_python(fields)
        assert [made.name, made.count, made.words] == [
            expected.name,
            expected.count,
            expected.words,
        ]
    for fields in ({}, {"name": 1}, {"name": "a", "count": 0.5}):
        with pytest.raises(pydantic.ValidationError):
            usual.validate_python(fields)
        with pytest.raises(pydantic.ValidationError):
            quick.validate_python(fields)


def test_one_that_is_not_frozen_may_change():
    @quickly_made
    @dataclass(slots=True)
    class Counted:
        count: int = 0

    counted = Counted()
    counted.count += 1
    assert counted == Counted(1)
