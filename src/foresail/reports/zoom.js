"use strict";
// Finer bins for a part of a figure over time: arithmetic alone, page.js draws.
const finerBins = (() => {
  // Whole numbers from their deflated byte planes (zooming.py).
  const unpack = async ({ count, bytes, packed }) => {
    const deflated = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const values = new Float64Array(count);
    for (let plane = bytes - 1; plane >= 0; plane--) {
      const first = plane * count;
      for (let i = 0; i < count; i++) values[i] = values[i] * 256 + planes[first + i];
    }
    return values;
  };

  const unpacked = new Map();
  const columns = (holder, names) => {
    if (!unpacked.has(holder)) {
      unpacked.set(holder, Promise.all(names.map((name) => unpack(holder[name]))));
    }
    return unpacked.get(holder);
  };

  // Adds a rectangle, in bins and rows, to each cell by the share of it that is covered.
  const cover = (cells, left, right, low, high) => {
    const rows = cells.length, bins = cells[0].length;
    const begin = Math.max(left, 0), end = Math.min(right, bins);
    const bottom = Math.max(low, 0), top = Math.min(high, rows);
    for (let row = Math.floor(bottom); row < top; row++) {
      const tall = 100 * (Math.min(top, row + 1) - Math.max(bottom, row));
      for (let bin = Math.floor(begin); bin < end; bin++) {
        cells[row][bin] += tall * (Math.min(end, bin + 1) - Math.max(begin, bin));
      }
    }
  };

  // Begin, width in whole fine bins, and number of the bins that hold the part.
  const grid = (seconds, fine, part, most) => {
    const width = seconds / fine;
    const step = Math.max(1, Math.floor((part.to - part.from) / width / most));
    const first = Math.floor(Math.max(part.from, 0) / width / step) * step;
    const last = Math.min(fine, Math.ceil(Math.min(part.to, seconds) / width));
    return { first, step, bins: Math.max(1, Math.ceil((last - first) / step)), width };
  };

  const line = async (holder, detail, part) => {
    const [heights] = await columns(holder, ["heights"]);
    const { first, step, bins, width } = grid(detail.seconds, holder.bins, part, detail.lineBins);
    const x = new Float64Array(bins), y = new Float64Array(bins);
    for (let bin = 0; bin < bins; bin++) {
      const begin = first + bin * step, end = Math.min(begin + step, holder.bins);
      for (let i = begin; i < end; i++) y[bin] += heights[i];
      y[bin] *= holder.step / (end - begin);
      x[bin] = (begin + end) / 2 * width / detail.unitSeconds;
    }
    return { trace: holder.trace, seconds: step * width, change: { x: [x], y: [y] } };
  };

  const heatMap = (holder, detail, cells, begin, width, low, tall) => ({
    trace: holder.trace, seconds: width,
    change: {
      z: [cells],
      x0: (begin + width / 2) / detail.unitSeconds, dx: width / detail.unitSeconds,
      y0: low + tall / 2, dy: tall,
    },
  });

  const empty = (rows, bins) => Array.from({ length: rows }, () => new Float64Array(bins));

  const jobs = async (holder, detail, part, rowRange) => {
    const [gaps, length, low, rows] = await columns(holder, ["begin", "length", "low", "rows"]);
    const bottom = Math.max(0, Math.floor(rowRange[0]));
    const top = Math.min(holder.processors, Math.ceil(rowRange[1]));
    const shown = Math.max(1, Math.min(detail.rowBins, top - bottom));
    const tall = Math.max(1, top - bottom) / shown;
    const width = (part.to - part.from) / detail.cellBins;
    const cells = empty(shown, detail.cellBins);
    for (let i = 0, ticks = 0; i < gaps.length; i++) {
      ticks += gaps[i];
      const begin = ticks * holder.tickSeconds - part.from;
      if (begin >= part.to - part.from) break;
      const end = begin + length[i] * holder.tickSeconds;
      if (end > 0) {
        cover(cells, begin / width, end / width,
          (low[i] - bottom) / tall, (low[i] + rows[i] - bottom) / tall);
      }
    }
    return heatMap(holder, detail, cells, part.from, width, bottom, tall);
  };

  const fineCells = async (holder, detail, part) => {
    const [used] = await columns(holder, ["used"]);
    const { first, step, bins, width } = grid(detail.seconds, holder.bins, part, detail.cellBins);
    const cells = empty(holder.rows, bins);
    for (let row = 0; row < holder.rows; row++) {
      for (let bin = 0; bin < bins; bin++) {
        const begin = first + bin * step, end = Math.min(begin + step, holder.bins);
        for (let i = begin; i < end; i++) cells[row][bin] += used[row * holder.bins + i];
        cells[row][bin] /= end - begin;
      }
    }
    return heatMap(holder, detail, cells, first * width, step * width, 0,
      holder.processors / holder.rows);
  };

  // What to redraw of the traces: part in seconds from the first submission, rowRangeOf the
  // processors shown of a trace.
  return (detail, part, rowRangeOf) => Promise.all([
    ...detail.lines.map((holder) => line(holder, detail, part)),
    ...(detail.jobs || []).map((holder) => jobs(holder, detail, part, rowRangeOf(holder.trace))),
    ...(detail.cells || []).map((holder) => fineCells(holder, detail, part)),
  ]);
})();
