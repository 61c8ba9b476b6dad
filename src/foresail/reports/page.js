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

  const draw = (name) => {
    const place = document.getElementById(name);
    const theme = dark.matches ? themes.dark : themes.light;
    const waiting = place.querySelector(".loading");
    if (waiting) waiting.remove();
    return Plotly.react(place, themed(figures[name].data, theme), themed(figures[name].layout, theme),
      { ...settings, displayModeBar: narrow.matches ? false : "hover",
        modeBarButtonsToAdd: [{ name: "save", title: "Save as PNG", icon: Plotly.Icons.camera,
          click: () => save(name) }] })
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
