"""Draw the picture of the README from the demonstration's results: `make picture`.

.venv/bin/python scripts/picture.py demo-output docs/picture.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

import plotly.graph_objects as go
import polars as pl
from kaleido import write_fig_from_object_sync
from plotly.subplots import make_subplots

from foresail.model.words import duration, number
from foresail.reports.figure import browser
from foresail.reports.style import LIGHT

POLICIES = {"easy": LIGHT["policy0"], "easy-sjbf": LIGHT["policy1"], "foresail": LIGHT["policy2"]}
DAY_SECONDS = 86400.0


def picture(results: Path) -> go.Figure:
    """Jobs that wait, day by day, beside the average slowdown and the longest wait."""
    use = pl.read_csv(results / "use-over-time.csv")
    summary = {row["policy"]: row for row in pl.read_csv(results / "summary.csv").to_dicts()}
    slowdowns = {name: summary[name]["average_bounded_slowdown"] for name in POLICIES}
    drawn = make_subplots(cols=2, column_widths=[0.62, 0.38], horizontal_spacing=0.12)
    for name in ("easy", "foresail"):
        mine = use.filter(pl.col("policy") == name)
        drawn.add_scatter(
            x=(mine["from_seconds"] / DAY_SECONDS).to_list(),
            y=mine["queued_jobs"].to_list(),
            mode="lines",
            line={"color": POLICIES[name], "shape": "hv", "width": 1.5},
            fill="tozeroy",
            row=1,
            col=1,
        )
    drawn.add_bar(
        y=list(POLICIES),
        x=list(slowdowns.values()),
        orientation="h",
        width=0.6,
        marker_color=list(POLICIES.values()),
        text=[
            f"<b>{number(slowdowns[name])}</b>, longest wait "
            f"{duration(summary[name]['max_wait_seconds'])}"
            for name in POLICIES
        ],
        textposition="outside",
        cliponaxis=False,
        row=1,
        col=2,
    )
    first = summary["easy"]
    drawn.update_layout(
        template="none",
        showlegend=False,
        font={"family": "DejaVu Sans, Verdana, sans-serif", "size": 13, "color": LIGHT["ink"]},
        paper_bgcolor=LIGHT["paper"],
        plot_bgcolor=LIGHT["paper"],
        margin={"l": 50, "r": 10, "t": 70, "b": 50},
        title={
            "text": f"The same {first['jobs']:,} jobs on {first['processors']:g} processors",
            "x": 0.01,
            "font_size": 17,
        },
    )
    headings = (("x domain", "jobs waiting"), ("x2 domain", "average bounded slowdown"))
    for axis, text in headings:
        drawn.add_annotation(
            x=0, xref=axis, y=1.08, yref="paper", text=text, showarrow=False, xanchor="left"
        )
    for name, height in (("easy", 0.94), ("foresail", 0.84)):
        drawn.add_annotation(
            x=0.4,
            xref="x domain",
            y=height,
            yref="paper",
            text=f"<b>{name}</b>",
            font_color=POLICIES[name],
            showarrow=False,
            xanchor="left",
        )
    drawn.update_xaxes(
        title={"text": "days from the first submission", "font_size": 13, "standoff": 8},
        gridcolor=LIGHT["grid"],
        zeroline=False,
        col=1,
    )
    drawn.update_yaxes(gridcolor=LIGHT["grid"], rangemode="tozero", zeroline=False, col=1)
    drawn.update_xaxes(visible=False, range=[0, 2.7 * max(slowdowns.values())], col=2)
    drawn.update_yaxes(
        autorange="reversed",
        zeroline=False,
        ticks="outside",
        tickcolor="white",
        showgrid=False,
        col=2,
    )
    return drawn


def main(results: str, path: str) -> None:
    """Write the picture of the results in a folder."""
    options = {"format": "svg", "width": 1000, "height": 340}
    drawn = {"fig": picture(Path(results) / "compare"), "path": path, "opts": options}
    found = browser()
    if found is None:
        sys.exit("the picture needs Chromium or Chrome, and none was found on PATH")
    write_fig_from_object_sync([drawn], kopts={"path": found, "mathjax": False})


if __name__ == "__main__":
    main(*sys.argv[1:])
