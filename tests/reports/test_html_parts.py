"""Tables, keys and ends of pages as HTML, and the check that pages are held to."""

from __future__ import annotations

import polars as pl
import pytest

from foresail.reports.document import (
    RankedColumn,
    RankedTable,
    document,
    footer,
    further,
    key,
    key_of,
    leading,
    note,
    numbers_section,
    policy_name,
    ranked,
    row,
    section,
    swatch,
    table,
    user_name,
)
from foresail.reports.figure import Figure
from foresail.reports.style import layout, named_styles
from reading_pages import PageOutline, page_faults


def line(name: str, **more: object) -> dict[str, object]:
    """A trace as figures have it."""
    colours = {"line": {"color": "@policy1", "dash": "dash"}}
    return {"name": name, "showlegend": True, "type": "scatter", "x": [1], **colours, **more}


def drawing(*traces: dict[str, object]) -> Figure:
    """A figure of these traces."""
    numbers = pl.DataFrame({"x": [1]})
    return Figure("seen", "What is seen?", ["It is."], traces, layout(100), numbers)


def test_a_table_names_its_columns_and_rows():
    """Words at the left, numbers after them, its name and caption escaped."""
    rows = [row(["<i>a</i>", "b", "1"], words=2), row(["c", ("d", "verdict"), "2"], words=2)]
    seen = PageOutline(html := table("a<b", ["x", "y", "z"], rows, words=2, caption="d & e"))
    assert seen.tables == [[["x", "y", "z"], ["a", "b", "1"], ["c", "d", "2"]]]
    assert [text for _, text in seen.of("th", scope="row")] == ["a", "c"]
    assert [text for _, text in seen.of("th", scope="col")] == ["x", "y", "z"]
    assert [text for tag in ("th", "td") for _, text in seen.of(tag, **{"class": "number"})] == [
        "z",
        "1",
        "2",
    ]
    assert [text for _, text in seen.of("td", **{"class": "verdict"})] == ["d"]
    assert [has["aria-label"] for has, _ in seen.of("div", role="region")] == ["a<b"]
    assert "<caption>d &amp; e</caption>" in html


def test_marked_rows_and_cells():
    """The best is starred and bold; a row can be of a kind."""
    assert row(["as stated", "1"], kind="stated").startswith("<tr class='stated'>")
    column = RankedColumn("cost", float, str, better=-1)
    told = ranked("Costs", RankedTable("name", ["a", "b"], [3.0, 4.0], [column]), ["a", "b"])
    assert "<td class='number best'>3.0<span" in told
    assert "<td class='number'>4.0</td>" in told
    assert (user_name(None), user_name("<u>")) == ("–", "&lt;u&gt;")


def test_what_is_empty_says_nothing():
    """No key without entries, no note without words, no remainder of nothing."""
    assert (key([]), note(""), further(0, "job")) == ("", "", "")
    assert further(1, "job") == "<p class='note'>1 job in the CSV.</p>"
    assert further(2, "policy", "policies", where="not shown") == (
        "<p class='note'>2 policies not shown.</p>"
    )
    assert leading(["a<b", "c"]) == "<ul class='lead'><li>a&lt;b</li><li>c</li></ul>"


def test_keys_tell_what_is_drawn_apart():
    """Dashes, marks and bars of several; a single one needs no key, nor what is named otherwise."""
    mark = line("mark", marker={"color": "@policy2", "symbol": "diamond"})
    del mark["line"]
    bar = line("bar", type="bar", marker={"color": "@loss", "opacity": 0.5})
    del bar["line"]
    seen = PageOutline(key_of(drawing(line("<l>"), mark, bar, line("not", showlegend=False))))
    assert [text for _, text in seen.of("li")] == [" <l>", " mark", " bar"]
    strokes = [(has["stroke"], has["stroke-dasharray"]) for has, _ in seen.of("line")]
    assert strokes == [("var(--policy1)", "8 4"), ("var(--loss)", "none")]
    assert [has["fill"] for has, _ in seen.of("g")] == ["var(--policy2)"]
    assert key_of(drawing(line("alone"))) == ""
    assert "stroke-opacity='0.5'" in swatch("@loss", opacity=0.5)


def test_policies_are_named_in_full():
    """The label, and all of a policy whose label is cut."""
    short, long = named_styles(["easy", "easy(order=" + "x" * 80 + ")"])
    assert "<code" not in policy_name(short)
    assert f"<code class='full'>{long.policy}</code>" in policy_name(long)


def test_sections_and_ends():
    """The CSV behind a table, the command, how it was made and the keys."""
    numbers = numbers_section("waits", "How long?", "TABLE", "foresail <x>")
    assert "id='waits-table'" in numbers
    assert "href='waits.csv'" in numbers
    assert "foresail &lt;x&gt;" in numbers
    end = footer(["one", "two"], "run <it>")
    assert end.index("run &lt;it&gt;") < end.index("<p>one</p><p>two</p>") < end.index("id='keys'")
    assert "Made by" not in footer([])


def whole_page() -> str:
    """A page with a figure and a table, as it should be."""
    part = drawing(line("a"), line("b"))
    numbers = numbers_section("t", "Numbers", table("Numbers", ["x", "y"], [row(["1", "2"])]))
    body = f"<h1>T</h1><main id='numbers'>{section(part, key_of(part))}{numbers}</main>{footer([])}"
    return document("T", body, [part])


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("id='t-table'", "id='numbers'", "two elements are 'numbers'"),
        ("</table>", "", "table"),
        ("id='keys'", "id='kees'", "'keys' is nowhere"),
        ("href='#numbers'", "href='#nothing'", "#nothing leads nowhere"),
        ("<h1>T</h1>", "<p>T</p>", "it has not one heading of the first level, first"),
        ("<h2>Numbers</h2>", "<h4>Numbers</h4>", "a heading of level 4 follows one of 2"),
        ("<td class='number'>2</td>", "", "a table has rows of [1, 2] cells"),
        ("<th scope='col'>x</th>", "<th scope='col'></th>", "has no heading"),
        ("aria-label='Numbers'", "", "a region is not named"),
        ("role='region'", "", "a table is in no region"),
        ("data-figure='seen'", "", "['seen'] are only drawn or only described"),
        ("It is.", "", "seen has no finding in words"),
        ("@policy1", "@policy99", "'policy99' is a colour of no theme"),
        ("href='t.csv'", "href='https://a.example/t.csv'", "a loads https://a.example/t.csv"),
    ],
)
def test_broken_promises_are_found(right, wrong, fault):
    """Each of them, by itself; the page as it should be has none."""
    page = whole_page()
    assert page_faults(page) == []
    assert right in page
    assert any(fault in found for found in page_faults(page.replace(right, wrong)))


def test_files_that_are_linked_to_are_there(tmp_path):
    """A link to a file that was not written is a fault."""
    (tmp_path / "t.csv").write_text("")
    assert page_faults(whole_page(), tmp_path) == ["seen.csv is not there"]
