"""Odd logs, and what every run of one must satisfy unless it is refused.

A log is made sound, and then odd in a few ways. Some of these say the same in another form (steps
beside their jobs, limits as clocks, rows in another order): whoever reads them must read the same
jobs. The others say something that is not so, which may be refused, repaired or told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np

from foresail.control.policy import parse_policy
from foresail.metrics.summary import Summary, summaries
from foresail.model.documents import json_answer
from foresail.model.errors import InputError
from foresail.reports.comparison.view import verdict_of
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.facts import facts, provenance_of
from foresail.traces.filtering import choices_of
from foresail.traces.plausibility import clean_and_check
from foresail.traces.reading import read
from foresail.traces.schedule import Schedule
from foresail.traces.validation import validate
from foresail.traces.workload import Workload

POLICIES = ("fcfs", "easy", "easy-sjbf", "conservative", "easy,recent,incremental")
NEARLY = 1e-6
_EVERY = 5
"""So manyth log is validated, and told of as JSON; these take longest."""
EPOCH = 1_700_000_000
YEAR = 366 * 86400

COLUMNS = ("id", "user", "submit", "start", "end", "cpus", "limit", "state", "part")


@dataclass
class OddLog:
    """Rows of a table of jobs as text, how they are written, and what they say if they are true."""

    rows: list[dict[str, str]]
    truth: dict[str, tuple[float, float, int]]
    """Submission since the first, runtime and cpus by id; of jobs that ran."""
    processors: int
    random: Random
    mapping: dict[str, str]
    delimiter: str = ","
    mark: bytes = b""
    is_swf: bool = False
    ways: list[str] = field(default_factory=list)

    @property
    def is_true(self) -> bool:
        """Whether the log still says what its jobs did."""
        return not any(way in UNTRUE for way in self.ways)

    def write(self, folder: Path) -> tuple[Path, dict[str, Path]]:
        """The log, and with which options it is read."""
        if self.is_swf:
            log = folder / "log.swf"
            log.write_bytes(self.mark + "".join(map(_standard_line, self.rows)).encode())
            return log, {}
        names = list(self.rows[0])
        lines = [names, *([row.get(name, "") for name in names] for row in self.rows)]
        text = "".join(self.delimiter.join(line) + "\n" for line in lines)
        table, mapping = folder / "log.csv", folder / "mapping.toml"
        table.write_bytes(self.mark + text.encode())
        columns = "".join(f"{name} = {value}\n" for name, value in self.mapping.items())
        mapping.write_text(f"[table]\ndelimiter = '{self.delimiter}'\n[columns]\n{columns}")
        return table, {"mapping": mapping}


def _standard_line(row: dict[str, str]) -> str:
    """A row in the Standard Workload Format; what is no number stays what it is."""

    def since(later: str, earlier: str) -> str:
        if "0" in (row[later], row[earlier]):
            return "-1"
        known = row[later].isdigit() and row[earlier].isdigit()
        return str(int(row[later]) - int(row[earlier])) if known else row[later] or "-1"

    times = (row["submit"] or "-1", since("start", "submit"), since("end", "start"))
    cpus = row["cpus"] or "-1"
    user = {"ann": "1", "bob": "2", "cy": "3"}.get(row["user"], row["user"] or "-1")
    fields = (row["id"], *times, cpus, "-1", "-1", cpus, row["limit"] or "-1", "-1", "1", user)
    return " ".join((*fields, *("-1",) * 6)) + "\n"


def sound_log(random: Random) -> OddLog:
    """A log of up to fifty jobs, with waits as they may have been."""
    rows, truth = [], {}
    processors = random.choice((1, 4, 16, 1000))
    at = 0
    for number in range(1, random.randint(1, 50) + 1):
        wait, run = random.choice((0, 1, 600)), random.choice((0, 1, 30, 3600, 90000))
        cpus = random.randint(1, max(1, processors // random.choice((1, 2, 4))))
        begin = EPOCH + at
        rows.append(
            {
                "id": str(number),
                "user": random.choice(("ann", "bob", "cy")),
                "submit": str(begin),
                "start": str(begin + wait),
                "end": str(begin + wait + run),
                "cpus": str(cpus),
                "limit": str(run + random.choice((0, 60, 7200))),
                "state": "DONE",
                "part": random.choice(("short", "long")),
            }
        )
        if run:
            truth[str(number)] = (float(at), float(run), cpus)
        at += random.choice((0, 1, 60, 900, 20000))
    mapping = {
        "job_id": "'id'",
        "user": "'user'",
        "submit_seconds": "'submit'",
        "recorded_wait_seconds": "{ column = 'start', since = 'submit' }",
        "runtime_seconds": "{ column = 'end', since = 'start' }",
        "requested_seconds": "'limit'",
        "tasks": "'cpus'",
        "status": "{ column = 'state', values = { DONE = 'completed', DEAD = 'failed' } }",
    }
    return OddLog(rows, truth, processors, random, mapping)


def _some(log: OddLog) -> list[dict[str, str]]:
    return log.random.sample(log.rows, log.random.randint(1, len(log.rows)))


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def steps(log: OddLog) -> None:
    """Steps stand behind their jobs, without a user."""
    rows = []
    for row in log.rows:
        names = log.random.sample((".batch", ".extern", ".0", ".1"), log.random.randint(0, 4))
        rows += [row, *({**row, "id": row["id"] + name, "user": "", "limit": ""} for name in names)]
    log.rows = rows


def attempts(log: OddLog) -> None:
    """Jobs were requeued: an earlier row ends as its last one was submitted."""
    rows, known = [], log.mapping  # without waits nobody knows when a row ended
    for row in log.rows:
        if (
            log.random.random() < 0.2
            and row["id"] in log.truth
            and "recorded_wait_seconds" in known
        ):
            begin = int(row["submit"]) - log.random.choice((5, 300))
            earlier = {"submit": str(begin), "start": str(begin), "end": row["submit"]}
            rows.append({**row, **earlier, "state": "REQUEUED", "ElapsedRaw": ""})
        rows.append(row)
    log.rows = rows


def pending_arrays(log: OddLog) -> None:
    """Arrays that wait as one row each."""
    row = log.random.choice(log.rows)
    log.rows.append({**row, "id": "900_[1-40%2]", "start": "Unknown", "end": "Unknown"})


def never_started(log: OddLog) -> None:
    """Jobs whose start is 0, and whose end is that of the queue."""
    for number, row in enumerate(_some(log)):
        log.rows.append({**row, "id": f"{800 + number}", "start": "0", "state": "DEAD"})


def clocks_for_limits(log: OddLog) -> None:
    """Limits as clocks, some of them of none."""
    for row in log.rows:
        if row["limit"].isdigit():
            row["limit"] = _clock(int(row["limit"]))
    for row in _some(log):
        row["limit"] = log.random.choice(("UNLIMITED", "", "4294967295", row["limit"]))


def another_order(log: OddLog) -> None:
    """Rows of jobs in no order, their steps behind them."""
    jobs: dict[str, list[dict[str, str]]] = {}
    for row in log.rows:
        jobs.setdefault(row["id"].partition(".")[0], []).append(row)
    groups = list(jobs.values())
    log.random.shuffle(groups)
    log.rows = [row for group in groups for row in group]


def another_writing(log: OddLog) -> None:
    """A mark before the text, another delimiter, and names that hold it."""
    log.mark = log.random.choice((b"", b"\xef\xbb\xbf"))
    log.delimiter = log.random.choice(("|", ";", "^|^"))
    for row in log.rows:
        row["JobName"] = log.random.choice(("a", "b c", f"d{log.delimiter}e", "two\nlines", ""))


def named_resources(log: OddLog) -> None:
    """Widths as lists of resources."""
    if log.delimiter == ",":
        log.delimiter = "|"
    for row in log.rows:
        row["cpus"] = f"billing=9,cpu={row['cpus']},mem=4G,node=1"


def as_allocated(log: OddLog) -> None:
    """Widths as what was allocated alone."""
    log.mapping["allocated_cpus"] = log.mapping.pop("tasks")


def early_starts(log: OddLog) -> None:
    """Some jobs start seconds before their submission."""
    for row in _some(log):
        if row["start"] == row["submit"]:
            row["submit"] = str(int(row["submit"]) + 2)
    log.truth = {}


def less_mapped(log: OddLog) -> None:
    """Columns that are not known, but for the most needed."""
    for name in log.random.sample(list(log.mapping), log.random.randint(1, 3)):
        if name in ("user", "requested_seconds", "status") or (
            name == "recorded_wait_seconds" and "attempts" not in log.ways
        ):
            del log.mapping[name]


def suspended(log: OddLog) -> None:
    """A column of what elapsed, which is less than from start to end for one job."""
    row = log.random.choice(log.rows)
    for each in log.rows:
        is_known = each["start"].isdigit() and each["end"].isdigit()
        each["ElapsedRaw"] = str(int(each["end"]) - int(each["start"])) if is_known else ""
    if row["id"] in log.truth and row["ElapsedRaw"].isdigit():
        submit, run, cpus = log.truth[row["id"]]
        row["end"] = str(int(row["end"]) + 5000)
        log.truth[row["id"]] = (submit, run, cpus)


def gap(log: OddLog) -> None:
    """Nobody submits anything for years, or a clock is set back for the later half."""
    by = log.random.choice((3 * YEAR, -7200, 86400 * 30))
    for row in log.rows[len(log.rows) // 2 :]:
        for name in ("submit", "start", "end"):
            if row[name].isdigit() and int(row[name]) > EPOCH / 2:
                row[name] = str(int(row[name]) + by)


def early_job(log: OddLog) -> None:
    """One job was submitted long before all others, maybe before all time."""
    log.rows[0]["submit"] = log.random.choice((str(EPOCH - YEAR), "0", "-5", "86400"))


def copies(log: OddLog) -> None:
    """Some rows twice."""
    log.rows += [dict(row) for row in _some(log)]


def recycled(log: OddLog) -> None:
    """Ids that are used again years later, for other jobs."""
    for row in _some(log):
        if row["id"] not in log.truth or row["state"] != "DONE" or not row["end"].isdigit():
            continue
        submit, run, cpus = log.truth[row["id"]]
        log.truth[f"{row['id']}#2"] = (submit + 2 * YEAR, run, cpus)
        later = {**row}
        for name in ("submit", "start", "end"):
            later[name] = str(int(row[name]) + 2 * YEAR) if row[name].isdigit() else ""
        log.rows.append(later)


def partitions(log: OddLog) -> None:
    """Jobs name partitions."""
    log.mapping["partition"] = "'part'"


def chains(log: OddLog) -> None:
    """Jobs wait for earlier ones."""
    log.mapping["after_jobs"] = "'after'"
    for number, row in enumerate(log.rows):
        known = [each["id"] for each in log.rows[:number] if each["id"] in log.truth]
        earlier = [each for each in known if each != row["id"]]
        row["after"] = log.random.choice(["", *earlier])


def written_times(log: OddLog) -> None:
    """Times with a date, in a zone."""
    for name, target in log.mapping.items():
        if any(f"'{each}'" in target for each in ("submit", "start", "end")):
            column = target.strip("{ }").removeprefix("column = ")
            how = "time = '%Y-%m-%dT%H:%M:%S', zone = 'Asia/Tokyo'"
            log.mapping[name] = f"{{ column = {column}, {how} }}"
    for row in log.rows:
        for name in ("submit", "start", "end"):
            if row[name].isdigit() and int(row[name]) < 2**32 - 2:
                local = datetime.fromtimestamp(int(row[name]), UTC) + timedelta(hours=9)
                row[name] = local.strftime("%Y-%m-%dT%H:%M:%S")


def standard(log: OddLog) -> None:
    """The log is one of the Standard Workload Format."""
    log.is_swf = not any(not row["id"].isdigit() or len(row) > len(COLUMNS) for row in log.rows)
    log.is_swf &= not {"named_resources", "clocks_for_limits", "less_mapped"} & {*log.ways}


def huge(log: OddLog) -> None:
    """Amounts that no machine has seen."""
    for row in _some(log)[:3]:
        name = log.random.choice(("cpus", "limit", "end", "submit", "start"))
        row[name] = log.random.choice(("1000000000", "1e12", "4294967295", "1e300", "99999999999"))


def no_amounts(log: OddLog) -> None:
    """Texts and signs where amounts should be."""
    for row in _some(log)[:3]:
        name = log.random.choice(COLUMNS)
        row[name] = log.random.choice(("nan", "inf", "-1", "0", "", "None", "1,5", "?", "1e-300"))


def milliseconds(log: OddLog) -> None:
    """All times in thousandths of what they are taken for."""
    for row in log.rows:
        for name in ("submit", "start", "end"):
            row[name] = row[name] + "000" if row[name].isdigit() else row[name]


def ends_first(log: OddLog) -> None:
    """Some jobs end before they start."""
    for row in _some(log):
        row["start"], row["end"] = row["end"], row["start"]


def few_processors(log: OddLog) -> None:
    """A machine that is too small for most."""
    log.processors = max(1, log.processors // 8)


def fields_lost(log: OddLog) -> None:
    """Rows without a field or with one more."""
    for row in _some(log)[:2]:
        row["user"] = log.random.choice((f"a{log.delimiter}b", '"', "a\nb"))


SAME: tuple[Callable[[OddLog], None], ...] = (
    *(steps, attempts, pending_arrays, never_started, clocks_for_limits, another_order),
    *(another_writing, named_resources, as_allocated, less_mapped, suspended, recycled),
    *(partitions, chains),
)
OTHER: tuple[Callable[[OddLog], None], ...] = (
    *(gap, early_job, copies, huge, no_amounts, milliseconds, ends_first),
    *(few_processors, fields_lost, early_starts),
)
UNTRUE = frozenset(way.__name__ for way in OTHER)


def odd_log(number: int) -> OddLog:
    """The odd log of this number: sound at first, then up to four ways odd."""
    random = Random(f"odd log {number}")
    log = sound_log(random)
    same = random.sample(SAME, random.randint(0, 3))
    other = random.sample(OTHER, random.choice((0, 0, 1, 2, 3)))
    last = random.choices((None, written_times, standard), (4, 1, 1))
    for way in (*same, *other, *last):
        if way is not None:
            way(log)
            log.ways.append(way.__name__)
    return log


def wrong_answers(number: int, folder: Path) -> Iterator[str]:
    """What is wrong about the answer to an odd log; nothing where it is refused or right."""
    log = odd_log(number)
    path, options = log.write(folder)
    strict = log.random.choice((None, None, False))
    try:
        workload = read(path, strict=strict, processors=log.processors, **options)
        if number % _EVERY == 0:
            validate(workload)
        cleaned = clean_and_check(workload, choices_of(["replayable"]))
        policy = parse_policy(log.random.choice(POLICIES))
        limited = log.random.random() < 0.2
        schedule = run_scenario(Scenario(cleaned, policy, enforce_limits=limited))
    except InputError as refused:
        if log.is_true and log.truth:
            yield f"a true log is refused: {refused}"
        return
    (summary,) = summaries([schedule])
    if (
        "milliseconds" in log.ways
        and not log.is_swf
        and len({*workload.jobs["submit_seconds"]}) > 1
    ):
        yield "times in milliseconds are taken for seconds"
    yield from _untrue(log, cleaned)
    yield from _unaccounted(workload, cleaned)
    yield from _impossible(cleaned, schedule, summary, limited)
    if number % _EVERY == 0:
        recorded = verdict_of(cleaned, [schedule])
        json_answer({"told": [summary.as_json(), provenance_of(cleaned).as_json(), recorded]})


def _untrue(log: OddLog, cleaned: Workload) -> Iterator[str]:
    if not log.is_true:
        return
    columns = ("job_id", "submit_seconds", "runtime_seconds", "tasks")
    found = {job: tuple(rest) for job, *rest in cleaned.jobs.select(columns).iter_rows()}
    first = min((found[job][0] - log.truth[job][0] for job in found if job in log.truth), default=0)
    expected = {
        job: (submit + first, run, cpus)
        for job, (submit, run, cpus) in log.truth.items()
        if cpus <= log.processors
    }
    outside = int(dict(cleaned.meta.filters)["drop_outside_window"])
    if found != expected and not outside:
        odd = {*found.items()} ^ {*expected.items()}
        yield f"other jobs than there were: {sorted(odd)[:4]}"


def _unaccounted(workload: Workload, cleaned: Workload) -> Iterator[str]:
    dropped = sum(jobs for name, jobs in cleaned.meta.filters if name.startswith("drop_"))
    lost = len(workload) - len(cleaned)
    if dropped != lost:
        yield f"{lost} jobs were dropped, of which {dropped} are told"
    told = facts(workload)
    if not (told.span_seconds >= 0 and told.work_cpu_seconds >= 0 and told.outside_window >= 0):
        yield f"facts: {told}"


def _impossible(
    workload: Workload, schedule: Schedule, summary: Summary, limited: bool
) -> Iterator[str]:
    jobs = schedule.jobs
    if jobs["start_seconds"].null_count() != summary.never_started:
        yield f"{summary.never_started} jobs never started, or others"
    if sorted(jobs["job_id"]) != sorted(workload.jobs["job_id"]):
        yield "not every job has one row"
    jobs = jobs.drop_nulls("start_seconds")
    if not jobs.height:
        return
    begin, start, end = (jobs[f"{name}_seconds"].to_numpy() for name in ("submit", "start", "end"))
    ran = workload.jobs.join(jobs, on="job_id", how="right", suffix="_run")["runtime_seconds"]
    size = max(float(np.abs(end).max()), 1.0)
    least = NEARLY * max(1.0, size / 1e6)
    if not (start >= begin).all():
        yield "a job starts before its submission"
    off = np.abs(end - start - ran.to_numpy())
    if limited and not (end - start <= ran.to_numpy() + least).all():
        yield "a job runs for longer than it did"
    if not limited and not (off <= least).all():
        yield f"a job runs for another time than it did: {off.max()}"
    times = np.concatenate([start, end])
    by = np.concatenate([jobs["cpus"].to_numpy(), -jobs["cpus"].to_numpy()])
    order = np.lexsort((by, times))
    if np.cumsum(by[order]).max(initial=0) > workload.processors + NEARLY:
        yield "more processors are used than there are"
    shares = {
        name: getattr(summary, name)
        for name in ("utilization", "steady_utilization", "waited_share", "overtaken_share",
                     "loss_of_capacity", "avoidable_idle_share", "backfilled_share")
    }  # fmt: skip
    for name, share in shares.items():
        if math.isfinite(share) and not -NEARLY <= share <= 1 + NEARLY:
            yield f"{name} is {share}"
    if not math.isfinite(summary.utilization):
        yield f"utilization is {summary.utilization}"
    for name in ("wait", "eligible_wait", "flow"):
        mean, most = (getattr(summary, f"{of}_{name}_seconds") for of in ("mean", "max"))
        if not -least <= mean <= most + least:
            yield f"the mean {name} is {mean}, the longest {most}"
    if not 1 - NEARLY <= summary.average_bounded_slowdown <= summary.max_bounded_slowdown + NEARLY:
        yield f"slowdown is {summary.average_bounded_slowdown} on average"
    if summary.makespan_seconds < (end - start).max() - least:
        yield f"the makespan {summary.makespan_seconds} is shorter than a run"
    if summary.jobs + summary.never_started != len(workload):
        yield f"{summary.jobs} jobs are summed up, of {len(workload)}"
