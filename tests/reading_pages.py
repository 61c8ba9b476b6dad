"""Pages as a reader, or a screen reader, meets them: checked against what all pages promise."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from foresail.reports.figure import browser as found_browser

_VOID = {"meta", "line", "path", "rect", "circle", "br", "wbr", "img", "link"}


class PageOutline(HTMLParser):
    """The elements of a page with what they hold: ``(tag, attributes, text)``, in order.

    ``tables`` are those of its body: per row the texts of its cells.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self.tables: list[list[list[str]]] = []
        self.unclosed: list[tuple[str, list[str]]] = []
        self.wrongly_closed: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        held = []
        self.elements.append((tag, {key: value or "" for key, value in attributes}, held))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in _VOID:
            self.unclosed.append((tag, held))

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, {key: value or "" for key, value in attributes}, []))

    def handle_endtag(self, tag):
        if self.unclosed and self.unclosed[-1][0] == tag:
            self.unclosed.pop()
        else:
            self.wrongly_closed.append(tag)

    def handle_data(self, text):
        for tag, held in self.unclosed:
            held.append(text)
            if tag in ("td", "th"):
                self.tables[-1][-1][-1] += text

    def of(self, tag: str, **attributes: str) -> list[tuple[dict[str, str], str]]:
        """Attributes and text of the elements of a tag that have these attributes."""
        return [
            (has, "".join(held))
            for name, has, held in self.elements
            if name == tag and all(has.get(key) == value for key, value in attributes.items())
        ]


def page_faults(page: str, folder: Path | None = None) -> list[str]:
    """What of the promises of all pages is not kept, in words; none if all are.

    Parameters
    ----------
    page
        Its text.
    folder
        Where it lies, if the files that it links to are to be there.
    """
    seen = PageOutline(page)
    ids = Counter(has["id"] for _, has, _ in seen.elements if "id" in has)
    faults = [f"two elements are {name!r}" for name, count in ids.items() if count > 1]
    faults += [f"{tag} is not closed" for tag, _ in seen.unclosed]
    faults += [f"{tag} closes nothing" for tag in seen.wrongly_closed]
    for _, has, _ in seen.elements:
        for reference in ("aria-labelledby", "aria-describedby"):
            faults += [
                f"{name!r} is nowhere" for name in has.get(reference, "").split() - ids.keys()
            ]
        if has.get("href", "").startswith("#") and has["href"][1:] not in ids:
            faults.append(f"{has['href']} leads nowhere")
    levels = [int(tag[1]) for tag, _, _ in seen.elements if re.fullmatch(r"h[1-6]", tag)]
    if levels[:1] != [1] or levels.count(1) != 1:
        faults.append("it has not one heading of the first level, first")
    faults += [
        f"a heading of level {after} follows one of {before}"
        for before, after in pairwise(levels)
        if after > before + 1
    ]
    return faults + _table_faults(seen) + _figure_faults(seen) + _link_faults(seen, folder)


def _table_faults(seen: PageOutline) -> list[str]:
    faults = []
    for table in seen.tables:
        widths = {len(row) for row in table}
        if len(widths) > 1:
            faults.append(f"a table has rows of {sorted(widths)} cells")
        if not all(heading.strip() for heading in table[0]):
            faults.append(f"a column of {table[0]} has no heading")
    regions = seen.of("div", role="region")
    if len(regions) < len(seen.tables):
        faults.append("a table is in no region")
    faults += ["a region is not named" for has, _ in regions if not has.get("aria-label")]
    return faults


def _figure_faults(seen: PageOutline) -> list[str]:
    faults = []
    ((_, told),) = seen.of("script", id="figures")
    figures = json.loads(told)
    drawn = {has["data-figure"] for has, _ in seen.of("div") if "data-figure" in has}
    if drawn != figures.keys():
        faults.append(f"figures {sorted(drawn ^ figures.keys())} are only drawn or only described")
    for name, figure in figures.items():
        findings = [text for tag in ("p", "ul") for _, text in seen.of(tag, id=f"{name}-finding")]
        if not any(text.strip() for text in findings):
            faults.append(f"{name} has no finding in words")
        if not figure["data"]:
            faults.append(f"{name} draws nothing")
    ((_, told),) = seen.of("script", id="themes")
    roles = set.intersection(*(set(theme) for theme in json.loads(told).values()))
    colours = set(re.findall(r'"@(\w+)"', json.dumps(figures)))
    faults += [f"{role!r} is a colour of no theme" for role in sorted(colours - roles)]
    return faults


def _link_faults(seen: PageOutline, folder: Path | None) -> list[str]:
    faults = []
    for tag, has, _ in seen.elements:
        for name in ("src", "href"):
            target = has.get(name, "")
            if re.match(r"(\w+:)?//", target):
                faults.append(f"{tag} loads {target}")
            elif folder is not None and target and not target.startswith("#"):
                faults += [] if (folder / target).is_file() else [f"{target} is not there"]
    return faults


def drawn_values(values: object) -> np.ndarray:
    """The numbers of a trace's column, packed or not; null is nan."""
    if not isinstance(values, dict):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    flat = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).astype(float)
    return flat.reshape([int(n) for n in values.get("shape", str(flat.size)).split(",")])


def in_browser(page: Path) -> tuple[str, list[str]]:
    """Return a page as headless Chromium leaves it, and what it said on its console."""
    browser = found_browser()
    if browser is None:
        pytest.skip("no Chromium or Chrome on PATH")
    quiet = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
    command = [browser, *quiet, "--virtual-time-budget=30000", "--dump-dom", page.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return run.stdout, [line for line in run.stderr.splitlines() if ":CONSOLE" in line]
