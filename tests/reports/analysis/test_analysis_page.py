"""The report on workloads: one page, everything drawn, words for all that is shown."""

import base64
import json
import re

import numpy as np
import polars as pl
import pytest

from checks.analyses import awkward_workloads
from foresail.analysis.characteristics import Analysed, analyse
from foresail.analysis.finding import Finding, Plot, Unavailable
from foresail.reports.analysis.page import (
    analysis_figures,
    analysis_page,
    sentences,
    write_analysis,
)
from foresail.reports.curve_figure import scale_of
from foresail.reports.plots import log_styles, most_rows
from reading_pages import in_browser

KINDS = ("line", "steps", "points", "bars", "band", "box", "heat")


def finding_of_kind(kind, rows=30, series=None):
    """A finding with one plot of a kind, whose table has every column that any kind needs."""
    numbers = np.arange(1.0, rows + 1)
    columns = ("low", "high", "lower_whisker", "quartile_1", "median", "quartile_3")
    table = pl.DataFrame(
        dict.fromkeys(("x", "y", "shade", *columns, "upper_whisker"), numbers)
        | {"part": ["first" if number % 2 else "second" for number in range(rows)]}
    )
    plot = Plot(
        kind=kind,
        table="made",
        x="x",
        y="y",
        x_label="what lies across",
        y_label="what goes up",
        alternative=f"Drawn as {kind}.",
        shade="shade",
        series=series,
    )
    return Finding(
        f"as_{kind}", f"Is it {kind}?", "It is.", {"rows": rows}, {"made": table}, (plot,)
    )


def unpacked(value):
    """Numbers of an array in Plotly's binary form, or as a list."""
    if isinstance(value, list):
        return value
    kind = {"f4": "<f4", "u1": "u1"}[value["dtype"]]
    return np.frombuffer(base64.b64decode(value["bdata"]), kind)


@pytest.fixture(scope="module")
def logs():
    """A plain log with measured use, one of a single job, and one without anything known."""
    made = awkward_workloads()
    chosen = (("plain", "measured"), ("<one> job", "one job"), ("bare", "nothing but submissions"))
    return [analyse(made[odd], name) for name, odd in chosen]


@pytest.fixture(scope="module")
def written(logs, tmp_path_factory):
    """The report on all of them."""
    folder = tmp_path_factory.mktemp("analysis")
    write_analysis(logs, folder, "foresail analyse '<plain>'")
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("series", [None, "part"], ids=["one line", "two lines"])
def test_every_kind_is_drawn(kind, series):
    """Each kind of plot gives traces of its own, of one log and of two overlaid."""
    one = [Analysed("a", 1, 0.0, (finding_of_kind(kind, series=series),))]
    two = [*one, Analysed("b", 1, 0.0, (finding_of_kind(kind, rows=5, series=series),))]
    expected = {"bars": "bar", "box": "box", "heat": "heatmap"}.get(kind, "scatter")
    for logs in (one, two):
        (figure,) = analysis_figures(logs)
        assert {trace["type"] for trace in figure.traces} == {expected}
        assert len({json.dumps(trace) for trace in figure.traces}) == len(figure.traces)
        assert figure.table["log"].unique().sort().to_list() == [log.log for log in logs]
        assert "what lies across" in figure.layout["xaxis"]["title"]["text"]
        assert "what goes up" in figure.layout["yaxis"]["title"]["text"]
    colours = {json.dumps(trace).count("@policy2") > 0 for trace in analysis_figures(two)[0].traces}
    assert colours == {True, False}


def test_values_are_drawn_where_they_lie():
    """Positions are those of the table; on a logarithmic axis of durations from 1 s on."""
    table = pl.DataFrame({"x": [0.0, 0.5, 60.0, 7200.0], "y": [0.1, 0.2, 0.7, 1.0]})
    plot = Plot(
        "steps",
        "t",
        "x",
        "y",
        "runtime",
        "share",
        "Said.",
        x_kind="duration",
        log_x=True,
        y_kind="share",
    )
    found = Finding("f", "T?", "V.", {}, {"t": table}, (plot,))
    (figure,) = analysis_figures([Analysed("a", 1, 0.0, (found,))])
    (trace,) = figure.traces
    assert unpacked(trace["x"]).tolist() == [1, 1, 60, 7200]
    assert unpacked(trace["y"]).tolist() == pytest.approx([0.1, 0.2, 0.7, 1.0])
    assert trace["customdata"][-1] == "2 h: 100 %"
    assert trace["line"]["shape"] == "hv"


def test_gaps_are_left_out():
    """Rows without a value are not drawn as 0."""
    table = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [5.0, None, float("nan")]})
    plot = Plot("line", "t", "x", "y", "x", "y", "Said.")
    found = Finding("f", "T?", "V.", {}, {"t": table}, (plot,))
    (figure,) = analysis_figures([Analysed("a", 1, 0.0, (found,))])
    assert unpacked(figure.traces[0]["x"]).tolist() == [1]


@pytest.mark.parametrize("values", [[], [0.0], [5.0], [1e-9, 1e12], [3.0, 4.0]], ids=str)
@pytest.mark.parametrize("kind", ["number", "duration", "share", "hour"])
@pytest.mark.parametrize("log", [True, False], ids=["log", "linear"])
def test_axes_of_anything(values, kind, log):
    """Every axis can be drawn, with ticks where it is logarithmic and positive values there."""
    scale = scale_of("label", kind, np.array(values), log=log)
    drawn = scale.drawn(np.array([0.0, *values]))
    assert np.isfinite(drawn).all()
    json.dumps(scale.axis, allow_nan=False)
    if log:
        assert (drawn > 0).all()
        assert len(scale.axis["tickvals"]) >= 1
        assert len(scale.axis["tickvals"]) <= 14


def test_rows_are_shared_out():
    """Long lines are thinned until all marks fit; short ones keep theirs; 40 at least."""
    assert most_rows([24, 24, 1000], 10_000) == 1000
    assert most_rows([24, 1000, 1000], 1024) == 500
    assert most_rows([1000] * 500, 10_000) == 40
    assert most_rows([], 10_000) == 40


def test_at_most_ten_thousand_marks(logs):
    """Lines of many logs together stay below the limit; what was thinned is said."""
    many = [
        Analysed(f"log {number}", 1, 0.0, (finding_of_kind("steps", rows=999),))
        for number in range(20)
    ]
    (figure,) = analysis_figures(many)
    assert sum(len(unpacked(trace["x"])) for trace in figure.traces) <= 10_000
    assert "Lines are drawn through 500 of their points." in figure.note
    assert figure.table.height == 20 * 999
    figures = analysis_figures(logs)
    assert sum(len(unpacked(trace["x"])) for each in figures for trace in each.traces) <= 10_000


def test_files(written, logs):
    """The page, a CSV for every table of every finding, the scalars and the characteristics."""
    names = {path.name for path in written.iterdir()}
    assert {"report.html", "scalars.csv", "characteristics.csv", "job-sizes-cpus.csv"} <= names
    assert not [name for name in names if "unfinished" in name]
    tables = {
        f"{found.name}-{table}".replace("_", "-").lower() + ".csv"
        for log in logs
        for found in log.findings
        if isinstance(found, Finding)
        for table in found.tables
    }
    assert tables <= names
    scalars = pl.read_csv(written / "scalars.csv")
    assert scalars.filter(pl.col("log") == "<one> job").height
    sizes = pl.read_csv(written / "job-sizes-cpus.csv")
    assert sizes["log"].unique().sort().to_list() == ["<one> job", "plain"]


def test_page_stands_alone_and_escapes(written):
    """Nothing is loaded from elsewhere, every link leads to a file, names are text."""
    page = (written / "report.html").read_text("utf-8")
    ours = re.sub(r"<script type='text/plain' id='plotly'>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"https?:|@import|url\(|\bsrc=", ours)
    links = set(re.findall(r"href='([^']*)'", ours))
    assert len(links) > 15
    assert all(link.startswith("#") or (written / link).exists() for link in links)
    assert "<one>" not in ours.replace("\\u003c", "<").split("<script")[0]
    assert "&lt;one&gt; job" in ours


def test_words_come_first(logs):
    """One log: which characteristics hold; several: how many of how many, log by log."""
    (alone,) = sentences(logs[:1])
    assert alone.startswith("270 jobs in 90 d. Of the ten characteristics")
    told = sentences(logs)
    assert len(told) == 4
    assert told[2].startswith("<one> job: 1 job in 0 s; ")


def test_everything_is_answered_or_said_to_lack(written, logs):
    """Each verdict and each reason is on the page."""
    page = (written / "report.html").read_text("utf-8").replace("\u00a0", " ")
    for log in logs:
        for found in log.findings:
            said = found.reason if isinstance(found, Unavailable) else found.title
            assert said.rstrip(".")[1:].replace("'", "&#x27;") in page


def test_keys_name_logs_and_series_apart():
    """With several logs of several series, the key has a colour per log and a dash per series."""
    logs = [
        Analysed(name, 1, 0.0, (finding_of_kind("steps", series="part"),)) for name in ("a", "b")
    ]
    page = analysis_page(logs, log_styles(["a", "b"]), analysis_figures(logs))
    (key,) = re.findall(r"<ul class='key'.*?</ul>", page)
    assert re.findall(r"</svg>([^<]*)</li>", key) == ["a", "b", "second", "first"]
    assert key.count("var(--policy1)") == key.count("var(--policy2)") == 1
    assert key.count("var(--ink)") == 2


def test_long_commands_are_not_repeated(logs):
    """A short command stands under every figure, a long one at the table and at the end."""
    figures = analysis_figures(logs)
    styles = log_styles([log.log for log in logs])
    for command, times in (("short", len(figures) + 2), ("long " * 50, 2)):
        page = analysis_page(logs, styles, figures, command)
        assert page.count(f"<code>{command}</code>") == times


def test_logs_keep_their_colours():
    """No two of twenty logs look alike, and the first seven have a colour each."""
    styles = log_styles([str(number) for number in range(20)])
    assert len({(style.colour, style.dash) for style in styles}) == 20
    assert len({style.colour for style in styles[:7]}) == 7


def test_browser_draws_every_figure(written, logs):
    """Headless Chromium draws all figures without an error."""
    drawn, console = in_browser(written / "report.html")
    assert console == []
    assert 'data-drawn="all"' in drawn
    assert drawn.count('class="plot-container') == len(analysis_figures(logs))
