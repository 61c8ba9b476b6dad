"""Containers: rosters and their lists, records that are made quickly, late tuples."""

import copy
import inspect
import pickle
import weakref
from array import array
from dataclasses import dataclass, field, replace

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.containers import (
    FloatColumn,
    Followed,
    LateTuple,
    Roster,
    quickly_made,
    replaced,
)


@dataclass(frozen=True)
class Entry:
    number: int
    word: str = ""


def roster(*numbers):
    made = Roster(lambda entry: entry.number)
    for number in numbers:
        made.put(str(number), Entry(number))
    return made


def test_what_was_shown_stays_as_it_was():
    jobs = roster(1, 2, 3)
    before = jobs.listed()
    jobs.take("2")
    jobs.put("3", Entry(3, "changed"))
    assert before == (Entry(1), Entry(2), Entry(3))
    assert jobs.listed() == (Entry(1), Entry(3, "changed"))
    assert (len(before), before[-1], before[:1]) == (3, Entry(3), (Entry(1),))


@given(st.lists(st.sampled_from(("put", "change", "take")), max_size=60), st.randoms())
def test_all_that_was_ever_shown_stays(changes, draw):
    """Against copies; few changes are remembered at once, so that many successions of them come."""
    jobs, model = roster(), {}
    jobs._most = 3
    shown = []
    for number, change in enumerate(changes):
        if change == "put" or not model:
            model[number] = Entry(number)
            jobs.put(str(number), model[number])
        else:
            some = draw.choice(sorted(model))
            if change == "change":
                model[some] = Entry(some, str(number))
                jobs.put(str(some), model[some])
            else:
                jobs.take(str(some))
                del model[some]
        shown.append((jobs.listed(), tuple(model[each] for each in sorted(model))))
        if draw.random() < 0.3:
            assert tuple(shown[-1][0]) == shown[-1][1]
        jobs._most = 3
    draw.shuffle(shown)
    for listed, entries in shown:
        assert tuple(listed) == entries


@quickly_made
@dataclass(frozen=True, slots=True)
class Kept:
    number: int
    word: str = ""


def kept(*numbers):
    """A roster in two groups of two kinds each."""
    made = Roster(lambda each: each.number, lambda each: (each.number % 2, each.number % 4))
    for number in numbers:
        made.put(str(number), Kept(number))
    return made


_SUCCESSIONS = st.lists(
    st.sampled_from(("put", "change", "take", "alter", "look", "look at all", "show", "drop")),
    max_size=60,
)


@given(_SUCCESSIONS, st.randoms())
def test_altered_entries_are_as_if_they_were_made_at_once(changes, draw):
    """Against copies, with lists that are still there and others that nobody has any more."""
    jobs, model, shown = kept(), {}, []
    jobs._most = 3
    for number, change in enumerate(changes):
        some = draw.choice(sorted(model)) if model else None
        if change == "put" or some is None:
            model[number] = Kept(number)
            jobs.put(str(number), model[number])
        elif change == "change":
            model[some] = Kept(some, f"{model[some].word}!")
            jobs.put(str(some), model[some])
        elif change == "take":
            assert jobs.take(str(some)) == model.pop(some)
        elif change == "alter":
            jobs.alter((some % 2, some % 4), {"word": str(number)})
            model |= {each: Kept(each, str(number)) for each in model if each % 4 == some % 4}
        elif change == "look":
            assert jobs.by_id[str(some)] == model[some]
        elif change == "look at all":
            assert {each.number: each for each in jobs.by_id.values()} == model
        elif change == "show":
            shown.append((jobs.listed(), tuple(model[each] for each in sorted(model))))
        elif shown:
            shown.pop(draw.randrange(len(shown)))
    for listed, entries in shown:
        assert tuple(listed) == entries
    assert tuple(jobs.copy().listed()) == tuple(model[each] for each in sorted(model))


def test_a_kind_is_altered_without_a_look_at_its_entries():
    jobs, followed = kept(*range(8)), Followed()
    followed.changes_to(jobs.listed())
    jobs.alter((1, 3), {"word": "new"})
    assert dict(jobs._entries) == {str(number): Kept(number) for number in range(8)}
    jobs.put("9", Kept(9))
    jobs.put("11", Kept(11))
    (altered, *puts) = followed.changes_to(jobs.listed())
    assert (altered.kind, altered.values) == ((1, 3), {"word": "new"})
    assert puts == [(None, Kept(9)), (None, Kept(11))]
    assert [jobs.by_id[each].word for each in ("1", "3", "7", "11")] == ["", "new", "new", ""]
    assert {kind: [*keys] for kind, keys in jobs.kinds_of([1, 5])} == {
        (1, 1): ["1", "5", "9"],
        (1, 3): ["3", "7", "11"],
    }


def test_a_list_is_made_before_its_entries_are_altered_and_only_if_somebody_has_it():
    jobs = kept(1, 2, 3)
    before = jobs.listed()
    jobs.alter((1, 3), {"word": "new"})
    assert before._entries == (Kept(1), Kept(2), Kept(3))
    jobs.listed()
    asked = []
    jobs.in_order = lambda: asked.append(1)  # type: ignore[method-assign]
    jobs.alter((1, 3), {"word": "newer"})
    assert asked == []


def test_who_comes_back_is_put_into_place():
    jobs = roster(1, 2, 3)
    jobs.take("2")
    jobs.put("4", Entry(4))
    jobs.put("2", Entry(2))
    assert [entry.number for entry in jobs.listed()] == [1, 2, 3, 4]


def test_a_list_says_what_has_changed_since_another():
    jobs = roster(1, 2)
    first = jobs.listed()
    jobs.take("1")
    jobs.put("2", Entry(2, "changed"))
    second = jobs.listed()
    jobs.put("3", Entry(3))
    followed = Followed()
    assert followed.changes_to(first) is None
    expected = [(Entry(1), None), (Entry(2), Entry(2, "changed"))]
    assert list(followed.changes_to(second)) == expected
    assert list(followed.changes_to(second)) == []
    assert followed.changes_to(first) is None
    assert followed.changes_to(tuple(second)) is None
    assert followed.changes_to(second) is None
    assert followed.changes_to(roster(1).listed()) is None


def test_changes_of_long_ago_are_forgotten():
    jobs, followed = roster(0), Followed()
    followed.changes_to(jobs.listed())
    for number in range(1, 5_000):
        jobs.put(str(number), Entry(number))
        jobs.take(str(number))
    assert followed.changes_to(jobs.listed()) is None
    assert jobs.listed() == (Entry(0),)


def test_few_changes_are_kept_however_many_there_are():
    """Each keeps entries that are gone; whoever comes late looks at all there are."""
    made, gone = roster(*range(20_000)), []
    for again in ("x", "y", "z"):
        for number in range(20_000):
            entry = Entry(number, again)
            gone.append(weakref.ref(entry))
            made.put(str(number), entry)
    assert sum(each() is not None for each in gone) < 20_000 + 20_000
    assert len(made.listed()) == 20_000


def test_a_list_is_shown_without_being_made():
    jobs = roster(*range(10))
    asked = []
    jobs.in_order = lambda: asked.append(1)  # type: ignore[method-assign]
    for number in range(10):
        assert len(jobs.listed()) == 10 - number
        jobs.take(str(number))
    assert asked == []


def test_a_pickled_list_is_a_tuple():
    assert pickle.loads(pickle.dumps(roster(1).listed())) == (Entry(1),)


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


class Counting(LateTuple[int]):
    """Makes its tuple anew each time, and counts how often."""

    def __init__(self, *entries):
        self.entries = entries
        self.made = 0

    def materialise(self):
        self.made += 1
        return self.entries


def test_it_is_as_good_as_a_tuple():
    some = Counting(3, 1, 2)
    assert some.made == 0
    assert some == (3, 1, 2) == some
    assert some == Counting(3, 1, 2)
    assert some != (3, 1)
    assert hash(some) == hash((3, 1, 2))
    assert (len(some), some[0], some[1:], list(some)) == (3, 3, (1, 2), [3, 1, 2])
    assert 1 in some
    assert some.index(2) == 2
    assert repr(some) == "(3, 1, 2)"
    assert pickle.loads(pickle.dumps(some)) == (3, 1, 2)


def test_numbers_are_kept_to_the_last_digit():
    numbers = [0.1, -2.5, 1e300, float("inf")]
    column = FloatColumn(array("d", numbers).tobytes())
    assert column == tuple(numbers)
    assert column == tuple(numbers)
    assert len(FloatColumn(b"")) == 0
