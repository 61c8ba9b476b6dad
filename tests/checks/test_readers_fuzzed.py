"""Files that are almost right are read or refused by name, whatever reads them."""

from __future__ import annotations

import warnings

import pytest

from checks.read_files import ReadFile, read_files
from checks.readers_fuzzed import surprises, unread_examples
from foresail.model.errors import InputError
from foresail.model.registry import Example, entries, register
from foresail.traces.reading import read
from long_series import of_a_series

INPUTS = of_a_series(1000, short=200)


@pytest.mark.parametrize("kind", list(read_files()), ids=lambda kind: kind.name)
def test_spoilt_files(kind):
    """Hundreds of spoilt files of each kind: a whole result, or an InputError with the file."""
    assert not list(unread_examples(kind))
    assert not [str(each) for each in surprises(kind, INPUTS)]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("reader google_2011", 1834),
        ("reader swf", 8984),
        ("reader canonical", 39071),
        ("reader canonical", 83479),
        ("reader canonical", 89260),
        ("reader canonical", 96625),
        ("reader canonical", 97794),
        ("price_source document", 8236),
        ("price_source document", 41392),
        ("price_source document", 59476),
        ("jobs", 11388),
        ("jobs", 40611),
        ("jobs", 67399),
        ("price_source skypilot-traces", 6204),
        ("price_source skypilot-traces", 9518),
    ],
)
def test_what_longer_searches_found(name, number):
    """Among tens of thousands of each kind, these were not refused by name once."""
    kinds = {kind.name: kind for kind in read_files()}
    assert not [str(each) for each in surprises(kinds[name], 1, number)]


def test_a_new_reader_joins_by_being_registered():
    """One without examples is tried with those of all others, one with examples with its own."""

    @register("reader", "nameless")
    class Nameless:
        def __init__(self, parameters):
            del parameters

        def recognises(self, sample):
            return False

        def chunks(self, notes):
            raise KeyError(b"".join(notes.source().blocks()))

    by_name = {kind.name: kind for kind in read_files()}
    assert {f"reader {entry.name}" for entry in entries("reader")} <= by_name.keys()
    kind = by_name["reader nameless"]
    assert kind.borrowed
    assert not list(unread_examples(kind))
    seen = [each.seen for each in surprises(kind, 20)]
    assert any("KeyError" in each for each in seen)
    Nameless.examples = staticmethod(lambda: (Example.of_text("a.log", "a"),))
    (own,) = (kind for kind in read_files() if kind.name == "reader nameless")
    assert own.examples == (Example.of_text("a.log", "a"),)


@pytest.mark.parametrize(
    ("read_it", "seen"),
    [
        (lambda path, _: int(path.read_bytes()), "ValueError"),
        (lambda path, _: warnings.warn("odd", stacklevel=1), "UserWarning: odd"),
        (lambda path, _: [path][1], "IndexError"),
    ],
)
def test_what_is_found_says_how_to_see_it_again(read_it, seen):
    """Any other exception, or a warning, is shown with its input, which comes again as told."""
    kind = ReadFile("odd", (Example.of_text("odd.txt", "one\n"),), read_it)
    first, *_ = surprises(kind, 10)
    assert seen in str(first)
    assert f"fuzz.py 'odd' --first {first.number}" in str(first)
    (again,) = surprises(kind, 1, first.number)
    assert again.content == first.content


def test_an_error_that_does_not_name_the_file():
    """An InputError must say which file is meant."""

    def refuse(path, options):
        raise InputError("not usable", source="somewhere")

    kind = ReadFile("odd", (Example.of_text("odd.txt", "one\n"),), refuse)
    assert "the file is not named" in next(surprises(kind, 1)).seen


QUOTED = "arrival_time,length,cpus\n0.0,0.75,4\n{}\n1.5,2.0,1\n"


@pytest.mark.parametrize(
    ("line", "repairs", "jobs"),
    [
        ('"0.5",19.25,"4"', {}, 3),
        ('"0.5"x,19.25,4', {"dropped_malformed_line": 1}, 2),
        ('0."5\n"5,19.25,4', {"dropped_malformed_line": 1}, 2),
        ("0.5,19.25,1e300", {"dropped_malformed_line": 1}, 2),
        ("0.5,1e99,4", {"unknown_for_impossible_runtime_seconds": 1}, 3),
    ],
)
def test_odd_lines_are_dropped_and_counted(tmp_path, line, repairs, jobs):
    """Quotes that do not match and numbers beyond all bounds cost a line or value, not the log."""
    path = tmp_path / "log.csv"
    path.write_text(QUOTED.format(line))
    workload = read(path, "gaia", strict=False)
    assert (len(workload), workload.meta.repairs) == (jobs, repairs)


def test_ids_that_look_renamed_already(tmp_path):
    """Every job has an id of its own, also where an earlier one is named as a repair would."""
    path = tmp_path / "log.tsv"
    path.write_text("".join(f"{name}\t5\t1\t1\t1\t1\n" for name in ("a", "a#2", "a")))
    assert read(path, "swim").jobs["job_id"].to_list() == ["a", "a#2", "a#2#2"]
