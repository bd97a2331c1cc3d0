// Bars over hours or over names, stacked or side by side, drawn as SVG: under the pointer and by keyboard each says its
// numbers; a range is drawn out with the pointer, or by + and −; series are hidden by their names; a table has the same.
"use strict";
(() => {
  const LEFT = 56, TOP = 10, LINE = 15, TICK = 5, HOUR_MS = 3600e3, DAY_MS = 24 * HOUR_MS;
  const DRAWN_PX = 6;                               // a shorter way of the pointer is a click
  const BAR_PX_MAX = 72, COLOURS = 9, TIP_ROWS = 10, TABLE_ROWS = 500, LEAST_SHOWN = 3;
  const SIDE_PX_MIN = 3;                            // bars side by side that are thinner are drawn as lines
  const thin = (number) => number.toLocaleString("en", { maximumFractionDigits: 1 }).replaceAll(",", "\u202f");
  const { duration } = window.gantryTimes;
  // How an axis and a tip say a value of each kind of column (appliance/reports/catalogue.py).
  const SAID = {
    bytes: (value) => window.gantrySize(value),
    ms: (value) => (value < 1000 ? `${+value.toFixed(1)}\u202fms` : duration(value / 1000)),
    seconds: duration,
    share: (value) => `${+(value * 100).toFixed(1)}\u202f%`,
    change: (value) => `${+(value * 100).toFixed(1)}\u202f%`,
  };
  const OF_AXIS = (value) => {
    const units = ["", "k", "M", "G", "T", "P"];
    let unit = 0;
    while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
    return `${+value.toFixed(Math.abs(value) < 10 ? 1 : 0)}${units[unit]}`;
  };

  function niceMax(value, kind) {
    let scale = 1;
    if (kind === "bytes") while (value / scale >= 1024) scale *= 1024;
    const power = scale * 10 ** Math.floor(Math.log10(value / scale));
    return [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.9999) * power;
  }
  function make(tag, facts = {}, ...children) { const made = Object.assign(document.createElement(tag), facts); made.append(...children); return made; }

  class BarChart {
    // figure: {x, series: [{name, values}], is_stacked, kind}; with step_ms, x are the begins of hours, and shown, whole their ranges.
    constructor(element, figure, onPick) {
      Object.assign(this, { element, figure, onPick, at: null, from: null, hidden: new Set() });
      this.isTime = Boolean(figure.step_ms);
      this.origin = this.isTime ? figure.whole[0] : 0;
      this.places = figure.x.map((x, index) => (this.isTime ? (x - this.origin) / figure.step_ms : index));
      this.say = SAID[figure.kind] ?? thin;
      this.all = this.isTime ? figure.whole.map((at) => (at - this.origin) / figure.step_ms) : [0, figure.x.length];
      this.view = this.isTime ? figure.shown.map((at) => (at - this.origin) / figure.step_ms) : this.all;
      this.svg = element.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
      this.tip = element.appendChild(make("div", { className: "bar-tip", hidden: true }));
      this.tip.setAttribute("role", "status");
      element.tabIndex = 0;
      if (figure.series.length > 1) element.after(this.legend());
      this.twin();
      this.listen();
      new ResizeObserver(() => this.draw()).observe(element);
    }

    legend() {
      const list = make("ul", { className: "bar-legend" });
      this.figure.series.forEach((series, index) => {
        const key = make("i", { className: `bar-key bar-${index % COLOURS}` });
        const button = make("button", { type: "button", className: "ghost small", title: gettext("Show or hide it") }, key, make("span", { textContent: series.name }));
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => {
          if (!this.hidden.delete(index)) this.hidden.add(index);
          button.setAttribute("aria-pressed", String(!this.hidden.has(index)));
          this.draw();
        });
        list.append(make("li", {}, button));
      });
      return list;
    }

    // The same numbers as a table, made when it is opened.
    twin() {
      const box = make("details", { className: "twin" }, make("summary", { textContent: gettext("As a table") }));
      box.addEventListener("toggle", () => {
        if (!box.open || box.querySelector("table")) return;
        const { series, x } = this.figure, table = make("table", { className: "data" }), head = table.createTHead().insertRow();
        head.append(this.isTime ? make("th", { textContent: gettext("Hour") }) : make("td"), ...series.map((one) => make("th", { className: "num", textContent: one.name })));
        const body = table.createTBody();
        for (let row = 0; row < Math.min(x.length, TABLE_ROWS); row += 1) {
          const line = body.insertRow();
          line.append(make("td", { className: "nowrap", textContent: this.title(row) }), ...series.map((one) => make("td", { className: "num", textContent: this.value(one.values[row]) })));
        }
        box.append(make("div", { className: "scroll scroll-tall", tabIndex: 0 }, table));
      });
      this.element.parentElement.insertBefore(box, this.element.nextElementSibling?.matches(".bar-legend") ? this.element.nextElementSibling.nextSibling : this.element.nextSibling);
    }

    value(value) { return value === null || value === undefined ? "—" : this.say(value); }
    title(index) {
      const x = this.figure.x[index];
      return this.isTime ? window.gantryTimes.text(`${new Date(x).toISOString().slice(0, 16).replace("T", " ")} UTC`) : String(x);
    }

    shown() { return this.figure.series.map((series, index) => [series, index]).filter(([, index]) => !this.hidden.has(index)); }
    inView() { return this.places.flatMap((place, index) => (place + 1 > this.view[0] && place < this.view[1] ? [index] : [])); }

    draw() {
      const { clientWidth: width, clientHeight: height } = this.element;
      if (!width) return;
      const rows = this.isTime && this.tickStep(width) < 24 ? window.gantryTimes.axisZones(this.figure.x.at(-1) / 1000).length : 1;
      const bottom = TICK + rows * LINE, [begin, end] = this.view, inside = this.inView(), shown = this.shown();
      const highest = this.highest(inside, shown), lowest = this.lowest(inside, shown);
      const most = highest > 0 ? niceMax(highest, this.figure.kind) : lowest < 0 ? 0 : 1, least = lowest < 0 ? -niceMax(-lowest, this.figure.kind) : 0;
      const x = (place) => LEFT + ((place - begin) / (end - begin)) * (width - LEFT - 2);
      const y = (value) => TOP + ((most - value) / (most - least)) * (height - TOP - bottom);
      Object.assign(this, { x, width });
      const parts = this.grid(least, most, y, width);
      const room = (width - LEFT - 2) / (end - begin);
      if (!this.figure.is_stacked && shown.length > 1 && (room * 0.86) / shown.length < SIDE_PX_MIN) parts.push(...this.lines(inside, shown, x, y, height - bottom));
      else for (const index of inside) parts.push(...this.bars(index, shown, x, y));
      parts.push(...(this.isTime ? this.hours(x, width, height, rows) : this.names(inside, x, width, height)));
      if (this.from !== null) {
        const [left, right] = [this.from, this.to].sort((one, other) => one - other);
        parts.push(`<rect class="drawn" x="${left}" width="${right - left}" y="${TOP}" height="${height - TOP - bottom}"/>`);
      }
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);  // on paper it shrinks as a whole
      this.svg.innerHTML = parts.join("");          // numbers, and texts that are escaped
    }

    total(index, shown, isBelow) {
      return shown.reduce((sum, [series]) => { const value = series.values[index] ?? 0; return (value < 0) === isBelow ? sum + value : sum; }, 0);
    }
    highest(inside, shown) { return Math.max(0, ...inside.map((index) => (this.figure.is_stacked ? this.total(index, shown, false) : Math.max(0, ...shown.map(([series]) => series.values[index] ?? 0))))); }
    lowest(inside, shown) { return Math.min(0, ...inside.map((index) => (this.figure.is_stacked ? this.total(index, shown, true) : Math.min(0, ...shown.map(([series]) => series.values[index] ?? 0))))); }

    grid(least, most, y, width) {
      const parts = [], say = SAID[this.figure.kind] ?? OF_AXIS;
      for (const value of new Set([least, most === 0 ? least / 2 : 0, most / 2, most])) {
        const at = y(value).toFixed(1);
        parts.push(`<line class="grid${value === 0 ? " zero" : ""}" x1="${LEFT}" x2="${width}" y1="${at}" y2="${at}"/><text x="${LEFT - 8}" y="${+at + 4}" text-anchor="end">${say(value)}</text>`);
      }
      return parts;
    }

    // What is not known has no bar; a value that is too small to be seen has one of a pixel.
    bars(index, shown, x, y) {
      const room = x(this.places[index] + 1) - x(this.places[index]), wide = Math.min(this.isTime ? Infinity : BAR_PX_MAX, room * 0.86);
      const left = x(this.places[index]) + (room - wide) / 2, each = this.figure.is_stacked ? wide : wide / Math.max(1, shown.length);
      const parts = [], reached = { up: 0, down: 0 };
      shown.forEach(([series, colour], turn) => {
        const value = series.values[index];
        if (!value) return;
        const way = value < 0 ? "down" : "up", before = this.figure.is_stacked ? reached[way] : 0, after = before + value;
        reached[way] = after;
        const top = Math.min(y(before), y(after)), high = Math.max(1, Math.abs(y(after) - y(before)));
        const begin = Math.max(LEFT, left + (this.figure.is_stacked ? 0 : turn * each)), end = Math.min(this.width, left + (this.figure.is_stacked ? wide : (turn + 1) * each));
        if (end > begin) parts.push(`<rect class="bar-${colour % COLOURS}${this.at !== null && this.at !== index ? " faint" : ""}" x="${begin.toFixed(2)}" y="${top.toFixed(2)}" width="${(end - begin).toFixed(2)}" height="${high.toFixed(2)}"/>`);
      });
      return parts;
    }

    // A step for each place; a line ends where nothing is known.
    lines(inside, shown, x, y, low) {
      const parts = inside.includes(this.at) ? [`<line class="tick" x1="${x(this.places[this.at] + 0.5).toFixed(1)}" x2="${x(this.places[this.at] + 0.5).toFixed(1)}" y1="${TOP}" y2="${low}"/>`] : [];
      for (const [series, colour] of [...shown].reverse()) {        // the largest on top
        let path = "", before = null;
        for (const index of inside) {
          const value = series.values[index], known = value !== null && value !== undefined;
          const from = Math.max(LEFT, x(this.places[index])), to = Math.min(this.width, x(this.places[index] + 1));
          if (known && to > from) path += `${before === index - 1 ? "L" : "M"}${from.toFixed(1)} ${y(value).toFixed(1)}H${to.toFixed(1)}`;
          if (known) before = index;
        }
        if (path) parts.push(`<path class="bar-${colour % COLOURS}" d="${path}"/>`);
      }
      return parts;
    }

    tickStep(width) {                               // hours between labels
      const fit = Math.max(1, Math.floor((width - LEFT) / 72)), span = this.view[1] - this.view[0];
      return [1, 2, 3, 6, 12, 24, 48, 72, 96, 168, 336, 720].find((step) => span / step <= fit) ?? 2160;
    }

    hours(x, width, height, rows) {
      const step = this.tickStep(width) * HOUR_MS, parts = [], times = window.gantryTimes;
      const east = times.mode() === "local" ? times.offsetAt(this.figure.x[0] ?? 0) * 60e3 : 0;
      const begin = this.origin + this.view[0] * this.figure.step_ms, end = this.origin + this.view[1] * this.figure.step_ms;
      for (let at = Math.ceil((begin + east) / step) * step - east; at <= end; at += step) {
        const px = x((at - this.origin) / this.figure.step_ms);
        if (px > width - 18) break;
        times.axis(at / 1000, 5, 16).slice(0, rows).forEach((text, row) => {
          const [day, clock] = text.split(" ");
          parts.push(`<text x="${px.toFixed(1)}" y="${height - 3 - (rows - 1 - row) * LINE}" text-anchor="middle">${step >= DAY_MS || clock === "00:00" ? day : clock}</text>`);
        });
        parts.push(`<line class="tick" x1="${px.toFixed(1)}" x2="${px.toFixed(1)}" y1="${height - TICK - rows * LINE}" y2="${height - TICK - rows * LINE + 4}"/>`);
      }
      times.axisZones(end / 1000).slice(0, rows).forEach((zone, row) => parts.push(`<text class="zone" x="0" y="${height - 3 - (rows - 1 - row) * LINE}">${zone}</text>`));
      return parts;
    }

    names(inside, x, width, height) {
      const room = (width - LEFT) / Math.max(1, inside.length), longest = Math.max(4, ...inside.map((index) => String(this.figure.x[index]).length));
      const wanted = Math.min(longest * 7 + 10, 120), every = Math.max(1, Math.ceil(wanted / room)), chars = Math.max(4, Math.floor((room * every - 8) / 6.6));
      let free = 0;                                 // where the label before ends: the last one is moved to the left
      return inside.flatMap((index, turn) => {
        if (turn % every) return [];
        const name = String(this.figure.x[index]), cut = name.length > chars ? `${name.slice(0, chars - 1)}…` : name;
        const escaped = cut.replace(/[&<>"]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[char]);
        const half = (cut.length * 6.6) / 2, at = Math.min(width - half, Math.max(half, x(this.places[index] + 0.5)));
        if (at - half < free) return [];
        free = at + half + 6;
        return [`<text x="${at.toFixed(1)}" y="${height - 3}" text-anchor="middle">${escaped}</text>`];
      });
    }

    // ---- pointer and keys

    placeAt(clientX) {
      if (!this.x) return null;
      const across = (clientX - this.element.getBoundingClientRect().left - LEFT) / (this.width - LEFT - 2);
      return across < 0 || across > 1 ? null : this.view[0] + across * (this.view[1] - this.view[0]);
    }
    indexAt(clientX) {
      const place = this.placeAt(clientX);
      const index = place === null ? -1 : this.places.findIndex((begin) => place >= begin && place < begin + 1);
      return index < 0 ? null : index;
    }

    listen() {
      const { element } = this, inside = (event) => event.clientX - element.getBoundingClientRect().left;
      element.addEventListener("pointermove", (event) => {
        if (this.from !== null) { this.to = Math.min(this.width, Math.max(LEFT, inside(event))); this.draw(); } else this.show(this.indexAt(event.clientX));
      });
      element.addEventListener("pointerleave", () => { if (this.from === null) this.show(null); });
      element.addEventListener("blur", () => this.show(null));
      element.addEventListener("pointerdown", (event) => {
        if (event.button || event.pointerType === "touch" || inside(event) < LEFT) return;
        this.from = this.to = inside(event);
        element.setPointerCapture(event.pointerId);
      });
      element.addEventListener("pointerup", (event) => {
        const from = this.from, to = this.to;
        this.from = null;
        if (from !== null && Math.abs(to - from) > DRAWN_PX) {
          const left = element.getBoundingClientRect().left, [begin, end] = [from, to].sort((one, other) => one - other);
          this.zoom([this.placeAt(left + begin) ?? this.view[0], this.placeAt(left + end) ?? this.view[1]]);
        } else this.pick(this.indexAt(event.clientX));
      });
      element.addEventListener("pointercancel", () => { this.from = null; this.draw(); });
      element.addEventListener("dblclick", () => this.zoom(this.all));
      element.addEventListener("keydown", (event) => this.key(event));
      document.addEventListener("gantry:times", () => this.draw());
    }

    key(event) {
      const inside = this.inView(), now = inside.indexOf(this.at), last = inside.length - 1;
      if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && inside.length) this.show(inside[now < 0 ? (event.key === "ArrowLeft" ? last : 0) : Math.min(last, Math.max(0, now + (event.key === "ArrowLeft" ? -1 : 1)))]);
      else if (event.key === "Home" && inside.length) this.show(inside[0]);
      else if (event.key === "End" && inside.length) this.show(inside[last]);
      else if (event.key === "Enter" && this.at !== null) this.pick(this.at);
      else if (event.key === "+" || event.key === "-") {
        const middle = this.at === null ? (this.view[0] + this.view[1]) / 2 : this.places[this.at] + 0.5, half = ((this.view[1] - this.view[0]) * (event.key === "+" ? 0.5 : 2)) / 2;
        this.zoom([middle - half, middle + half]);
      } else if (event.key === "Escape") { this.show(null); this.zoom(this.all); } else return;
      event.preventDefault();
    }

    zoom([begin, end]) {
      const most = this.all[1] - this.all[0], span = Math.min(most, Math.max(end - begin, Math.min(LEAST_SHOWN, most)));
      const from = Math.min(this.all[1] - span, Math.max(this.all[0], (begin + end - span) / 2));
      this.view = [from, from + span];
      this.draw();
      this.element.dispatchEvent(new CustomEvent("bars:zoom", { bubbles: true }));
    }
    zoomTo(range) { this.zoom(range.map((at) => (at - this.origin) / this.figure.step_ms)); }

    pick(index) { if (index !== null && this.onPick) this.onPick(index); }

    show(index) {
      if (index === this.at) return;
      this.at = index;
      this.draw();
      this.tip.hidden = index === null;
      if (index === null) return;
      const there = this.shown().filter(([series]) => series.values[index] || this.figure.series.length === 1 || !this.figure.is_stacked);
      const rows = there.slice(0, TIP_ROWS).map(([series, colour]) => make("li", {}, make("i", { className: `bar-key bar-${colour % COLOURS}` }), ` ${series.name} `, make("b", { textContent: this.value(series.values[index]) })));
      if (there.length > TIP_ROWS) rows.push(make("li", { textContent: interpolate(ngettext("%s more", "%s more", there.length - TIP_ROWS), [there.length - TIP_ROWS]) }));
      const head = [make("p", { textContent: this.title(index) })];
      if (this.figure.is_stacked && this.figure.series.length > 1) head[0].append(" ", make("b", { textContent: this.value(this.total(index, this.shown(), false) + this.total(index, this.shown(), true)) }));
      this.tip.replaceChildren(...head, make("ul", {}, ...rows));
      const middle = this.x(this.places[index] + 0.5), isRight = middle > this.width / 2;
      this.tip.style.left = `${Math.max(0, Math.min(this.width - this.tip.offsetWidth, isRight ? middle - this.tip.offsetWidth - 14 : middle + 14))}px`;
    }
  }

  window.BarChart = BarChart;
})();
