// The Reports pages: their charts, which time they show, and what was in the hour that was chosen.
"use strict";
(() => {
  const HOUR_MS = 3600000;
  const iso = (ms) => new Date(ms).toISOString().slice(0, 19) + "Z";

  function begin(place) {
    const source = document.getElementById(place.dataset.plot), panel = document.getElementById(place.dataset.drill || "");
    if (!source || place.querySelector("svg")) return;
    const figure = JSON.parse(source.textContent);
    const chart = new window.BarChart(place, figure, panel ? (index) => drill(panel, figure, index) : null);
    const buttons = [...place.closest(".card").querySelectorAll("[data-zoom]")];
    const press = (pressed) => buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === pressed)));
    place.addEventListener("bars:zoom", () => press(null));
    const chosen = panel ? figure.x.findIndex((at) => location.hash === `#${iso(at)}`) : -1;
    if (chosen >= 0) { drill(panel, figure, chosen); if (place.clientWidth) chart.show(chosen); }
    for (const button of buttons) {
      button.addEventListener("click", () => { chart.zoomTo(button.dataset.zoom === "whole" ? figure.whole : figure.shown); press(button); });
    }
  }

  function drill(panel, figure, index) {
    const at = figure.x[index], there = figure.series.filter((series) => series.values[index] > 0 && series.topic);
    const all = figure.series.reduce((sum, series) => sum + (series.values[index] ?? 0), 0);
    panel.hidden = false;
    history.replaceState(history.state, "", `#${iso(at)}`);   // who comes back finds the hour again
    panel.querySelector("[data-drill-hour]").textContent = window.gantryTimes.text(`${iso(at).slice(0, 16).replace("T", " ")} UTC`);
    panel.querySelector("[data-drill-count]").textContent = interpolate(ngettext("%s message", "%s messages", all), [all.toLocaleString("en").replaceAll(",", "\u202f")]);
    panel.querySelector("[data-drill-list]").replaceChildren(...there.map((series) => entry(panel, series, index, at)));
    const select = panel.querySelector("[data-drill-select]");
    if (!select) return;
    select.replaceChildren(...["", ...there.map((series) => series.topic)].map((name) => new Option(name || gettext("all topics"), name)));
    panel.querySelector("[data-drill-begin]").value = iso(at).slice(0, 16);
    panel.querySelector("[data-drill-end]").value = iso(at + HOUR_MS).slice(0, 16);
  }

  function entry(panel, series, index, at) {
    const item = document.createElement("li"), link = document.createElement("a"), count = document.createElement("span");
    const times = new URLSearchParams({ since: iso(at), until: iso(at + HOUR_MS) });
    link.href = `${panel.dataset.topic.replace("TOPIC", encodeURIComponent(series.topic))}?${times}`;
    link.textContent = series.topic;
    link.title = gettext("Messages of this hour, as far as the broker still has them");
    count.className = "muted";
    count.textContent = ` ${series.values[index].toLocaleString("en").replaceAll(",", "\u202f")}`;
    item.append(link, count);
    return item;
  }

  const beginAll = (root) => root.querySelectorAll("[data-plot]").forEach(begin);
  beginAll(document);
  document.addEventListener("htmx:afterSwap", () => beginAll(document));
})();
