// Charts of the history: lines over a range, gaps where nothing is known, marks for restarts and changes.
"use strict";
(() => {
  const LEFT = 54, LINE = 15, TOP = 8;
  // From so many milliseconds on a step is a whole minute, hour or day.
  const OF_TIME = [[50 * 3600e3, 86400e3], [50 * 60e3, 3600e3], [50e3, 60e3]];
  const thin = (number) => number.toLocaleString("en").replaceAll(",", "\u202f");
  const niceMax = (value, unit) => {
    let scale = 1;
    value = Math.max(value, isBytes(unit) ? 1024 : 1);  // half a byte has no label of its own
    if (isBytes(unit)) while (value / scale >= 1024) scale *= 1024;
    if (unit === "ms") scale = OF_TIME.find(([from]) => value > from)?.[1] ?? 1;
    const power = scale * 10 ** Math.floor(Math.log10(value / scale));
    return [1, 2, 4, 5, 10].find((step) => step * power >= value) * power;
  };
  const isBytes = (unit) => unit === "B" || unit === "B/s";
  const short = (value, unit) => {
    if (!Number.isFinite(value)) return "—";
    if (isBytes(unit)) return window.gantrySize(value, unit.slice(1));
    if (unit === "ms" && value >= 1000) return window.gantryTimes.duration(value / 1000);
    if (unit === "ms") return `${+value.toFixed(value < 10 ? 1 : 0)}\u202fms`;
    if (value >= 1e6) return `${+(value / 1e6).toFixed(1)}M`;
    if (value >= 10000) return `${+(value / 1e3).toFixed(0)}k`;
    return value >= 10 ? thin(Math.round(value)) : `${+value.toFixed(1)}`;
  };
  // A percentile is the most that it took: 200 s, not 3.3 min, as dashboard/latency/figures.py says it.
  const exact = (value, unit) => (unit === "ms" && value >= 60000 ? window.gantryTimes.lasting(thin(Math.floor(value / 1000)), "s").replaceAll(" ", "\u202f") : short(value, unit));
  const escaped = (text) => text.replace(/[&<>"]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[char]);
  const stamp = (at) => window.gantryTimes.text(`${new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`);
  const labels = (at, span) => window.gantryTimes.axis(at, span > 172800 ? 5 : 11, span > 172800 ? 10 : 16);

  const charts = new Set();

  class HistoryChart {
    constructor(element) {
      this.element = element;
      Object.assign(this, JSON.parse(element.querySelector("[data-history-points]").textContent));
      this.points = this.points.map((values, index) => [this.begin + index * this.step, ...values]);
      this.svg = element.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
      this.tip = element.appendChild(document.createElement("div"));
      this.tip.className = "chart-tip"; this.tip.hidden = true;
      this.at = null;
      element.addEventListener("pointermove", (event) => this.point(event.clientX));
      element.addEventListener("pointerleave", () => this.show(null));
      element.addEventListener("blur", () => this.show(null));
      element.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const last = this.points.length - 1;
        this.show(Math.min(last, Math.max(0, (this.at ?? last) + step)));
      });
      charts.add(this);
      new ResizeObserver(() => this.draw()).observe(element);
    }

    draw() {
      const { clientWidth: width, clientHeight: height } = this.element;
      if (!width || !this.points.length) return;
      const zones = window.gantryTimes.axisZones(this.points.at(-1)[0]), bottom = 5 + zones.length * LINE;
      const begin = this.points[0][0], end = this.points.at(-1)[0] + this.step, span = end - begin;
      const most = niceMax(Math.max(0, ...this.points.flatMap((point) => point.slice(1).map((value) => value ?? 0))), this.unit);
      const x = (at) => LEFT + ((at - begin) / span) * (width - LEFT - 2);
      const y = (value) => TOP + (1 - value / most) * (height - TOP - bottom);
      Object.assign(this, { x, width, begin, span });
      const parts = [];
      for (const share of [0, 0.5, 1]) {
        const at = y(most * share).toFixed(1);
        parts.push(`<line class="grid" x1="${LEFT}" x2="${width}" y1="${at}" y2="${at}"/><text x="${LEFT - 8}" y="${+at + 4}" text-anchor="end">${short(most * share, this.unit)}</text>`);
      }
      const ticks = Math.max(2, Math.min(6, Math.floor(width / 130)));
      for (let tick = 0; tick <= ticks; tick += 1) {
        const anchor = tick === 0 ? "start" : tick === ticks ? "end" : "middle", at = begin + (span * tick) / ticks;
        labels(at, span).forEach((text, row) => {
          parts.push(`<text x="${x(at).toFixed(1)}" y="${height - 3 - (zones.length - 1 - row) * LINE}" text-anchor="${anchor}">${text}</text>`);
        });
      }
      zones.forEach((zone, row) => {
        parts.push(`<text class="zone" x="0" y="${height - 3 - (zones.length - 1 - row) * LINE}">${zone}</text>`);
      });
      for (const [at, text] of this.marks) {
        if (at < begin || at > end) continue;
        parts.push(`<line class="mark" x1="${x(at).toFixed(1)}" x2="${x(at).toFixed(1)}" y1="${TOP}" y2="${height - bottom}"><title>${escaped(`${stamp(at)} ${text}`)}</title></line>`);
      }
      this.lines.forEach(([, style], index) => {
        parts.push(`<path class="line line-${escaped(style)}" d="${this.path(index + 1, x, y)}"/>`);
      });
      if (this.at !== null) {
        const at = x(this.points[this.at][0]).toFixed(1);
        parts.push(`<line class="cursor" x1="${at}" x2="${at}" y1="${TOP}" y2="${height - bottom}"/>`);
      }
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.innerHTML = parts.join("");          // numbers, and texts that are escaped
    }

    path(column, x, y) {                            // what is not known is a gap, never zero
      let path = "", run = 0;
      for (const point of this.points) {
        if (point[column] === null) { run = 0; continue; }
        path += `${run ? "L" : "M"}${x(point[0]).toFixed(1)},${y(point[column]).toFixed(1)}`;
        if (!run) path += "h1";                     // a value alone is a dot
        run += 1;
      }
      return path;
    }

    point(clientX) {
      if (!this.x) return;
      const share = (clientX - this.element.getBoundingClientRect().left - LEFT) / (this.width - LEFT - 2);
      const index = Math.floor((share * this.span) / this.step);
      this.show(index >= 0 && index < this.points.length ? index : null);
    }

    show(index) {
      this.at = index;
      this.draw();
      this.tip.hidden = index === null;
      if (index === null) return;
      const point = this.points[index];
      const marks = this.marks.filter(([at]) => at >= point[0] && at < point[0] + this.step).map(([, text]) => text);
      this.tip.textContent = [stamp(point[0]), ...this.lines.map(([name], line) => `${name} ${exact(point[line + 1], this.unit)}`), ...marks.slice(0, 2)].join("  ");
      this.tip.style.left = `${Math.min(Math.max(0, this.x(point[0]) + 10), this.width - this.tip.offsetWidth)}px`;
    }
  }

  window.drawHistory = (root) => {
    for (const element of root.querySelectorAll("[data-history]")) if (!element.querySelector("svg")) new HistoryChart(element).draw();
  };
  window.drawHistory(document);
  document.addEventListener("gantry:times", () => { for (const chart of charts) if (chart.element.isConnected) chart.draw(); else charts.delete(chart); });
})();
