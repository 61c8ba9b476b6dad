// The pictures: the plan in space and time, the range of a start, the use of the last day.

import { count, drawn, duration, percent } from "./words.js";

const WIDTH = 1180;
const LEFT = 56;
const RIGHT = 12;
const STEPS = [60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800];

function ticks(begin, end, most) {
  const step = STEPS.find((each) => (end - begin) / each <= most) ?? STEPS.at(-1);
  const found = [];
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) found.push(at);
  return found;
}

function hour(at, span) {
  const shown = span > 2 * 86400 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit" };
  return new Date(at * 1000).toLocaleString([], shown);
}

// Rows for bars so that none lies on another: each bar takes the first rows that are free from its start on.
function placed(bars, rows) {
  const freeAt = new Array(rows).fill(-Infinity);
  return bars.map((bar) => {
    const height = Math.max(1, Math.min(rows, Math.round(bar.rows)));
    let best = 0;
    let bestAt = Infinity;
    for (let row = 0; row + height <= rows; row += 1) {
      const at = Math.max(...freeAt.slice(row, row + height));
      if (at < bestAt) [best, bestAt] = [row, at];
      if (at <= bar.begin) break;
    }
    for (let row = best; row < best + height; row += 1) freeAt[row] = Math.max(bar.end, freeAt[row]);
    return { ...bar, row: best, height };
  });
}

export function planPicture(plan, open) {
  const now = plan.now_seconds;
  const finite = (value) => value !== null && Number.isFinite(value);
  const ends = [...plan.running, ...plan.waiting].map((job) => job.end.p50).filter(finite);
  const span = Math.min(7 * 86400, Math.max(60, 1.1 * (Math.max(now, ...ends) - now)));
  const starts = plan.running.map((job) => job.start.p50);
  const begin = Math.max(now - Math.max(60, span / 4), Math.min(now - 30, ...starts));
  const end = now + span;
  const rows = Math.max(1, Math.min(128, Math.ceil(plan.cpus)));
  const perRow = plan.cpus / rows;
  const rowHeight = Math.max(4, Math.min(30, 420 / rows));
  const height = rows * rowHeight;
  const x = (at) => LEFT + ((Math.min(end, Math.max(begin, at)) - begin) / (end - begin)) * (WIDTH - LEFT - RIGHT);
  const says = planWords(plan);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${height + 34}`, role: "group", "aria-label": says });
  svg.append(drawn("title", {}, says));
  for (const at of ticks(begin, end, 10)) {
    svg.append(drawn("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: height }));
    svg.append(drawn("text", { x: x(at), y: height + 16, "text-anchor": "middle" }, hour(at, end - begin)));
  }
  svg.append(drawn("rect", { class: "frame", x: LEFT, y: 0, width: WIDTH - LEFT - RIGHT, height }));
  svg.append(drawn("text", { x: LEFT - 8, y: 12, "text-anchor": "end" }, `${plan.cpus}`));
  svg.append(drawn("text", { x: LEFT - 8, y: height, "text-anchor": "end" }, "0"));
  svg.append(drawn("text", { x: LEFT - 8, y: height / 2, "text-anchor": "end" }, "cpus"));
  const bars = placed(
    [
      ...plan.running.map((job) => ({ job, runs: true, begin: job.start.p50, end: Math.max(now, job.end.p50 ?? end) })),
      ...plan.waiting
        .filter((job) => finite(job.start.p50) && job.start.p50 < end)
        .map((job) => ({ job, runs: false, begin: Math.max(now, job.start.p50), end: job.end.p50 ?? end })),
    ].map((bar) => ({ ...bar, rows: bar.job.cpus / perRow })),
    rows,
  );
  const shades = drawn("defs");
  svg.append(shades);
  for (const [number, bar] of bars.entries()) {
    const y = bar.row * rowHeight + 1;
    const size = bar.height * rowHeight - 2;
    const label = barWords(bar, now);
    const link = bar.job.job_id === null
      ? drawn("g", { role: "img", "aria-label": label })
      : drawn("a", { href: `#job-${bar.job.job_id}`, "aria-label": label });
    link.append(drawn("title", {}, label));
    if (bar.runs) {
      const to = bar.job.end.p90 ?? end;
      const from = Math.min(Math.max(now, bar.job.end.p10 ?? now), to);
      shades.append(fading(`fade${number}`, x(bar.begin), x(from), x(to)));
      link.append(drawn("rect", {
        class: "runs", x: x(bar.begin), y, width: Math.max(2, x(to) - x(bar.begin)), height: size, rx: 2,
        mask: `url(#fade${number})`,
      }));
    } else {
      const width = Math.max(2, x(bar.end) - x(bar.begin));
      link.append(drawn("rect", { class: "waits", x: x(bar.begin), y, width, height: size, rx: 2 }));
    }
    if (size >= 12 && bar.job.name && x(bar.end) - x(bar.begin) > 40) {
      const room = Math.floor((x(bar.end) - x(bar.begin)) / 7);
      const short = bar.job.name.length > room ? `${bar.job.name.slice(0, Math.max(1, room - 1))}…` : bar.job.name;
      link.append(drawn("text", { class: "label", x: x(bar.begin) + 4, y: y + Math.min(size, 30) / 2 + 4 }, short));
    }
    const due = bar.job.deadline_seconds;
    if (due !== null && due >= begin && due <= end) {
      const late = (bar.job.misses ?? 0) > 0.5;
      link.append(drawn("line", { class: late ? "late" : "due", x1: x(due), x2: x(due), y1: y, y2: y + size }));
    }
    link.addEventListener("click", (event) => {
      event.preventDefault();
      if (bar.job.job_id !== null) open(bar.job.job_id);
    });
    svg.append(link);
  }
  svg.append(drawn("line", { class: "now", x1: x(now), x2: x(now), y1: 0, y2: height + 4 }));
  svg.append(drawn("text", { class: "label", x: x(now), y: height + 30, "text-anchor": "middle" }, "now"));
  return svg;
}

function fading(id, begin, from, to) {
  const shade = drawn("linearGradient", { id: `${id}-shade`, gradientUnits: "userSpaceOnUse", x1: from, x2: Math.max(to, from + 1) });
  shade.append(drawn("stop", { offset: 0, "stop-color": "#fff", "stop-opacity": 0.85 }));
  shade.append(drawn("stop", { offset: 1, "stop-color": "#fff", "stop-opacity": 0.08 }));
  const mask = drawn("mask", { id, maskUnits: "userSpaceOnUse", x: begin, y: 0, width: WIDTH, height: 10000 });
  mask.append(drawn("rect", { x: begin, y: 0, width: WIDTH, height: 10000, fill: `url(#${id}-shade)` }));
  const both = drawn("g");
  both.append(shade, mask);
  return both;
}

function barWords(bar, now) {
  const who = bar.job.job_id === null ? "another user's job" : `job ${bar.job.job_id}, ${bar.job.name}`;
  const ends = `ends in ${duration((bar.job.end.p50 ?? Infinity) - now)}`;
  const range = `(${duration((bar.job.end.p10 ?? Infinity) - now)} to ${duration((bar.job.end.p90 ?? Infinity) - now)})`;
  const starts = bar.runs ? "runs" : `starts in ${duration(bar.job.start.p50 - now)}`;
  const misses = bar.job.misses === null ? "" : `, misses its deadline with ${percent(bar.job.misses)}`;
  if (!bar.job.is_known) return `${who}: ${bar.job.cpus} cpus, too little is known yet${misses}`;
  const held = bar.job.held === null ? "" : `, only ${percent(bar.job.held)} of such ranges held`;
  return `${who}: ${bar.job.cpus} cpus, ${starts}, ${ends} ${range}${held}${misses}`;
}

export function planWords(plan) {
  const used = plan.running.reduce((sum, job) => sum + job.cpus, 0);
  const said = [`${used} of ${count(plan.cpus, "cpu")} held by ${count(plan.running.length, "job")}.`];
  if (plan.pending === 0) said.push("Nothing waits.");
  else {
    const next = plan.waiting[0];
    const when = next ? `; the next should start in ${duration(next.start.p50 - plan.now_seconds)}` : "";
    said.push(`${count(plan.pending, "job")} ${plan.pending === 1 ? "waits or is" : "wait or are"} held${when}.`);
  }
  const late = [...plan.running, ...plan.waiting].filter((job) => (job.misses ?? 0) > 0.5).length;
  if (late) said.push(`${count(late, "job")} will more likely than not miss a deadline.`);
  return said.join(" ");
}

// A small bar on an axis that all rows share.
export function startRange(start, now, horizon) {
  const width = 120;
  const x = (at) => Math.max(2, Math.min(width - 2, ((at - now) / horizon) * width));
  const svg = drawn("svg", { viewBox: `0 0 ${width} 12`, width, height: 12, "aria-hidden": "true" });
  svg.append(drawn("line", { class: "grid", x1: 0, x2: width, y1: 6, y2: 6 }));
  if (start.p50 !== null) {
    svg.append(drawn("line", { class: "span", x1: x(start.p10), x2: x(start.p90 ?? Infinity), y1: 6, y2: 6 }));
    svg.append(drawn("circle", { class: "likely", cx: x(start.p50), cy: 6, r: 3.5 }));
  }
  return svg;
}

export function usagePicture(usage) {
  const height = 130;
  const bins = usage.used_cpus.length;
  const inner = WIDTH - LEFT - RIGHT;
  const step = inner / bins;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${height + 22}`, role: "img" });
  svg.append(drawn("title", {}, usageWords(usage)));
  const end = usage.begin_seconds + bins * usage.bin_seconds;
  const x = (at) => LEFT + ((at - usage.begin_seconds) / (end - usage.begin_seconds)) * inner;
  for (const at of ticks(usage.begin_seconds, end, 10)) {
    svg.append(drawn("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: height }));
    svg.append(drawn("text", { x: x(at), y: height + 16, "text-anchor": "middle" }, hour(at, end - usage.begin_seconds)));
  }
  usage.used_cpus.forEach((used, bin) => {
    const size = Math.min(1, used / usage.cpus) * height;
    svg.append(drawn("rect", { class: "used", x: LEFT + bin * step, y: height - size, width: step, height: size }));
  });
  svg.append(drawn("rect", { class: "frame", x: LEFT, y: 0, width: inner, height }));
  svg.append(drawn("text", { x: LEFT - 8, y: 12, "text-anchor": "end" }, `${usage.cpus}`));
  svg.append(drawn("text", { x: LEFT - 8, y: height / 2, "text-anchor": "end" }, "cpus"));
  svg.append(drawn("text", { x: LEFT - 8, y: height, "text-anchor": "end" }, "0"));
  return svg;
}

export function usageWords(usage) {
  const bins = usage.used_cpus.length;
  const mean = usage.used_cpus.reduce((sum, each) => sum + each, 0) / bins / usage.cpus;
  const started = usage.started.reduce((sum, each) => sum + each, 0);
  const waited = usage.wait_seconds.reduce((sum, each, bin) => sum + (each ?? 0) * usage.started[bin], 0);
  const waits = started ? `; ${count(started, "job")} started, after ${duration(waited / started)} of waiting in the mean` : "";
  return `In the last ${duration(bins * usage.bin_seconds)} ${percent(mean)} of the cpus were held${waits}.`;
}
