"""The report as people get it: words, figures, files, a real browser."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from foresail.metrics.summary import summary
from foresail.metrics.usage import Span, gantt, lay_out
from foresail.model.errors import InputError
from foresail.reports import figure as images
from foresail.reports.comparison import time_figures as zooming
from foresail.reports.comparison.page import report_of, write_report
from foresail.reports.comparison.sentences import against_baseline, alone
from foresail.reports.comparison.view import as_csv, terminal_tables
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import policy_styles
from made_schedules import list_schedule, made_schedule, random_workload, waits_schedule
from reading_pages import in_browser, page_faults

COLUMNS = {"submit_seconds": [0.0], "start_seconds": [0.0], "end_seconds": [100.0]}


@pytest.fixture(scope="module")
def schedules():
    """A congested log under three policies, with predictions and ranges."""
    workload = random_workload(3000, seed=11, mean_gap_seconds=1500)
    return [
        list_schedule(workload, 48, policy="fcfs"),
        list_schedule(workload, 48, workload["runtime_seconds"].to_numpy(), policy="shortest"),
        list_schedule(
            workload,
            48,
            workload["predicted_seconds"].to_numpy(),
            policy="easy(order=shortest),regression(over=squared,under=linear),incremental",
        ),
    ]


@pytest.fixture(scope="module")
def written(schedules, tmp_path_factory):
    """The report of that log in a folder."""
    folder = tmp_path_factory.mktemp("report")
    report = write_report(schedules, folder, command="foresail compare LOG --with '<fcfs>'")
    return folder, report


def test_files(written):
    """A page, and a CSV with rows for every figure; nothing unfinished stays behind."""
    folder, report = written
    names = {path.name for path in folder.iterdir()}
    assert "report.html" in names
    assert not [name for name in names if "unfinished" in name]
    assert len(report.figures) == 6
    for figure in report.figures:
        assert pl.read_csv(folder / f"{figure.name}.csv").height == figure.table.height > 0


def test_nothing_is_loaded_from_anywhere(written):
    """No attribute, style or import of the page names another place, and its policy forbids it."""
    page = (written[0] / "report.html").read_text("utf-8")
    assert not page_faults(page, written[0])
    assert "Content-Security-Policy" in page
    assert "default-src 'none'" in page
    ours = re.sub(r"<script type='text/plain' id='plotly'>.*?</script>", "", page, flags=re.DOTALL)
    assert len(ours) < len(page) / 4
    assert not re.findall(r"https?:|@import|url\(|\bsrc=", ours)
    links = set(re.findall(r"href='([^']*)'", ours))
    assert all(link.startswith("#") or (written[0] / link).exists() for link in links)


def test_page_escapes(written):
    """What users wrote is text, never markup."""
    page = (written[0] / "report.html").read_text("utf-8")
    assert not page_faults(page, written[0])
    assert "--with &#x27;&lt;fcfs&gt;&#x27;" in page


def test_figures_are_small_and_named(written):
    """At most 10,000 marks outside binned images; each with a finding, a title, no stray colour."""
    for figure in written[1].figures:
        marks = sum(len(t["x"]) for t in figure.traces if isinstance(t.get("x"), list))
        assert marks <= 10_000
        assert figure.title
        assert all(finding.endswith(".") for finding in figure.findings)
        assert not re.search(r'"#[0-9a-f]{6}"', json.dumps(figure.layout))


def test_words_come_first(written, schedules):
    """The page says in words what fell, by how much, how surely, and who pays."""
    page = (written[0] / "report.html").read_text("utf-8").replace("\u00a0", " ")
    assert not page_faults(page, written[0])
    before = page.split("<main")[0]
    told = summary(schedules[0]), summary(schedules[1])
    assert told[1].mean_wait_seconds < told[0].mean_wait_seconds
    assert "The mean wait falls from" in before
    assert "95 % interval of the difference" in before
    assert "wait longer" in before


def test_caveat_when_the_interval_includes_zero():
    """A difference that weeks do not agree on is said to be no difference at all."""
    workload = random_workload(500, seed=3, mean_gap_seconds=9000)
    generator = np.random.default_rng(0)
    left, right = (
        waits_schedule(workload, generator.exponential(1000, 500), processors=64) for _ in range(2)
    )
    view = report_of([left, right]).view
    words = " ".join(against_baseline(view.comparisons[0], view.pairs[0], "processor"))
    assert "includes no change at all" in words


def test_nobody_pays():
    """If every job waits less, the report says that nobody pays."""
    workload = random_workload(50)
    left = waits_schedule(workload, np.full(50, 60.0))
    right = waits_schedule(workload, np.full(50, 30.0))
    view = report_of([left, right]).view
    words = against_baseline(view.comparisons[0], view.pairs[0], "processor")
    assert "The mean wait falls from 60 s to 30 s (50 % less)." in words
    assert "No job pays for it: none waits longer." in words
    assert "Too little data for intervals" in words[-1]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([made_schedule({name: [] for name in COLUMNS})], "No job has started"),
        ([made_schedule(COLUMNS)], "one policy only"),
        ([made_schedule(COLUMNS)], "No job waited under any policy"),
        ([made_schedule(COLUMNS)], "hold no predictions"),
        ([made_schedule(COLUMNS)] * 2, "so they are all the same"),
        ([made_schedule({**COLUMNS, "predicted_seconds": [100.0]})], "know the truth"),
        ([made_schedule(COLUMNS), made_schedule({n: [] for n in COLUMNS})], "under one of"),
    ],
)
def test_too_little_data(given, expected, tmp_path):
    """Every lack is said in words, and the page is written all the same."""
    report = write_report(given, tmp_path)
    problems = [part.problem for part in report.parts if isinstance(part, MissingFigure)]
    assert any(expected in problem for problem in problems)
    assert expected in (tmp_path / "report.html").read_text("utf-8")


def test_one_job_says_little():
    """A single job is told, with the remark that it says nothing of the policy."""
    assert "One job is too little" in alone(summary(made_schedule(COLUMNS)))[-1]


def test_no_schedule():
    """A report of nothing is the caller's mistake."""
    with pytest.raises(InputError, match="needs a schedule"):
        report_of([])


def test_unwritable_folder(tmp_path):
    """A folder that cannot be made is named."""
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="taken"):
        write_report([made_schedule(COLUMNS)], tmp_path / "taken" / "report")


def test_terminal_table(schedules):
    """At most 100 characters, units, the best of each column marked, plain text when piped."""
    stream = io.StringIO()
    summaries = [summary(schedule) for schedule in schedules]
    Console(file=stream, width=100).print(*terminal_tables(summaries))
    text = stream.getvalue()
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "\x1b" not in text
    row = next(line for line in text.splitlines() if line.startswith("shortest"))
    assert row.count("*") >= 2
    assert "3,000 jobs on 48 processors" in text


def test_terminal_table_breaks_names_after_commas():
    """A long policy takes several lines, none of which ends within a word."""
    name = "easy(queue=max(q50,10)*sqrt(cpus)/probe,plan=requested),quantile_regression,incremental"
    stream = io.StringIO()
    (table,) = terminal_tables([summary(made_schedule(COLUMNS, policy=name))])
    Console(file=stream, width=100).print(table)
    lines = [line[:30].strip() for line in stream.getvalue().splitlines()]
    begin = lines.index("easy(queue=max(q50,")
    assert lines[begin + 1 : begin + 4] == [
        "10)*sqrt(cpus)/probe,",
        "plan=requested),",
        "quantile_regression,",
    ]


def test_json_and_csv(schedules):
    """A row a policy has the promised keys; CSV has the same numbers."""
    summaries = [summary(schedule) for schedule in schedules]
    objects = [each.as_json() for each in summaries]
    assert set(objects[0]) >= {
        "jobs",
        "average_bounded_slowdown",
        "mean_wait_seconds",
        "median_wait_seconds",
        "max_wait_seconds",
        "utilization",
        "makespan_seconds",
        "replay_seconds",
    }
    assert objects[0]["replay_seconds"] is None
    table = pl.read_csv(as_csv(summaries).encode())
    assert table["mean_wait_seconds"].to_list() == [o["mean_wait_seconds"] for o in objects]


def test_labels_are_shown_as_they_are_written():
    """Tags, entities and templates in a policy's name mean nothing to a drawing or to the page."""
    name = "easy(queue=<b>&amp;%{x})"
    schedules = [made_schedule(COLUMNS, policy=text) for text in ("easy", name)]
    style = policy_styles(schedules)[1]
    assert style.label == name
    assert style.drawn == "easy(queue=&lt;b&gt;&amp;amp;%&#123;x})"
    workload = random_workload(60, seed=1, mean_gap_seconds=10)
    report = report_of(
        [
            list_schedule(workload, 40, policy="easy"),
            list_schedule(workload, 40, workload["runtime_seconds"].to_numpy(), policy=name),
        ]
    )
    for figure in report.figures:
        drawing = json.dumps([list(figure.traces), figure.layout, figure.image_layout])
        assert "<b>&amp;%{x}" not in drawing
        assert "queue=<b>" not in drawing


def test_long_names_keep_both_ends():
    """Cut in the middle for sentences and further for drawings."""
    name = "easy(queue=max(q50,10)*sqrt(cpus)/probe,plan=requested),quantile_regression,quantile"
    style = policy_styles([made_schedule(COLUMNS, policy=name)])[0]
    assert style.is_cut
    assert (len(style.label), len(style.drawn)) == (50, 32)
    assert style.drawn.startswith("A: easy(queue=")
    assert style.drawn.endswith(",quantile")


def test_one_look_per_policy():
    """Every policy has a label of its own, cut where it is long, and its own colour up to seven."""
    schedules = [made_schedule(COLUMNS, policy=name) for name in ("easy", "easy", "x" * 90, "d")]
    styles = policy_styles(schedules)
    assert len({style.label for style in styles}) == 4
    assert len({style.colour for style in styles}) == 4
    assert max(len(style.label) for style in styles) <= 50


def test_a_browser_draws_it_all(written):
    """Headless Chromium draws every figure without an error, and offers no upload."""
    folder, report = written
    page, console = in_browser(folder / "report.html")
    assert console == []
    drawn = page.rsplit("<body", 1)[-1] if "<body" in page else ""
    assert 'data-drawn="all"' in page
    assert page.count('class="plot-container') == len(report.figures)
    assert 'class="loading"' not in drawn
    assert "could not be drawn (" not in drawn.split("<script")[0]
    assert "Share chart" not in drawn.split("<script")[0]


def test_zooming_loads_finer_cells(written, schedules, tmp_path):
    """After a zoom the cells are finer and hold what lay there; the whole range brings all back."""
    folder, report = written
    span_days = report.view.window.seconds / 86400
    low, high = 0.4 * span_days, 0.44 * span_days
    found = _asked_in_browser(
        folder / "report.html",
        tmp_path,
        f"""
        const place = document.getElementById("use-over-time");
        const trace = place.data.findIndex(({{ type }}) => type === "heatmap");
        const words = document.getElementById("use-over-time-bins");
        const look = () => {{
          const {{ dx, x0, z }} = place._fullData[trace];
          return {{ dx, x0, z: Array.from(z, (row) => Array.from(row)), words: words.textContent,
            steps: place._fullData[0].x[1] - place._fullData[0].x[0],
            ranges: place._fullLayout.xaxis.range }};
        }};
        const pause = () => new Promise((done) => setTimeout(done, 1500));
        const before = look();
        await Plotly.relayout(place, {{ "xaxis.range": [{low}, {high}] }});
        await pause();
        const zoomed = look();
        place.dispatchEvent(new KeyboardEvent("keydown", {{ key: "+" }}));
        await pause();
        const nearer = look();
        document.querySelector("[data-reset='use-over-time']").click();
        await pause();
        return [before, zoomed, nearer, look()];
        """,
    )
    before, zoomed, nearer, after = found
    assert nearer["dx"] < zoomed["dx"] < before["dx"] / 10
    assert zoomed["steps"] < before["steps"] / 10
    assert "each cell is" in zoomed["words"]
    assert after["dx"] == before["dx"]
    assert after["words"] == ""
    assert after["ranges"] == pytest.approx([0, span_days])
    begin = report.view.window.begin_seconds + (zoomed["x0"] - zoomed["dx"] / 2) * 86400
    seconds = zoomed["dx"] * 86400 * len(zoomed["z"][0])
    expected = gantt(lay_out(schedules[0]), Span(begin, begin + seconds), len(zoomed["z"][0]))
    assert np.abs(np.array(zoomed["z"]) / 100 - expected).max() < 1e-3


def test_zooming_into_many_jobs(schedules, tmp_path, monkeypatch):
    """Where the jobs are too many to send along, cells of a finer level are shown."""
    monkeypatch.setattr(zooming, "MOST_RECTANGLES", 100)
    report = write_report(schedules[:1], tmp_path)
    span_days = report.view.window.seconds / 86400
    (zoomed,) = _asked_in_browser(
        tmp_path / "report.html",
        tmp_path,
        f"""
        const place = document.getElementById("use-over-time");
        await Plotly.relayout(place, {{ "xaxis.range": [0, {0.01 * span_days}] }});
        await new Promise((done) => setTimeout(done, 1500));
        const {{ dx, z }} = place._fullData.find(({{ type }}) => type === "heatmap");
        return [{{ dx, z: Array.from(z, (row) => Array.from(row)) }}];
        """,
    )
    assert zoomed["dx"] == pytest.approx(span_days / zooming.FINE_BINS)
    fine = gantt(lay_out(schedules[0]), report.view.window, zooming.FINE_BINS)
    shown = np.array(zoomed["z"]) / 100
    assert np.abs(shown - fine[:, : shown.shape[1]]).max() <= 0.005 + 1e-9


def _asked_in_browser(page, folder, script):
    """What a script returns that runs in the page once all is drawn."""
    probe = f"""<script>
    const look = setInterval(async () => {{
      if (document.body.dataset.drawn !== "all") return;
      clearInterval(look);
      const place = document.createElement("pre");
      place.id = "probe";
      try {{ place.textContent = JSON.stringify(await (async () => {{ {script} }})()); }}
      catch (error) {{ place.textContent = JSON.stringify(String(error.stack)); }}
      document.body.append(place);
    }}, 50);
    </script></body>"""
    probing = folder / "probing.html"
    probing.write_text(page.read_text("utf-8").replace("</body>", probe), "utf-8")
    drawn, _ = in_browser(probing)
    return json.loads(re.search(r'<pre id="probe">(.*?)</pre>', drawn, re.DOTALL)[1])


def test_images(written, tmp_path):
    """A PNG of each figure, where a browser and kaleido are here."""
    if images.browser() is None:
        pytest.skip("no Chromium or Chrome on PATH")
    pytest.importorskip("kaleido")
    figures = written[1].figures[:2]
    paths = images.write_images(figures, tmp_path)
    assert [path.stem for path in paths] == [figure.name for figure in figures]
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert int.from_bytes(content[16:20], "big") == 2000


def test_images_without_a_browser(monkeypatch, tmp_path):
    """Without a browser the message says what to install."""
    pytest.importorskip("kaleido")
    monkeypatch.setattr(images, "browser", lambda: None)
    figure = Figure("f", "F", ["It is."], [], {"height": 100}, pl.DataFrame())
    with pytest.raises(images.ImageError, match="apt-get install chromium"):
        images.write_images([figure], tmp_path)
