"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 640px)");
  const settings = { responsive: true, displaylogo: false, scrollZoom: false, doubleClick: "reset",
    showSendToCloud: false, plotlyServerURL: "",
    modeBarButtonsToRemove: ["sendChartToCloud", "toImage", "lasso2d", "select2d", "autoScale2d"] };

  const themed = (value, theme) => {
    if (typeof value === "string") return value[0] === "@" ? theme[value.slice(1)] || value : value;
    if (Array.isArray(value)) return value.map((inner) => themed(inner, theme));
    if (value && typeof value === "object" && !value.bdata) {
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, themed(inner, theme)]));
    }
    return value;
  };

  const said = (seconds) => {
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const [length, unit] = units.find(([least]) => seconds >= 2 * least) || units[3];
    const amount = seconds / length;
    return (amount < 10 ? Number(amount.toPrecision(2)) : Math.round(amount)) + " " + unit;
  };

  // Finer bins are read when a reader first zooms.
  let details;
  const detailOf = (name) => {
    details = details || JSON.parse(document.getElementById("details").textContent);
    return details[name];
  };
  const tell = (name, words) => { document.getElementById(name + "-bins").textContent = words; };

  const asked = {};
  const refine = async (name) => {
    const place = document.getElementById(name);
    const detail = detailOf(name);
    const request = asked[name] = (asked[name] || 0) + 1;
    const [from, to] = place._fullLayout.xaxis.range.map((end) => end * detail.unitSeconds);
    const rowRangeOf = (trace) => {
      const key = figures[name].data[trace].yaxis.replace("y", "yaxis");
      return place._fullLayout[key].range;
    };
    const visible = Math.min(to, detail.seconds) - Math.max(from, 0);
    if (!(visible > 0)) return;
    const whole = visible > 0.98 * detail.seconds && (detail.jobs || []).every(({ trace, processors }) =>
      rowRangeOf(trace)[1] - rowRangeOf(trace)[0] > 0.98 * processors);
    if (whole) {
      if (place.dataset.zoomed) await draw(name);
      return;
    }
    // Half as much again, so that a small move shows no blank.
    const margin = visible / 4;
    const part = { from: Math.max(from - margin, 0), to: Math.min(to + margin, detail.seconds) };
    const parts = await finerBins(detail, part, rowRangeOf);
    if (request !== asked[name]) return;
    for (const { trace, change } of parts) await Plotly.restyle(place, change, [trace]);
    place.dataset.zoomed = "yes";
    const width = (kind) => parts.find(({ trace }) => figures[name].data[trace].type === kind).seconds;
    tell(name, "Zoomed in: each cell is " + said(width("heatmap")) + " wide, lines are averages over " +
      said(width("scatter")) + ".");
  };
  const onZoom = (name) => refine(name).catch((error) => {
    tell(name, "Finer bins could not be shown (" + error.message + ").");
    console.error(error);
  });

  const draw = (name) => {
    const place = document.getElementById(name);
    const fresh = !place.on;
    delete place.dataset.zoomed;
    const theme = dark.matches ? themes.dark : themes.light;
    const waiting = place.querySelector(".loading");
    if (waiting) waiting.remove();
    return Plotly.react(place, themed(figures[name].data, theme), themed(figures[name].layout, theme),
      { ...settings, displayModeBar: narrow.matches ? false : "hover",
        modeBarButtonsToAdd: [{ name: "save", title: "Save as PNG", icon: Plotly.Icons.camera,
          click: () => save(name) }] })
      .then(() => {
        if (!document.getElementById(name + "-bins")) return;
        tell(name, "");
        if (fresh) place.on("plotly_relayout", () => onZoom(name));
      })
      .catch((error) => {
        place.textContent = "This figure could not be drawn (" + error.message +
          "). Its numbers are in " + name + ".csv beside this page.";
        console.error(error);
      });
  };

  const drawAll = () => Object.keys(figures).reduce(
    (before, name) => before.then(() => new Promise((done) => setTimeout(done))).then(() => draw(name)),
    Promise.resolve());

  const reset = (name) => {
    const place = document.getElementById(name);
    const change = {};
    for (const [key, axis] of Object.entries(figures[name].layout)) {
      if (/^[xy]axis\d*$/.test(key)) {
        change[key + (axis.range ? ".range" : ".autorange")] = axis.range ? axis.range.slice() : true;
      }
    }
    return Plotly.relayout(place, change);
  };

  const save = (name) => {
    const theme = dark.matches ? themes.dark : themes.light;
    const { data, layout, image } = figures[name];
    return Plotly.downloadImage({ data: themed(data, theme), layout: themed({ ...layout, ...image }, theme) },
      { format: "png", filename: name, width: 1000, height: image.height, scale: 2 });
  };

  const along = (name, zoom, shift) => {
    const place = document.getElementById(name);
    const [low, high] = place._fullLayout.xaxis.range;
    const middle = (low + high) / 2 + shift * (high - low);
    const half = (high - low) / 2 * zoom;
    return Plotly.relayout(place, { "xaxis.range": [middle - half, middle + half] });
  };

  const keys = {
    "+": (name) => along(name, 0.7, 0), "=": (name) => along(name, 0.7, 0),
    "-": (name) => along(name, 1 / 0.7, 0), "ArrowLeft": (name) => along(name, 1, -0.2),
    "ArrowRight": (name) => along(name, 1, 0.2), "0": reset, "s": save, "S": save,
  };

  document.querySelectorAll("[data-figure]").forEach((place) => {
    place.addEventListener("keydown", (event) => {
      const action = keys[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action(place.dataset.figure);
    });
  });
  document.addEventListener("click", (event) => {
    if (event.target.dataset && event.target.dataset.save) save(event.target.dataset.save);
    if (event.target.dataset && event.target.dataset.reset) reset(event.target.dataset.reset);
  });
  dark.addEventListener("change", drawAll);
  // The words are painted before the browser so much as parses the drawing library.
  const loadPlotly = () => {
    const library = document.createElement("script");
    library.textContent = document.getElementById("plotly").textContent;
    document.body.append(library);
  };
  setTimeout(() => {
    loadPlotly();
    drawAll().then(() => document.body.setAttribute("data-drawn", "all"));
  }, 50);
})();
