// Draws the figures of the Reports pages with Plotly, in the colours of the page's theme.
"use strict";

(() => {
  // Hues apart enough for most eyes, readable on both surfaces; names stand in the legend and under the pointer.
  const PALETTE = {
    light: ["#1f78ab", "#b8641b", "#2f8f5b", "#8a4fb0", "#c2405c", "#7a6a1f", "#3f5fc4", "#4a8a8f", "#9aa3a6"],
    dark: ["#6cb8ea", "#e9a45c", "#66c795", "#c49be0", "#f0899b", "#d3c067", "#93a9f2", "#79c3c8", "#7d888d"],
  };
  const FONT_PX = 13;

  function colour(name) {
    // light-dark() only resolves on a real property, so ask an element for it.
    const probe = document.createElement("span");
    probe.hidden = true;
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  }

  function dressed(figure, width) {
    const palette = PALETTE[isDark() ? "dark" : "light"];
    const text = colour("--text"), muted = colour("--muted"), line = colour("--line"), surface = colour("--surface");
    const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { color: muted }, automargin: true };
    const data = figure.data.map((bar, index) => ({ ...bar, marker: { color: palette[index % palette.length], line: { width: 0 } } }));
    const layout = {
      ...figure.layout,
      xaxis: { ...axis, ...figure.layout.xaxis, title: undefined, showgrid: false },
      yaxis: { ...axis, ...figure.layout.yaxis, title: undefined },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: FONT_PX, color: text },
      margin: { l: 8, r: 8, t: 8, b: 8 },
      bargap: 0.12,
      hoverlabel: { bgcolor: surface, bordercolor: line, font: { color: text } },
      legend: width < 640 ? { orientation: "h", y: -0.2, yanchor: "top", x: 0, traceorder: "normal" } : { traceorder: "normal" },
    };
    return { data, layout };
  }

  function draw(place) {
    const source = document.getElementById(place.dataset.plot);
    if (!source || !window.Plotly) return;
    const { data, layout } = dressed(JSON.parse(source.textContent), place.clientWidth);
    window.Plotly.react(place, data, layout, { responsive: true, displayModeBar: false, displaylogo: false });
    listen(place);
  }

  // ---- zoom and drill-down

  function listen(place) {
    if (place.dataset.listens) return;
    place.dataset.listens = "yes";
    const panel = document.getElementById(place.dataset.drill || "");
    if (panel) place.on("plotly_click", (event) => drill(panel, event.points));
    const card = place.closest(".card");
    const shown = place.layout.xaxis.range && [...place.layout.xaxis.range];
    card.querySelectorAll("[data-zoom]").forEach((button) => {
      button.addEventListener("click", () => {
        const range = button.dataset.zoom === "whole" ? [button.dataset.begin, button.dataset.end] : shown;
        window.Plotly.relayout(place, { "xaxis.range": range });
        card.querySelectorAll("[data-zoom]").forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
      });
    });
  }

  const HOUR_MS = 3600000;
  const iso = (ms) => new Date(ms).toISOString().slice(0, 19) + "Z";

  function drill(panel, points) {
    const begin = Date.parse(String(points[0].data.x[points[0].pointNumber]));
    const there = points.filter((point) => point.y > 0 && point.data.meta);
    const all = points.reduce((sum, point) => sum + point.y, 0);
    panel.hidden = false;
    panel.querySelector("[data-drill-hour]").textContent = `${iso(begin).slice(0, 16).replace("T", " ")} UTC`;
    panel.querySelector("[data-drill-count]").textContent = `${all.toLocaleString("en")} messages`;
    panel.querySelector("[data-drill-list]").replaceChildren(...there.map((point) => entry(panel, point, begin)));
    const select = panel.querySelector("[data-drill-select]");
    if (!select) return;
    const names = ["", ...there.map((point) => point.data.meta)];
    select.replaceChildren(...names.map((name) => new Option(name || "all topics", name)));
    panel.querySelector("[data-drill-begin]").value = iso(begin).slice(0, 16);
    panel.querySelector("[data-drill-end]").value = iso(begin + HOUR_MS).slice(0, 16);
  }

  function entry(panel, point, begin) {
    const item = document.createElement("li"), link = document.createElement("a"), count = document.createElement("span");
    const times = new URLSearchParams({ since: iso(begin), until: iso(begin + HOUR_MS) });
    link.href = `${panel.dataset.topic.replace("TOPIC", encodeURIComponent(point.data.meta))}?${times}`;
    link.textContent = point.data.meta;
    link.title = "Messages of this hour, as far as the broker still has them";
    count.className = "muted";
    count.textContent = ` ${point.y.toLocaleString("en")}`;
    item.append(link, count);
    return item;
  }

  function drawAll() {
    document.querySelectorAll("[data-plot]").forEach(draw);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", drawAll);
  else drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  new MutationObserver(drawAll).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
