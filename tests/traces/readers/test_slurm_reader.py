"""What ``sacct`` prints, in every form: the right jobs, or a sentence that says what is wrong."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces.facts import facts
from foresail.traces.readers.slurm import attempts_of
from foresail.traces.reading import Notes, read
from foresail.traces.sacct import table_of
from foresail.traces.workload import Workload
from shared import shared

HEAD = "JobID|User|JobName|Submit|Start|End|Elapsed|NCPUS|Timelimit|State"


def row(job_id: str = "7", **changed: str) -> str:
    """A row below ``HEAD``."""
    day = "2024-05-01T"
    fields = {
        "JobID": job_id,
        "User": "ann",
        "JobName": "fit",
        "Submit": f"{day}10:00:00",
        "Start": f"{day}10:01:00",
        "End": f"{day}11:01:00",
        "Elapsed": "01:00:00",
        "NCPUS": "4",
        "Timelimit": "02:00:00",
        "State": "COMPLETED",
    }
    return "|".join((fields | changed).values())


@pytest.fixture
def sacct(tmp_path):
    """Read an output, without a mapping."""

    def run(*lines: str, head: str = HEAD, **options) -> Workload:
        path = tmp_path / "sacct.txt"
        path.write_bytes("\n".join([head, *lines, ""]).encode())
        return read(path, **options)

    return run


def column(workload: Workload, name: str) -> dict[str, object]:
    """Values of a column by job."""
    return dict(workload.jobs.select("job_id", name).iter_rows())


@pytest.mark.parametrize(
    ("name", "jobs"),
    [
        *((f"slurm-22.05/{name}.txt", 75) for name in ("docs", "epoch", "delim3")),
        *((f"slurm-22.05/{n}-steps.txt", 74) for n in ("typical", "all")),
        *((f"slurm-22.05/{n}", 74) for n in ("steps-noname.txt", "duplicates.txt", "jobs.json.gz")),
        *(("c04.txt", 802), ("c05.txt", 3), ("c08.txt", 2), ("c15.json", 2), ("edge.txt", 398)),
    ],
)
def test_reported_outputs(name: str, jobs: int) -> None:
    """As many jobs as there were, whatever the format; all that has run has its runtime."""
    workload = read(shared(f"cases/accounting/{name}"))
    assert len(workload) == jobs
    assert workload.meta.lost == ()
    if "22.05" in name:
        assert column(workload, "runtime_seconds")["74"] == 12.0
        assert column(workload, "tasks")["6"] == 4
        assert column(workload, "requested_seconds")["6"] == 86_400.0
        assert column(workload, "requested_seconds")["18"] is None
        assert column(workload, "tasks")["25"] == (1 if jobs == 75 else 4)


def test_load_of_a_full_week() -> None:
    """Four jobs of 4 cpus run at any time but the ends: 16 cpus have 1.0 of what they can do."""
    jobs = read(shared("cases/accounting/edge.txt"), processors=16)
    assert facts(jobs).offered_load == pytest.approx(9_552_000 / (16 * 595_500), abs=1e-9)


def test_reported_amounts() -> None:
    """Memory of a node, a cpu and a job, gpus by model and in all, runs without suspension."""
    jobs = read(shared("cases/accounting/c05.txt")).jobs
    memory = jobs["memory_bytes_per_task"] * jobs["tasks"]
    assert memory.to_list() == [16_000 * 2**20, 32 * 2**30, 64 * 2**30]
    assert (jobs["gpus_per_task"] * jobs["tasks"]).to_list() == [2.0, 4.0, 0.0]
    suspended = read(shared("cases/accounting/c08.txt"))
    assert suspended.jobs["runtime_seconds"].to_list() == [3_600.0, 3_600.0]
    wrapped = read(shared("cases/accounting/c15.json")).jobs
    assert wrapped["requested_seconds"].to_list() == [7_200.0, None]
    assert wrapped["status"].to_list() == ["completed", "failed"]
    assert wrapped["memory_bytes_per_task"].to_list() == [None, None]  # of a node, of how many?
    assert (wrapped["gpus_per_task"] * wrapped["tasks"]).to_list() == [2.0, 0.0]


def test_outputs_of_one_cluster_agree() -> None:
    """Text and JSON of the same jobs have the same submissions, runtimes, widths and limits."""
    names = ["job_id", "submit_seconds", "recorded_wait_seconds", "runtime_seconds", "tasks"]
    names += ["requested_seconds", "user", "partition", "executable", "memory_bytes_per_task"]
    folder = "cases/accounting/slurm-22.05"
    text, json_of_it = (
        read(shared(f"{folder}/{name}")).jobs.select(names).sort("job_id")
        for name in ("all-steps.txt", "jobs.json.gz")
    )
    assert text.equals(json_of_it)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("|", ","),
        lambda text: text.replace("|", "\t"),
        lambda text: text.replace("|", "^|^"),
        lambda text: text.replace("|", " ; "),
        lambda text: text.replace("\n", "|\n"),  # sacct -p
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\n" + text + "\n\n",
        lambda text: text.replace("JobID|", "jobid|").replace("|State", "|STATE"),
        lambda text: "\n".join(f'"{line}"' for line in text.replace("|", '","').split("\n")[:-1]),
        lambda text: text + text,  # a header again, and each row
        lambda text: text.replace("T10:", "T10:").replace("2024-05-01T", "2024-05-01 "),
        lambda text: text.replace("COMPLETED", "COMPLETED ").replace("ann", " ann"),
    ],
)
def test_layouts(sacct, tmp_path, change) -> None:
    """Every delimiter, line end and mark, quotes of other programs, and a file joined to itself."""
    rows = [row("7"), row("8_1", State="CANCELLED by 1000", JobName=""), row("9", NCPUS="2")]
    plain = sacct(*rows).jobs
    (tmp_path / "sacct.txt").write_text(change("\n".join([HEAD, *rows, ""])))
    changed = read(tmp_path / "sacct.txt").jobs
    assert changed.equals(plain)
    assert plain["status"].to_list() == ["completed", "cancelled", "completed"]
    assert plain["runtime_seconds"].to_list() == [3_600.0] * 3
    assert plain["recorded_wait_seconds"].to_list() == [60.0] * 3


def fixed(widths: list[int], *lines: str) -> list[str]:
    """The same in columns of fixed width, cut off as ``sacct`` does."""
    cells = [[*line.split("|")] for line in lines]
    cells.insert(1, ["-" * width for width in widths])
    shown = []
    for fields in cells:
        texts = []
        for text, width in zip(fields, widths, strict=True):
            raw = text.encode()
            raw = raw if len(raw) <= width else raw[: width - 1] + b"+"
            texts.append(raw.rjust(width).decode("utf-8", "replace"))
        shown.append(" ".join(texts) + " ")
    return shown


def test_columns_of_fixed_width(sacct) -> None:
    """Names and states that are cut off; widths are bytes; an id that is cut off is none."""
    widths = [12, 9, 10, 19, 19, 19, 10, 10, 10, 10]
    rows = [
        row("1234567", JobName="a much longer name"),
        row("8", State="CANCELLED by 1000", JobName="müller"),
        row("9", State="OUT_OF_MEMORY", JobName=""),
        row("9.batch"),
    ]
    head, *lines = fixed(widths, HEAD, *rows)
    workload = sacct(*lines, head=head)
    assert column(workload, "status") == {"1234567": "completed", "8": "cancelled", "9": "failed"}
    assert column(workload, "executable")["1234567"] == "a much lo+"
    assert workload.jobs["runtime_seconds"].to_list() == [3_600.0] * 3
    head, *lines = fixed(widths, HEAD, row("1234567_[1-300%5]"))
    with pytest.raises(InputError, match=r"an id in 'job_id' .*line 3: '1234567_\[1-\+'"):
        sacct(*lines, head=head)


@pytest.mark.parametrize(
    "name", ["a|b", "a\nb", "|", "\n", 'one " quote', "a|b|c\n\nd|", "7|ann|fit"]
)
def test_hostile_names(sacct, name: str) -> None:
    """They hold the delimiter and line ends, and look like rows; no job is lost or made up."""
    workload = sacct(row("6"), row("7", JobName=name), row("8"))
    assert column(workload, "executable") == {"6": "fit", "7": name.strip(" "), "8": "fit"}
    assert workload.jobs["tasks"].to_list() == [4, 4, 4]


def test_a_name_that_is_all_of_a_row(sacct) -> None:
    """It could be one, so that the output is refused."""
    with pytest.raises(InputError, match="line 3: '3 fields: 7"):
        sacct(row("6"), row("7", JobName="a\n99|eve|x"), row("8"))


def test_a_name_in_the_last_column(sacct) -> None:
    """It goes on in lines without any delimiter."""
    head = "JobID|Submit|Start|End|NCPUS|State|JobName"
    rest = "2024-05-01T10:00:00|2024-05-01T10:00:00|2024-05-01T10:00:09|1|COMPLETED"
    workload = sacct(f"1|{rest}|two", "lines", f"2|{rest}|", f"3|{rest}|a|b", head=head)
    assert column(workload, "executable") == {"1": "two\nlines", "2": None, "3": "a|b"}


def test_what_may_be_parted_in_two_ways_is_refused(sacct) -> None:
    """Of two names beside each other nobody can say which holds the delimiter."""
    head = HEAD.replace("|Submit", "|Comment|Submit")
    with pytest.raises(InputError, match=r"line 2: 'may be parted in several ways"):
        sacct(row(JobName="a|b|c"), head=head)


def test_lists_with_the_delimiter_within(sacct) -> None:
    """Resources are listed with commas, which may be the delimiter too."""
    head = (HEAD + "|AllocTRES|ReqMem").replace("|", ",")
    line = (
        row("7_[1,3%1]").replace("|", ",")
        + ",billing=4,cpu=8,gres/gpu:a=1,gres/gpu:b=2,mem=8G,node=1,"
    )
    line = line.replace("COMPLETED", "PENDING")
    workload = sacct(line, line.replace("7_[1,3%1]", "8"), head=head)
    assert sorted(workload.jobs["job_id"]) == ["7_1", "7_3", "8"]
    assert workload.jobs["tasks"].to_list() == [8, 8, 8]
    assert (workload.jobs["gpus_per_task"] * 8).to_list() == [3.0] * 3


@pytest.mark.parametrize(
    ("field", "value", "column_name", "expected"),
    [
        *(
            ("Timelimit", each, "requested_seconds", None)
            for each in ("UNLIMITED", "Partition_Limit", "")
        ),
        ("Timelimit", "1-00:00:00", "requested_seconds", 86_400.0),
        ("Elapsed", "1-00:00:00", "runtime_seconds", None),
        ("Elapsed", "00:59:00", "runtime_seconds", 3_540.0),  # suspended
        ("Elapsed", "02:01:00", "runtime_seconds", 7_260.0 - 0.0),
        ("NCPUS", "2K", "tasks", 2_048),
        ("State", "NODE_FAIL", "status", "failed"),
        ("State", "TIMEOUT", "status", "failed"),
        ("State", "RUNNING", "runtime_seconds", None),
        ("State", "SUSPENDED", "runtime_seconds", None),
        ("Start", "Unknown", "recorded_wait_seconds", None),
        ("Start", "None", "recorded_wait_seconds", None),
        ("Start", "1970-01-01T01:00:00", "recorded_wait_seconds", None),
        ("Start", "2024-05-01T09:59:30", "recorded_wait_seconds", 0.0),
        ("Start", "2024-05-01T12:01:00+0200", "recorded_wait_seconds", 60.0),
        ("Start", "1714557660", "recorded_wait_seconds", 60.0),
        ("User", "", "user", None),
    ],
)
def test_values(sacct, field: str, value: str, column_name: str, expected: object) -> None:
    """What a field may hold, and what is made of it."""
    if value == "1-00:00:00" and field == "Elapsed":
        with pytest.raises(InputError, match=r"from Start to End in 'Elapsed' .*line 2: '86400.0'"):
            sacct(row(**{field: value}))
        return
    if value == "02:01:00":  # clocks were put back in the night: at most an hour more
        sacct(row(**{field: "02:00:00"}))
        with pytest.raises(InputError, match="Elapsed"):
            sacct(row(**{field: value}))
        return
    assert sacct(row(**{field: value})).jobs[column_name].to_list() == [expected]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("JobID", each) for each in ("x", "7_", "7_[a]", "7.batch", "7_[1-", "+1")),
        *(("Submit", each) for each in ("yesterday", "10:05:33", "2024-13-01T00:00:00", "1e9")),
        *(("Start", each) for each in ("1 May", "2024-05-01T25:00:00", "-5")),
        *(("Elapsed", each) for each in ("10:30", "-1", "1 hour", "nan")),
        *(("Timelimit", each) for each in ("10:30", "60", "soon", "-1-00:00:00")),
        *(("NCPUS", each) for each in ("four", "-4", "1.5", "0x4")),
        *(("State", each) for each in ("DONE", "C", "RE+", "COMPLETE")),
    ],
)
def test_values_that_are_none(sacct, field: str, value: str) -> None:
    """They are refused by line, field and value."""
    said = "job_id" if field == "JobID" else field
    with pytest.raises(InputError, match=rf"in '{said}' \(the first is line 3: '") as caught:
        sacct(row("6"), row(**{field: value}))
    assert value in str(caught.value)


@pytest.mark.parametrize(("field", "value"), [("ElapsedRaw", "1e3"), ("TimelimitRaw", "2.5")])
def test_numbers_that_are_not_whole(sacct, field: str, value: str) -> None:
    """Slurm writes none."""
    with pytest.raises(InputError, match=rf"in '{field}' .*line 2: '{value}'"):
        sacct(f"{row()}|{value}", head=f"{HEAD}|{field}")


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("JobID|User|NCPUS|State|Start|End", "field 'Submit'"),
        ("JobID|Submit|Start|End|State", "field 'AllocCPUS'.* AllocCPUS or AllocTRES or NCPUS"),
        ("JobID|Submit|NCPUS|Start|Elapsed", "field 'State'.* State or End"),
        ("JobID|Submit|NCPUS|Start|State", "field 'Elapsed'"),
        ("JobID|Submit|NCPUS|End|State|Submit", "two columns .*|field 'Submit'"),
        ("User|Submit|NCPUS|Start|End|State", "no reader knows"),
    ],
)
def test_fields_that_are_needed(sacct, head: str, words: str) -> None:
    """One that is not there is named."""
    with pytest.raises(InputError, match=words):
        sacct("1|2|3|4|5|6", head=head)


def test_an_output_without_header(sacct) -> None:
    """It cannot be read: columns are not guessed."""
    with pytest.raises(InputError, match=r"line 1: holds no header line of sacct .*without -n"):
        sacct(row("8"), head=row("7"))


def test_two_outputs_of_other_formats_in_one_file(sacct) -> None:
    """The second header is refused, though its rows have as many fields."""
    other = HEAD.replace("Submit|Start", "Start|Submit")
    with pytest.raises(InputError, match="line 3: another header"):
        sacct(row(), other, row("8"))


def test_several_clusters_in_one_output(sacct) -> None:
    """Their ids say nothing together."""
    with pytest.raises(InputError, match=r"field 'Cluster': jobs of several clusters"):
        sacct(f"{row()}|a", f"{row('8')}|b", head=f"{HEAD}|Cluster")


def test_overlapping_windows(sacct) -> None:
    """A job that waited, then ran, then had ended, is one; so is an array of which tasks began."""
    waits = {"Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00", "State": "PENDING"}
    runs = {"End": "Unknown", "Elapsed": "00:10:00", "State": "RUNNING"}
    workload = sacct(
        *(row("7", **waits), row("7", **runs), row("7"), row("7", **runs)),
        *(row("8_[1-3%2]", **waits), row("8_1"), row("8_[2-3%2]", **waits)),
        *(row("9", **waits, Submit="2024-05-01T09:00:00"), row("9", **waits)),
    )
    assert column(workload, "runtime_seconds") == {
        "7": 3_600.0,
        "8_1": 3_600.0,
        "8_2": None,
        "8_3": None,
        "9": None,
    }
    assert workload.meta.repairs["folded_copies"] == 7


def test_attempts_of_a_job_that_was_requeued(sacct) -> None:
    """The last counts; the first is told; one that waits again has not run."""
    again = {"Submit": "2024-05-01T11:01:00", "Start": "2024-05-01T11:03:00"}
    waits = {"Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00", "State": "PENDING"}
    workload = sacct(
        row("7", State="REQUEUED"),
        row("7", **again, End="2024-05-01T11:03:10", Elapsed="00:00:10"),
        row("8", State="NODE_FAIL"),
        row("8", **again | waits),
    )
    assert column(workload, "runtime_seconds") == {"7": 10.0, "8": None}
    assert column(workload, "extra")["7"] == "earlier attempts ran 3600.0 s"
    restarted = sacct(f"{row()}|2", head=f"{HEAD}|Restarts")
    assert column(restarted, "extra") == {"7": "restarted 2 times"}


def test_a_job_that_was_resized(sacct) -> None:
    """It is one, as wide as it was at most, from its first start to its last end."""
    later = {"Start": "2024-05-01T11:01:00", "End": "2024-05-01T11:31:00", "Elapsed": "00:30:00"}
    workload = sacct(row("7", State="RESIZING", NCPUS="8"), row("7", **later), row("8"))
    assert column(workload, "tasks") == {"7": 8, "8": 4}
    assert column(workload, "runtime_seconds") == {"7": 5_400.0, "8": 3_600.0}
    assert column(workload, "recorded_wait_seconds") == {"7": 60.0, "8": 60.0}


def test_heterogeneous_jobs(sacct) -> None:
    """Components are one job, as wide as all, each time that it ran."""
    again = {
        "Submit": "2024-05-01T11:01:00",
        "Start": "2024-05-01T11:03:00",
        "End": "2024-05-01T12:03:00",
    }
    workload = sacct(
        *(row("7+0", State="REQUEUED", NCPUS="2"), row("7+1", State="REQUEUED", NCPUS="6")),
        *(row("7+0.batch"), row("7+0", **again, NCPUS="2"), row("7+1", **again, NCPUS="6")),
        row("8+0"),
    )
    assert column(workload, "tasks") == {"7": 8, "8": 4}
    assert column(workload, "memory_bytes_per_task") == {"7": None, "8": None}
    assert column(workload, "extra")["7"] == "earlier attempts ran 3600.0 s"


def test_what_components_need_is_added_up(sacct) -> None:
    """Cpus, memory and gpus of a gang are those of all components."""
    tres = ("cpu=2,mem=1G,gres/gpu=1", "cpu=6,mem=15G,gres/gpu=3")
    lines = (f"{row(f'7+{at}', NCPUS=each[4])}|{each}" for at, each in enumerate(tres))
    (job,) = sacct(*lines, head=f"{HEAD}|AllocTRES").jobs.to_dicts()
    assert (job["tasks"], job["gpus_per_task"] * 8, job["memory_bytes_per_task"]) == (8, 4.0, 2**31)


def test_jobs_wait_from_when_they_are_eligible(sacct) -> None:
    """Those that wait for others or for a moment could not have started before; it is told."""
    head = HEAD + "|Eligible"
    ready = ("2024-05-01T10:00:30", "Unknown", "2024-05-01T10:02:00", "2024-05-01T09:00:00")
    workload = sacct(*(f"{row(str(at))}|{each}" for at, each in enumerate(ready)), head=head)
    assert column(workload, "recorded_wait_seconds") == {"0": 30.0, "1": 60.0, "2": 0.0, "3": 60.0}
    assert workload.meta.repairs["submitted_when_eligible"] == 2


@pytest.mark.parametrize(
    ("fields", "memory", "gpus"),
    [
        ("ReqMem=4Gc", 4 * 2**32, None),
        ("ReqMem=1.50Gn NNodes=2", 3 * 2**30, None),
        ("ReqMem=1.50Gn", None, None),
        ("ReqMem=64G", 2**36, None),
        *((f"ReqMem={none}", None, None) for none in ("0", "0n", "0Mc", "?")),
        ("ReqTRES=cpu=4,mem=512M", 2**29, 0.0),
        (
            "AllocTRES=billing=9,cpu=4,energy=9,gres/gpu:a100=2,gres/gpu=2,mem=4000,node=1",
            4_000 * 2**20,
            2.0,
        ),
        ("AllocTRES=1=4,2=4000,4=1,1002=2", 4_000 * 2**20, 2.0),
        ("AllocTRES=cpu=4,gres/gpu:h100:1=3 ReqMem=2G", 2**31, 3.0),
        ("AllocTRES=cpu=4,mem=1.50T", 1.5 * 2**40, 0.0),
    ],
)
def test_memory_and_gpus(sacct, fields: str, memory: float | None, gpus: float | None) -> None:
    """Of all of a job of four tasks; unknown where nothing is asked, or of unknown nodes."""
    names, values = zip(*(each.split("=", 1) for each in fields.split(" ")), strict=True)
    (job,) = sacct("|".join([row(), *values]), head="|".join([HEAD, *names])).jobs.to_dicts()
    assert (job["memory_bytes_per_task"] or 0.0) * 4 == (memory or 0.0)
    assert (None if job["gpus_per_task"] is None else job["gpus_per_task"] * 4) == gpus


def test_json_of_every_form(tmp_path) -> None:
    """Numbers plain or wrapped, states alone or as lists, tasks that wait, components."""
    limit = {"set": True, "infinite": False, "number": 60}
    none = {"set": False, "infinite": False, "number": 0}
    times = {"submission": 1_714_557_600, "eligible": 1_714_557_600, "start": 1_714_557_660}
    times |= {"end": 1_714_557_720, "elapsed": 60, "limit": limit}
    tres = {"allocated": [{"type": "cpu", "name": "", "count": 4}, {"type": "energy", "count": -2}]}
    job = {
        "job_id": 7,
        "user": "ann",
        "state": {"current": ["COMPLETED"]},
        "time": times,
        "tres": tres,
    }
    waits = {"array": {"job_id": 9, "task": "[1-3%2]", "task_id": none}, "job_id": 9}
    waits |= {"time": times | {"start": 0, "end": 0, "elapsed": 0}, "state": {"current": "PENDING"}}
    jobs = [
        job,
        job | {"job_id": 8, "time": times | {"limit": {"set": False, "infinite": True}}},
        job | waits,
        job | {"job_id": 12, "array": {"job_id": 10, "task_id": {"set": True, "number": 0}}},
        *(job | {"job_id": 20 + at, "het": {"job_id": 20, "job_offset": at}} for at in (0, 1)),
    ]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"meta": {}, "jobs": jobs, "errors": []}))
    workload = read(path)
    ids = ["7", "8", "9_1", "9_2", "9_3", "10_0", "20"]
    assert sorted(workload.jobs["job_id"]) == sorted(ids)
    assert column(workload, "requested_seconds")["8"] is None
    assert column(workload, "requested_seconds")["7"] == 3_600.0
    assert column(workload, "tasks")["20"] == 8
    assert column(workload, "runtime_seconds")["9_1"] is None
    for text, words in (
        (json.dumps({"jobs": jobs, "errors": ["slurmdbd is away"]}), "field 'errors'.*away"),
        (
            json.dumps({"jobs": [{"job_id": 1, "job_state": ["RUNNING"]}]}),
            r"field 'jobs\[0\]': is no job",
        ),
        (
            json.dumps({"jobs": [job | {"tres": {"allocated": [3]}}]}),
            r"field 'jobs\[0\]': is no job",
        ),
        (json.dumps({"jobs": jobs}, indent=1)[:-30], "line [0-9]+: is no JSON"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            read(path)


FREE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(FREE, min_size=1, max_size=4))
def test_no_name_behind_a_drawn_delimiter_breaks_a_row(names: list[str]) -> None:
    """So the observing service asks: each job is there once, with its name."""
    mark = "xQ0Qx"
    names = [name.replace("\r", "") for name in names]
    plain = [row(str(at), JobName="").split("|") for at in range(len(names))]
    rows = [[*each[:2], name, *each[3:]] for each, name in zip(plain, names, strict=True)]
    text = "\n".join(mark.join(fields) + mark for fields in [HEAD.split("|"), *rows])
    table = table_of(text.encode(), Notes(Path("sacct")), mark)
    assert table["JobName"].to_list() == [name.strip(" ") for name in names]
    assert attempts_of(table, Notes(Path("sacct"))).height == len(names)


def test_it_reads_a_long_output_in_time(tmp_path) -> None:
    """Within some 40 microseconds a row."""
    path = tmp_path / "sacct.txt.gz"
    rows = "\n".join([HEAD, *(row(str(at)) for at in range(20_000))])
    path.write_bytes(gzip.compress(rows.encode(), 1))
    begin = time.process_time()
    assert isinstance(read(path).jobs, pl.DataFrame)
    assert time.process_time() - begin < 2.0
