"""Jobs files: what is accepted, and the words for what is not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from empty_rooms import empty_room
from foresail.live.command_job import CommandJob
from foresail.live.jobs_file import InvalidJobs, JobLines, read_jobs
from foresail.model.cluster import Cluster, Resources
from foresail.model.errors import ForesailError, InputError
from foresail.model.job import DeadlineValue, DecayingValue
from foresail.model.preference import Preference, PreferenceKind
from foresail.model.words import duration_of, parse_duration
from foresail.strl.own_requests import RequestPlaces

TOML = """
[[job]]
command = "echo one"

[[job]]
name = "second"
command = ["printf", "%s", "two words"]
cpus = 2
requested_time = "1h30m"
after = ["job-1"]
user = "ada"
environment = { LEVEL = 3, NAME = "x y" }
directory = "."
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def problems(folder: Path, name: str, text: str) -> list[str]:
    """What is said about a file that is wrong, a sentence per problem."""
    with pytest.raises(ForesailError) as raised:
        read_jobs(written(folder, name, text), empty_room(2.0, 2.0**35, 2.0), folder)
    return str(raised.value).splitlines()


def test_toml_tables_become_jobs_with_defaults(tmp_path):
    """Every field arrives with its type, and what is left out has its default."""
    first, second = read_jobs(
        written(tmp_path, "jobs.toml", TOML), empty_room(2.0, 2.0**35, 2.0), tmp_path
    )
    assert (first.job_id, first.name, first.cpus, first.requested_seconds) == (
        "job-1",
        "echo",
        1,
        None,
    )
    assert (first.words("f"), first.file_text) == (["/bin/sh", "f"], "echo one\n")
    assert second == CommandJob(
        job_id="second",
        name="second",
        command=("printf", "%s", "two words"),
        directory=str(tmp_path),
        cpus=2,
        cpus_per_task=2,
        requested_seconds=5400.0,
        after=("job-1",),
        user="ada",
        environment={"LEVEL": "3", "NAME": "x y"},
    )
    assert second.words("f") == ["printf", "%s", "two words"]
    assert second.text == "printf %s 'two words'"


def test_csv_and_json_lines_say_the_same_as_toml(tmp_path):
    """The three kinds of file give equal jobs."""
    rows = [
        {"name": "a", "command": "true", "cpus": 2, "requested_time": "00:10:00"},
        {"name": "b", "command": "false", "after": ["a"], "environment": {"K": "v"}},
    ]
    lines = "".join(json.dumps(row) + "\n\n" for row in rows)
    table = (
        'name,command,cpus,requested_time,after,environment\na,true,2,600,,\nb,"false",,,a,K=v\n'
    )
    toml = (
        '[[job]]\nname="a"\ncommand="true"\ncpus=2\nrequested_time=600\n'
        '[[job]]\nname="b"\ncommand="false"\nafter="a"\nenvironment={K="v"}\n'
    )
    read = [
        read_jobs(written(tmp_path, name, text), empty_room(2.0, 2.0**35, 2.0), tmp_path)
        for name, text in (("j.jsonl", lines), ("j.csv", table), ("j.toml", toml))
    ]
    assert read[0] == read[1] == read[2]
    assert [job.requested_seconds for job in read[0]] == [600.0, None]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("cpus", "0", "a whole number, at least 1"),
        ("cpus", "1.5", "a whole number, at least 1"),
        ("cpus", "true", "a whole number, at least 1"),
        ("cpus", "3", "at most 2"),
        ("requested_time", '"soon"', "seconds or a duration"),
        ("requested_time", '"10:00"', "seconds or a duration"),
        ("requested_time", "-4", "a positive number of seconds"),
        ("requested_time", "false", "seconds or a duration"),
        ("name", '"a/b"', "can be printed"),
        ("name", "7", "can be printed"),
        ("after", "[1]", "names or ids of jobs"),
        ("after", '"nobody"', "the name of another job"),
        ("environment", '{ "A=B" = "c" }', "a table of variables"),
        ("environment", '"A"', "a table of variables"),
        ("directory", '"no/such/place"', None),
        ("user", '""', "a user name"),
        ("command", "[]", "a list of one or more strings"),
        ("command", '["a", "b\\u0000c"]', "a list of one or more strings"),
        ("command", '"a\\u0000"', "a command line, or a list"),
        ("cmd", '"true"', "'command'"),
    ],
)
def test_a_bad_field_is_named_with_its_line_value_and_what_was_expected(
    tmp_path, field, value, expected
):
    """The table's line, the field and the remedy are in the one sentence that is raised."""
    head = "" if field == "command" else 'command = "true"\n'
    (sentence,) = problems(
        tmp_path,
        "jobs.toml",
        f'[[job]]\ncommand = "true"\n\n[[job]]\n{head}{field} = {value}\n',
    )
    assert "jobs.toml, line 4" in sentence
    assert f"field '{field}'" in sentence
    if expected is not None:
        assert expected in sentence.partition("; expected ")[2]


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    """A person mends a file in one go: every problem of every job has its own line."""
    said = problems(
        tmp_path,
        "jobs.jsonl",
        '{"command": "a", "cpus": 0, "nam": "x"}\n{"name": "y"}\n{"name": "y", "command": "b"}\n',
    )
    assert len(said) == 4
    assert "'name'" in said[1]
    assert "no command" in said[2]
    assert "exists already" in said[3]


def test_jobs_that_wait_for_each_other_are_refused(tmp_path):
    """A cycle is shown as a circle, whatever other jobs are there."""
    (sentence,) = problems(
        tmp_path,
        "jobs.csv",
        "name,command,after\na,true,c\nb,true,a\nc,true,b\nd,true,a\n",
    )
    assert "jobs wait for each other" in sentence
    assert " after " in sentence


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("jobs.toml", "", "no jobs"),
        ("jobs.toml", "[[job]\n", "not TOML"),
        ("jobs.toml", "[job]\ncommand='x'\n", "not a list of tables"),
        ("jobs.toml", "[[jobs]]\ncommand='x'\n", "unknown table"),
        ("jobs.csv", "command\n", "no jobs"),
        ("jobs.csv", "command,name\ntrue\n", "1 columns; expected 2"),
        ("jobs.csv", 'command\n"true\n', "not CSV"),
        ("jobs.jsonl", "{", "not JSON"),
        ("jobs.jsonl", "[1]", "not a JSON object"),
        ("jobs.yaml", "", "unknown kind of file"),
    ],
)
def test_files_that_are_not_jobs_files_are_refused(tmp_path, name, text, expected):
    """Each kind of broken file has its own words, with the file's name."""
    (sentence,) = problems(tmp_path, name, text)
    assert expected in sentence
    assert name in sentence


def test_a_missing_or_binary_file_is_an_input_error(tmp_path):
    """Neither ends in a traceback."""
    with pytest.raises(InputError, match="cannot be read"):
        read_jobs(tmp_path / "absent.toml", empty_room(2.0, 2.0**35, 2.0), tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text"):
        read_jobs(tmp_path / "binary.toml", empty_room(2.0, 2.0**35, 2.0), tmp_path)


def test_lines_are_commands_or_objects_and_a_refused_one_leaves_no_trace(tmp_path):
    """Blank lines and comments are passed over; a name that was refused can be used again."""
    reader = JobLines(empty_room(2.0, 2.0**35, 2.0), tmp_path, "standard input")
    assert reader.line("  # nothing", 1) is None
    assert reader.line("", 2) is None
    first = reader.line("sleep 1 # a comment of the shell", 3)
    assert first is not None
    assert first.command == "sleep 1 # a comment of the shell"
    with pytest.raises(InvalidJobs, match=r"line 4.*no job of this name"):
        reader.line('{"name": "b", "command": "true", "after": "later"}', 4)
    with pytest.raises(InvalidJobs, match=r"line 5.*not JSON"):
        reader.line('{"name": ', 5)
    second = reader.line('{"name": "b", "command": "true", "after": "job-1"}', 6)
    assert second is not None
    assert second.after == ("job-1",)


@given(
    st.builds(
        CommandJob,
        job_id=st.text(min_size=1),
        name=st.text(),
        command=st.text() | st.lists(st.text(), min_size=1).map(tuple),
        directory=st.text(),
        cpus=st.integers(1, 99),
        requested_seconds=st.none() | st.floats(0.1, 1e9),
        after=st.lists(st.text(), max_size=3).map(tuple),
        user=st.text(),
        environment=st.dictionaries(st.text(), st.text(), max_size=3),
    )
)
def test_a_stored_job_is_read_back_equal(job):
    """The journal of accepted jobs loses nothing, and a job is one line of it."""
    line = job.to_json()
    assert "\n" not in line
    assert CommandJob.from_json(line) == job


@given(
    st.text() | st.dictionaries(st.text(), st.text() | st.integers() | st.none()).map(json.dumps)
)
def test_any_line_is_a_job_nothing_or_a_named_problem(line):
    """No line of standard input brings the supervisor down."""
    reader = JobLines(empty_room(2.0, 2.0**35, 2.0), Path.cwd(), "standard input")
    try:
        job = reader.line(line.replace("\n", " "), 1)
    except InvalidJobs as error:
        assert error.problems  # noqa: PT017 - either way is right
    else:
        assert job is None or job.words("f")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (600, 600),
        ("600", 600),
        ("0.5", 0.5),
        ("10 min", 600),
        ("10min", 600),
        ("1h30m", 5400),
        ("1 hour, 30 minutes", 5400),
        ("2 days 3h", 183_600),
        ("250ms", 0.25),
        ("00:10:00", 600),
        ("1-12:00:00", 129_600),
        ("0:00:01.5", 1.5),
    ],
)
def test_durations_are_read_as_people_mean_them(text, seconds):
    """Numbers with units, clocks and plain seconds."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "10:00", "1h30", "ten", "5 parsecs", "nan", "0", "-1", "1e3s", 10**400]
)
def test_durations_that_could_be_misread_are_refused(text):
    """The message says what would be accepted."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_a_duration_of_an_option_may_be_nothing_and_is_refused_by_its_name():
    """A grace or a delay of 0 is one."""
    assert [duration_of(text, "--grace") for text in (" 0", "0s", "2 min")] == [0.0, 0.0, 120.0]
    with pytest.raises(InputError, match=r"'--grace': not a duration .found '-1'.; expected 0, or"):
        duration_of("-1", "--grace")


def test_a_request_of_its_own_is_read_and_kept(tmp_path):
    """It is text in the file and on disk, options in what the scheduler is given."""
    places = RequestPlaces.on(Cluster.of_processors(2))
    text = '[[job]]\ncommand = "date"\ncpus = 2\nstrl = "nCk(all, 2, 1min, 10s, 3)"\n'
    (job,) = read_jobs(
        written(tmp_path, "jobs.toml", text), empty_room(2.0, 2.0**35, 2.0), tmp_path, places
    )
    assert CommandJob.from_json(job.to_json()) == job
    (option,) = job.specification(5.0).options
    assert (option.parts[0].nodes, option.starts) == (("all",), ((60.0, 3.0),))


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (
            RequestPlaces.on(Cluster.of_processors(2)),
            "jobs.csv, line 2, field 'strl': an unknown name (line 1, column 5 of the request) "
            "(found 'gpu'); expected",
        ),
        (None, "jobs.csv, line 2, field 'strl': this scheduler would start the job when"),
    ],
)
def test_a_wrong_request_is_told_with_its_line(tmp_path, places, words):
    """One that cannot be read, and any under a scheduler that would not keep to it."""
    path = written(tmp_path, "jobs.csv", 'command,strl\ndate,"nCk(gpu, 1, 0, 10s, 3)"\n')
    with pytest.raises(InvalidJobs) as raised:
        read_jobs(path, empty_room(2.0, 2.0**35, 2.0), tmp_path, places)
    assert words in str(raised.value)


def test_tasks_memory_deadlines_worth_and_preferences():
    """As they are written, as schedulers know them, and as they are kept."""
    record = {
        "command": "true",
        "cpus": 2,
        "tasks": 3,
        "memory": "2GiB",
        "gpus": 2,
        "deadline": "1h",
        "worth": 4,
        "preferred": "partition:a,b",
        "slowdown_elsewhere": 1.5,
        "user": "ann",
    }
    job = ROOMY.job(record, None)
    known = job.specification(100.0)
    assert (known.total, known.tasks) == (Resources(6.0, 6 * 2.0**30, 2.0), 3)
    assert known.stages[0].request == Resources(2.0, 2.0**31, 2 / 3)
    assert known.value == DeadlineValue(3700.0, 4.0)
    assert known.preference == Preference(PreferenceKind.PARTITION, ("a", "b"), 1.5)
    assert CommandJob.from_json(job.to_json()) == job
    again = ROOMY.job({**job.record(), "name": "again", "user": "ann"}, None)
    assert replace(again, job_id=job.job_id, name=job.name) == job
    fades = ROOMY.job({"command": "true", "decay": 50, "worth": 2}, None)
    assert fades.specification(100.0).value == DecayingValue(100.0, 150.0, 2.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory", "much"),
        ("memory", -1),
        ("memory", "0"),
        ("memory", "8"),
        ("memory", 2**31),
        ("memory", "0GiB"),
        ("memory", "999TiB"),
        ("gpus", 3),
        ("gpus", -1),
        ("gpus", 0.5),
        ("gpus", True),
        ("deadline", "soon"),
        ("worth", -1),
        ("worth", "nan"),
        ("worth", 10**400),
        ("directory", 5000 * "9"),
        ("requested_time", 10**400),
        ("preferred", "rack"),
        ("preferred", 3),
        ("slowdown_elsewhere", 0.5),
        ("tasks", 0),
        ("tasks", 9),
        ("arguments", ["a"]),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(field, value):
    assert refused({"command": "true", field: value}) == [field]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({}, "command"),
        ({"command": "true", "script": "#!/bin/sh\n"}, "command"),
        ({"script": "#!/bin/sh\r\ntrue\r\n"}, "script"),
        ({"script": "a\0b"}, "script"),
        ({"script": "true", "arguments": [1]}, "arguments"),
        ({"command": "true", "deadline": 5, "decay": 5}, "decay"),
    ],
)
def test_what_cannot_be_meant_together_is_refused_by_name(record, field):
    assert refused(record) == [field]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("output", "%J.out", "%J is not known"),
        ("errors", "out%", "% is not known"),
        ("open_mode", "w", "append or truncate"),
        ("requeue", 1, "true or false"),
        ("begin", "soon", "seconds"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(field, value, said):
    with pytest.raises(InvalidJobs, match=said) as error:
        ROOMY.job({"command": "true", field: value}, None)
    assert f"'{field}'" in str(error.value)


def refused(record):
    """The fields of a job that are said to be wrong."""
    with pytest.raises(InvalidJobs) as error:
        ROOMY.job(record, 3)
    return [each.field for each in error.value.problems]


ROOMY = JobLines(empty_room(8.0, 2.0**41, 2.0), Path("/"), "here")


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1024B", 1024.0), ("2k", 2048.0), ("1.5 GiB", 1.5 * 2**30), ("500MB", 5e8), ("1T", 2.0**40)],
)
def test_sizes_as_people_write_them(text, amount):
    job = JobLines(empty_room(8.0, 2.0**41), Path("/"), "here").job(
        {"command": "true", "memory": text}, None
    )
    assert job.memory_bytes == amount


def test_half_a_surrogate_pair_is_kept_as_it_is():
    job = CommandJob("1", "a\ud800", ("echo", "\udc00"), "/", after=("3",))
    assert CommandJob.from_json(job.to_json()) == job
