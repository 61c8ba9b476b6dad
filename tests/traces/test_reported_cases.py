"""Accounting as people reported it, read by a mapping: each case with its right answer.

The reported files are in ``../shared``; beside each there is a small one of the same kind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.model.errors import InputError
from foresail.traces.folder import convert, read_folder
from foresail.traces.reading import read
from foresail.traces.workload import Workload
from shared import shared

TIME = 'time = "%Y-%m-%dT%H:%M:%S"'
SACCT = f"""
[table]
delimiter = "|"
null = ["Unknown", "None", "UNLIMITED", "Partition_Limit"]
[columns]
job_id = "JobIDRaw"
user = "User"
submit_seconds = {{ column = "Submit", {TIME} }}
recorded_wait_seconds = {{ column = "Start", since = "Submit", {TIME} }}
runtime_seconds = {{ column = "End", since = "Start", {TIME} }}
requested_seconds = {{ column = "TimelimitRaw", unit = "minutes" }}
tasks = "NCPUS"
status = {{ column = "State", values = {{ COMPLETED = "completed", CANCELLED = "cancelled" }} }}
"""
PLAIN = SACCT.replace(f", {TIME}", "").replace(f"time = {TIME}", "").replace("JobIDRaw", "JobID")
HEADER = "JobID|User|Submit|Start|End|NCPUS|TimelimitRaw|State\n"


@pytest.fixture
def read_as(tmp_path):
    """Read a table, or its text, by a mapping: as a whole and in pieces, which is the same."""

    def run(table: Path | str, mapping: Path | str, **options) -> Workload:
        if isinstance(mapping, str):
            text, mapping = mapping, tmp_path / "mapping.toml"
            mapping.write_text(text)
        if isinstance(table, str):
            text, table = table, tmp_path / "table.txt"
            table.write_text(text)
        workload = read(table, mapping=mapping, **options)
        convert(table, tmp_path / "folder", mapping=mapping, **options)
        assert read_folder(tmp_path / "folder").jobs.equals(workload.jobs)
        return workload

    return run


def case(name: str) -> Path:
    """A reported file."""
    return shared(f"cases/accounting/{name}")


def column(workload: Workload, name: str) -> dict[str, object]:
    """Values of a column by job."""
    return dict(workload.jobs.select("job_id", name).iter_rows())


def test_allocated_cpus_alone_are_the_width(read_as, tmp_path):
    """Jobs are as wide as what was allocated to them where the mapping says nothing else."""
    table = case("slurm-22.05/docs.txt").read_text()
    table = table.replace("NCPUS", "AllocCPUS").replace("JobIDRaw", "JobID")
    workload = read_as(table, case("typ-alloc.toml"))
    expected = {row.split("|")[0]: int(row.split("|")[6]) for row in table.splitlines()[1:]}
    assert column(workload, "tasks") == expected
    assert len(workload) == 75


def test_allocated_cpus_that_are_no_whole_number_or_none(read_as):
    """A job of half a cpu is one task of it; of one that has none the width is unknown."""
    mapping = (
        "[columns]\nsubmit_seconds = 'at'\nallocated_cpus = 'cpus'\nrequested_seconds = 'limit'"
    )
    workload = read_as("at,cpus,limit\n0,0.5,60\n1,7,60\n2,0,60\n", mapping)
    assert workload.jobs["tasks"].to_list() == [1, 7, None]
    assert workload.jobs["cpus_per_task"].to_list() == [0.5, 1.0, 1.0]


@pytest.mark.parametrize("name", ["steps-noname", "typical-steps", "all-steps"])
def test_steps_are_folded_into_their_jobs(read_as, name):
    """As many jobs as without steps, though names hold a delimiter and a line end."""
    workload = read_as(case(f"slurm-22.05/{name}.txt"), case("typ-timelimit.toml"))
    assert len(workload) == 75
    assert workload.meta.repairs == {"folded_steps": 72}
    assert column(workload, "requested_seconds")["6"] == 86400.0
    assert column(workload, "runtime_seconds")["6"] == 12.0
    assert column(workload, "tasks")["6"] == 4
    assert column(workload, "requested_seconds")["18"] is None


def test_folded_steps_say_what_memory_was_used(read_as):
    """The memory of a job is the most of any step; ids with points are no steps by themselves."""
    mapping = "[columns]\njob_id='id'\nsubmit_seconds = 'at'\nused_memory_bytes = 'rss'"
    table = "id,at,rss\n7,0,\n7.batch,0,3188K\n7.0,1,1.5M\n8.1,2,64\n8.2,3,\n"
    workload = read_as(table, mapping)
    assert column(workload, "used_memory_bytes") == {"7": 3188 * 1024, "8.1": 64, "8.2": None}


def test_a_name_that_holds_delimiters_and_lines(read_as):
    """Only the record itself is put together; a line that lacks a field is still dropped."""
    mapping = (
        "[table]\ndelimiter = '|'\nfree_text = ['what']\n"
        "[columns]\njob_id = 'id'\nsubmit_seconds = 'at'\nexecutable = 'what'"
    )
    table = "id|what|at\n1|a|b|c|0\n2|two\n\nlines|1\n3|short\n4|plain|3\n"
    workload = read_as(table, mapping, strict=False)
    assert column(workload, "executable") == {"1": "a|b|c", "2": "two\n\nlines", "4": "plain"}
    (lost,) = workload.meta.lost
    assert (lost.rows, lost.example) == (1, "line 6: '2 fields'")


def test_a_name_in_the_last_column(read_as):
    """It goes on in lines without any delimiter; what comes next is the next record."""
    mapping = "[table]\ndelimiter = '|'\n[columns]\njob_id = 'id'\nsubmit_seconds = 'at'\n"
    table = "id|at|JobName\n1|0|two\nlines\n2|1|\n3|2|a|b\n"
    workload = read_as(table, mapping + "executable = 'JobName'")
    assert column(workload, "executable") == {"1": "two\nlines", "2": None, "3": "a|b"}


def test_words_for_unknown_times(read_as):
    """A start or end that the table calls unknown is, with a list of such words or without."""
    mapping = (
        "[columns]\nsubmit_seconds='at'\nrecorded_wait_seconds={column='start',since='at'}\n"
        "runtime_seconds={column='end',since='start'}"
    )
    for rows in ("0,Unknown,Unknown", "0,None,9", "0,3,N/A"):
        workload = read_as(f"at,start,end\n{rows}\n", mapping)
        assert workload.jobs["runtime_seconds"].to_list() == [None]
        assert not workload.meta.repairs


def test_requeued_jobs_are_one_job(read_as):
    """Of several attempts under one id the last counts, and what the earlier ones ran is kept."""
    workload = read_as(case("slurm-22.05/duplicates.txt"), SACCT)
    assert len(workload) == 75
    assert workload.meta.repairs == {"folded_attempts": 5}
    assert column(workload, "runtime_seconds")["74"] == 12.0
    assert column(workload, "extra")["74"] == "earlier attempts ran 6.0 s"
    assert column(workload, "extra")["5"] == "earlier attempts ran 5.0, 6.0 s"


@pytest.mark.parametrize(
    ("second", "jobs"),
    [
        ("7,u,100,10,5,2", ["7"]),  # as it ended
        ("7,u,0,200,5,2", ["7"]),  # of the same submission
        ("7,u,30000000,0,5,2", ["7", "7#2"]),  # years later
        ("7,v,100,10,5,2", ["7", "7#2"]),  # somebody else's
        ("7,u,0,10,90,2", ["7", "7#2"]),  # a copy
    ],
)
def test_an_id_used_twice(read_as, second, jobs):
    """It is a job that was requeued only where the second row goes on where the first ended."""
    mapping = (
        "[columns]\njob_id='id'\nuser='who'\nsubmit_seconds='at'\nrecorded_wait_seconds='wait'\n"
        "runtime_seconds='ran'\ntasks='cpus'"
    )
    workload = read_as(f"id,who,at,wait,ran,cpus\n7,u,0,10,90,2\n{second}\n", mapping)
    assert workload.jobs["job_id"].to_list() == jobs


@pytest.mark.parametrize(
    ("state", "at", "jobs"),
    [
        ("PREEMPTED", 250, ["7"]),
        ("NODE_FAIL", 80_000, ["7"]),
        ("COMPLETED", 250, ["7", "7#2"]),
        ("PREEMPTED", 30_000_000, ["7", "7#2"]),
    ],
)
def test_a_job_that_did_not_complete_is_requeued_within_a_day(read_as, state, at, jobs):
    """What its state says counts where the pause is longer than that of a requeue."""
    mapping = (
        "[columns]\njob_id='id'\nsubmit_seconds='at'\nrecorded_wait_seconds='wait'\n"
        "runtime_seconds='ran'\ntasks='cpus'\nstatus='state'"
    )
    rows = f"id,at,wait,ran,cpus,state\n7,0,10,90,2,{state}\n7,{at},0,50,2,COMPLETED\n"
    assert read_as(rows, mapping).jobs["job_id"].to_list() == jobs


def test_times_as_numbers_and_long_delimiters(read_as):
    """The same jobs come of Unix times, and of a table with three characters between fields."""
    mapping = SACCT.replace(f", {TIME}", "").replace(f'{{ column = "Submit", {TIME} }}', '"Submit"')
    epoch = read_as(case("slurm-22.05/epoch.txt"), mapping.replace(TIME, "unit = 'seconds'"))
    long = read_as(case("slurm-22.05/delim3.txt"), SACCT.replace('"|"', '"^|^"'))
    assert len(epoch) == 75
    assert epoch.jobs.equals(long.jobs)


def test_pending_arrays_are_their_tasks(read_as):
    """An array that waits as one row is as many jobs as it has tasks."""
    mapping = SACCT.replace("JobIDRaw", "JobID")
    workload = read_as(case("c04.txt"), mapping)
    assert len(workload) == 802
    assert workload.meta.repairs == {"pending_array_tasks": 800}
    rest = "|u|2024-05-01T10:00:00|Unknown|Unknown|1|300|PENDING\n"
    workload = read_as(f"{HEADER}7_[1-3,8,10-20:5%2]{rest}8_[1,...]{rest}9{rest}", mapping)
    tasks = [*(f"7_{task}" for task in (1, 2, 3, 8, 10, 15, 20)), "8_1", "9"]
    assert sorted(workload.jobs["job_id"]) == sorted(tasks)
    assert workload.jobs["runtime_seconds"].null_count() == len(tasks)
    assert workload.meta.repairs["pending_array_cut_short"] == 1


def test_steps_of_every_form(read_as):
    """Those of components, and those that have no number yet, are no jobs either."""
    rest = "|u|2024-05-01T10:00:00|2024-05-01T10:00:00|2024-05-01T11:00:00|1|300|COMPLETED\n"
    ids = ("5", "5.extern", "5.0+1", "6+0", "6+0.batch", "6+1", "6+1.3", "7_4", "7_4.0", "8")
    rows = "".join(f"{job_id}{rest}" for job_id in (*ids, "8.TBD", "8.TBD+"))
    workload = read_as(HEADER + rows, SACCT.replace("JobIDRaw", "JobID"))
    assert workload.jobs["job_id"].to_list() == ["5", "6+0", "6+1", "7_4", "8"]


def test_memory_and_gpus_as_slurm_writes_them(read_as):
    """Memory per node, per cpu or of the job, and gpus of the job, become those of a task."""
    workload = read_as(case("c05.txt"), case("c05.toml"))
    memory = workload.jobs["memory_bytes_per_task"] * workload.jobs["tasks"]
    assert memory.to_list() == [16000 * 2**20, 32 * 2**30, 64 * 2**30]
    gpus = workload.jobs["gpus_per_task"] * workload.jobs["tasks"]
    assert gpus.to_list() == [2.0, 4.0, 0.0]


def test_resources_by_name_and_number(read_as):
    """Cpus and gpus are read of lists of resources; a size elsewhere is of a task, as mapped."""
    mapping = (
        "[columns]\nsubmit_seconds='at'\ntasks='tres'\ngpus_per_task='tres'\n"
        "memory_bytes_per_task='mem'"
    )
    table = (
        'at,tres,mem\n0,"1=40,2=180000,4=1,5=40,1002=2",4G\n'
        '1,"cpu=4,gres/gpu:a=1,gres/gpu:b=2",0.5M\n2,"cpu=2,mem=4G",7\n'
    )
    workload = read_as(table, mapping)
    assert workload.jobs["tasks"].to_list() == [40, 4, 2]
    assert (workload.jobs["gpus_per_task"] * workload.jobs["tasks"]).to_list() == [2.0, 3.0, 0.0]
    assert workload.jobs["memory_bytes_per_task"].to_list() == [2**32, 2**19, 7]


def test_suspended_jobs_ran_for_less(read_as):
    """A run lasts as long as the table says it elapsed, not from its start to its end."""
    workload = read_as(case("c08.txt"), SACCT.replace("JobIDRaw", "JobID"))
    assert workload.jobs["runtime_seconds"].to_list() == [3600.0, 3600.0]
    assert workload.meta.repairs == {"runtime_without_suspension": 1}
    mapping = "[columns]\nsubmit_seconds='b'\nruntime_seconds={column='e',since='b'}"
    for name, said in (("Elapsed", "00:01:40"), ("ElapsedRaw", "100"), ("time_suspended", "900")):
        workload = read_as(f"b,e,{name}\n0,1000,{said}\n", mapping)
        assert workload.jobs["runtime_seconds"].to_list() == [100.0]


def test_a_database_as_it_is(read_as):
    """Time 0 is a job that never started, and the largest number a limit of none."""
    workload = read_as(case("c17.csv"), case("c17.toml"))
    assert column(workload, "runtime_seconds") == {"51": 3600.0, "52": None, "53": 90.0}
    assert column(workload, "recorded_wait_seconds") == {"51": 100.0, "52": None, "53": 400.0}
    assert column(workload, "requested_seconds") == {"51": 86400.0, "52": None, "53": None}


def test_a_start_of_zero_of_other_clocks_is_no_run(read_as):
    """Also where times count from the log's beginning, but not where each job has its own clock."""
    mapping = (
        "[columns]\nruntime_seconds={column='end',since='start'}\nsubmit_seconds='at'\n"
        "recorded_wait_seconds={column='start',since='at'}"
    )
    rows = "0,0,10\n1000,0,2000\n1000,1010,0\n1000,1010,1020\n"
    workload = read_as(f"at,start,end\n{rows}", mapping)
    assert workload.jobs["runtime_seconds"].to_list() == [10.0, None, None, 10.0]
    assert workload.jobs["recorded_wait_seconds"].to_list() == [0.0, None, 10.0, 10.0]
    own = mapping.partition("recorded_wait_seconds")[0]
    assert read_as("at,start,end\n1000,0,50\n", own).runtime_seconds.tolist() == [50.0]


def test_what_still_runs_has_no_runtime(read_as):
    """How long it has run so far is none, unless the mapping says what its state is."""
    mapping = (
        "[columns]\nsubmit_seconds='at'\nruntime_seconds='Elapsed'\n"
        "status={column='State',values={COMPLETED='completed'}}"
    )
    table = "at,Elapsed,State\n0,00:10:00,COMPLETED\n1,00:00:20,RUNNING\n2,00:00:30,SUSPENDED\n"
    workload = read_as(table, mapping)
    assert workload.jobs["runtime_seconds"].to_list() == [600.0, None, None]
    assert workload.meta.repairs == {"unknown_for_unended_runtime_seconds": 2}
    named = mapping.replace("{COMPLETED", "{RUNNING='completed',COMPLETED")
    assert read_as(table, named).jobs["runtime_seconds"].to_list() == [600.0, 20.0, None]


@pytest.mark.parametrize(
    ("states", "unended"),
    [
        ("CD R CG RS PD S F running Requeue_Hold pending", [1, 2, 3, 4, 5, 7, 8, 9]),
        ("COMPLETED COMPLETING REQUEUED FAILED RESIZING", [1, 4]),
        ("S F S S", []),
    ],
)
def test_states_that_have_not_ended(read_as, states, unended):
    """Long, short and in any case; of a letter a state S may stand for success."""
    mapping = "[columns]\nsubmit_seconds='at'\nruntime_seconds='ran'\nstatus='State'"
    rows = "".join(f"{at},60,{state}\n" for at, state in enumerate(states.split()))
    runtimes = read_as(f"at,ran,State\n{rows}", mapping).jobs["runtime_seconds"]
    assert runtimes.is_null().arg_true().to_list() == unended


def test_what_comes_too_soon_is_in_the_second_of_two_hours(read_as):
    """Clocks were put back to 2:00: an end before its start, a start before the submission."""
    clock = "time='%Y-%m-%d %H:%M', zone='Europe/Paris'"
    mapping = (
        f"[columns]\nsubmit_seconds={{column='at', {clock}}}\n"
        f"recorded_wait_seconds={{column='start', since='at', {clock}}}\n"
        f"runtime_seconds={{column='end', since='start', {clock}}}\n"
    )
    times = ["01:00 02:50 02:20", "02:50 02:10 02:40", "02:50 02:10 03:20", "02:05 02:10 02:20"]
    rows = "".join(",".join(f"2024-10-27 {time}" for time in row.split()) + "\n" for row in times)
    workload = read_as(f"at,start,end\n{rows}", mapping)
    assert [*column(workload, "runtime_seconds").values()] == [1800.0, 600.0, 1800.0, 4200.0]
    assert [*column(workload, "recorded_wait_seconds").values()] == [6600.0, 300.0, 1200.0, 1200.0]
    assert workload.meta.repairs["took_second_of_two_local_times"] == 6


def test_the_star_of_the_default_partition_is_no_part_of_its_name(read_as):
    """So sinfo marks it."""
    workload = read_as("at,part\n0,B*\n1,B\n", "[columns]\nsubmit_seconds='at'\npartition='part'")
    assert workload.jobs["partition"].to_list() == ["B", "B"]


def test_a_limit_of_zero_is_none(read_as):
    """A job that asked for 0 s has asked for no time, and is not killed as it starts."""
    mapping = "[columns]\nsubmit_seconds='at'\nruntime_seconds='ran'\nrequested_seconds='limit'"
    workload = read_as("at,ran,limit\n0,100,0\n1,100,50\n", mapping)
    assert workload.jobs["requested_seconds"].to_list() == [None, 50.0]
    assert workload.meta.repairs == {"unknown_for_zero_requested_seconds": 1}


def test_a_start_of_zero_is_no_run(read_as):
    """A job that never started has no run; one that starts before its submission has not waited."""
    folder = "cases/replay/start-zero"
    workload = read_as(shared(f"{folder}/jobs.csv"), shared(f"{folder}/map.toml"))
    assert column(workload, "runtime_seconds")["103"] is None
    assert column(workload, "recorded_wait_seconds")["102"] == 0.0
    mapping = (
        "[columns]\nsubmit_seconds='at'\nrecorded_wait_seconds={column='start',since='at'}\n"
        "runtime_seconds={column='end',since='start'}"
    )
    table = "at,start,end\n1700000000,1699999990,0\n1700000000,1699990000,1700000000\n0,0,0\n"
    workload = read_as(table, mapping, strict=False)
    assert workload.jobs["runtime_seconds"].to_list() == [None, 10000.0]
    assert workload.jobs["recorded_wait_seconds"].to_list() == [0.0, None]
    assert workload.meta.repairs["dropped_without_submit"] == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("1-00:00:00", 86400.0), ("00:10:30", 630.0), ("100:59:10", 363550.0), ("90", 5400.0)),
        *(("00:01.500", 1.5), ("UNLIMITED", None), ("Partition_Limit", None), ("4294967295", None)),
    ],
)
def test_durations(read_as, text, seconds):
    """Clocks are read whatever unit the mapping says numbers have; words and marks are no limit."""
    mapping = "[columns]\nsubmit_seconds='at'\nrequested_seconds={column='limit',unit='minutes'}"
    workload = read_as(f"at,limit\n0,{text}\n", mapping)
    assert workload.jobs["requested_seconds"].to_list() == [seconds]


@pytest.mark.parametrize("text", ["10:30", "1-2", "00:61:00", "soon"])
def test_no_durations(read_as, text):
    """What could be two things, or is none, is refused with its line."""
    mapping = "[columns]\nsubmit_seconds='at'\nrequested_seconds='limit'"
    with pytest.raises(InputError, match=f"line 2: '{text}'"):
        read_as(f"at,limit\n0,{text}\n", mapping)


def test_a_mistyped_section_of_a_mapping(read_as):
    """It is named, with the nearest one; so is a key of a section and of a column."""
    with pytest.raises(InputError, match=r"'tabel': .*expected 'table', perhaps"):
        read_as("job,submit\n", case("typo2.toml"))
    for mapping, words in (
        ("[colums]\na='b'", "'colums': .*expected 'columns', perhaps"),
        ("[columns]\n[table]\ndelimeter=';'", "'table.delimeter': .*expected 'delimiter', perhaps"),
        ("[columns]\ntasks={colum='a'}", "'columns.tasks.colum': .*expected 'column', perhaps"),
    ):
        with pytest.raises(InputError, match=words):
            read_as("job,submit\n", mapping)


def test_standard_workload_files_with_odd_texts():
    """A mark before the text is none of it; what is no number is refused with line and field."""
    assert read(case("bom.swf")).jobs["runtime_seconds"].to_list() == [10.0, 10.0]
    for name, field, value in (
        ("nan", "run time", "nan"),
        ("comma", "run time", "10,5"),
        ("user", "user", "müller"),
    ):
        with pytest.raises(InputError, match=f"line 2, field '{field}': .*{value}"):
            read(case(f"{name}.swf"))


def test_standard_workload_file_with_a_mark(tmp_path):
    """The same of a small file without a comment."""
    line = "1 0 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n"
    (tmp_path / "log.swf").write_bytes(b"\xef\xbb\xbf" + line.encode())
    assert len(read(tmp_path / "log.swf")) == 1
    (tmp_path / "log.swf").write_text(line.replace(" 10 ", " ten "))
    with pytest.raises(InputError, match="line 1, field 'run time'"):
        read(tmp_path / "log.swf")
