// Moments on pages: UTC, the reader's own time, or both, as the account chose. Each says its zone. Durations and bytes of scripts, too.
// The server writes them in UTC, in <time> elements (templatetags/times.py) and, in sentences, as "07:49:27 UTC".
"use strict";
(() => {
  const root = document.documentElement, MINUTE_MS = 60e3, DAY_MS = 86400e3;
  const CLOCKS_APART_MS = 60e3;                     // further, and the page says so
  const SHOWN = { day: [true, 0], minute: [true, 5], second: [true, 8], millisecond: [true, 12], "clock-minute": [false, 5], clock: [false, 8], "clock-millisecond": [false, 12] };
  const IN_TEXT = /(?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d(?::\d\d(?:\.\d{3})?)?) UTC(?![+−])/g;
  const ALONE = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC$/;
  const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  const two = (number) => String(number).padStart(2, "0");
  const mode = () => root.dataset.times || "both";

  const offsetAt = (at) => -new Date(at).getTimezoneOffset();           // minutes east of UTC
  function zoneName(minutes) {
    const far = Math.abs(minutes);
    return `UTC${minutes ? `${minutes < 0 ? "−" : "+"}${Math.floor(far / 60)}${far % 60 ? `:${two(far % 60)}` : ""}` : ""}`;
  }
  function partsOf(at, minutes) {
    const [day, clock] = new Date(at + minutes * MINUTE_MS).toISOString().slice(0, 23).split("T");
    return { day, clock, zone: zoneName(minutes) };
  }

  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }
  function pieces({ day, clock, zone }, hasDay, chars) {
    const made = [];
    if (hasDay) made.push(element("span", "t-day", day));
    if (hasDay && chars) made.push(" ");
    if (chars) made.push(element("span", "t-clock", `${clock.slice(0, chars)} `, element("small", "", zone)));
    return made;
  }
  const whole = ({ day, clock, zone }) => `${day} ${clock.slice(0, 8)} ${zone}`;

  function showTime(time) {
    const at = Date.parse(time.dateTime), [hasDay, chars] = SHOWN[time.dataset.show] ?? SHOWN.second;
    if (Number.isNaN(at)) return;
    const utc = partsOf(at, 0), local = partsOf(at, offsetAt(at)), isSame = local.zone === utc.zone, chosen = mode();
    const shown = pieces(chosen === "local" ? local : utc, hasDay, chars);
    if (chosen === "both" && !isSame && (chars || local.day !== utc.day)) {
      const beside = pieces(local, local.day !== utc.day, chars);
      shown.push(" ", element("span", "t-local", ...beside));
    }
    time.replaceChildren(...shown);
    time.dataset.shown = chosen;
    time.title = isSame ? whole(utc) : chosen === "local" ? whole(utc) : `${whole(local)}${ZONE ? `, ${ZONE}` : ""}`;
  }

  // A sentence's moments. One without a day is the newest that is not to come.
  function text(sentence) {
    const chosen = mode();
    if (chosen === "utc" || !sentence.includes(" UTC")) return sentence;
    return sentence.replace(IN_TEXT, (found, day, clock) => {
      const now = Date.now();
      let at = Date.parse(`${day ?? new Date(now).toISOString().slice(0, 10)}T${clock}Z`);
      if (!day && at > now + CLOCKS_APART_MS) at -= DAY_MS;
      const minutes = offsetAt(at), local = partsOf(at, minutes);
      if (Number.isNaN(at) || !minutes) return found;
      const told = `${local.clock.slice(0, clock.length)} ${local.zone}`;
      if (chosen === "both") return `${found} (${day && local.day !== day ? `${local.day} ` : ""}${told})`;
      return day ? `${local.day} ${told}` : told;
    });
  }

  function showAll(within) {
    if (within.matches?.("time[data-show]")) showTime(within);
    for (const time of within.querySelectorAll?.("time[data-show]") ?? []) if (time.dataset.shown !== mode()) showTime(time);
    for (const told of within.querySelectorAll?.("[data-live]") ?? []) {
      const said = told.dataset.utc ?? told.textContent;
      if (said.includes(" UTC")) put(told, said);
    }
  }

  // What the server tells as text, into an element: a moment as one, a sentence with its moments.
  function put(place, said) {
    if (!said.includes(" UTC")) { delete place.dataset.utc; place.textContent = said; return; }
    place.dataset.utc = said;
    const alone = ALONE.exec(said);
    if (!alone) { place.textContent = text(said); return; }
    const time = element("time");
    time.dateTime = `${alone[1]}T${alone[2]}Z`;
    time.dataset.show = "second";
    showTime(time);
    place.replaceChildren(time);
  }
  const isShown = (place, said) => (place.dataset.utc ?? place.firstChild?.nodeValue) === said;

  // For charts: an axis has room for both, one below the other; what is under the pointer is told as in sentences.
  const axis = (at, from, to) => {
    const chosen = mode(), minutes = offsetAt(at * 1000);
    const one = (east) => { const { day, clock } = partsOf(at * 1000, east); return `${day} ${clock}`.slice(from, to); };
    if (chosen === "utc" || !minutes) return [one(0)];
    return chosen === "local" ? [one(minutes)] : [one(0), one(minutes)];
  };
  const axisZones = (at) => {
    const chosen = mode(), minutes = offsetAt(at * 1000);
    if (chosen === "utc" || !minutes) return ["UTC"];
    return chosen === "local" ? [zoneName(minutes)] : ["UTC", zoneName(minutes)];
  };

  function showClocks() {
    const served = Number(root.dataset.now) * 1000, loaded = performance.getEntriesByType("navigation")[0];
    const bar = document.getElementById("clock-bar");
    if (!served || !loaded?.responseStart || !bar) return;
    const asked = performance.timeOrigin + loaded.requestStart, answered = performance.timeOrigin + loaded.responseStart;
    const ahead = served < asked ? asked - served : served > answered ? answered - served : 0;   // ours before the server's
    if (Math.abs(ahead) <= CLOCKS_APART_MS) return;
    const minutes = Math.round(Math.abs(ahead) / MINUTE_MS);
    const far = minutes < 120 ? `${minutes} min` : minutes < 2880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
    const told = ahead > 0
      ? gettext("This browser's clock is %s ahead of the dashboard's, which showed %s. One of the two is wrong; “1 h ago” uses the dashboard's clock.")
      : gettext("This browser's clock is %s behind the dashboard's, which showed %s. One of the two is wrong; “1 h ago” uses the dashboard's clock.");
    bar.textContent = text(interpolate(told, [far, whole(partsOf(served, 0))]));
    bar.hidden = false;
  }

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-times-form]");
    if (!form) return;
    event.preventDefault();
    const chosen = event.submitter.value;
    root.dataset.times = chosen;
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === chosen));
    showAll(document);
    document.dispatchEvent(new CustomEvent("gantry:times"));
    fetch(form.action, { method: "POST", body: new FormData(form, event.submitter), credentials: "same-origin", redirect: "manual" });
  });

  const both = (at) => { const utc = partsOf(at, 0), local = partsOf(at, offsetAt(at)); return `${whole(utc)}, ${local.day === utc.day ? whole(local).slice(11) : whole(local)}`; };
  // How long, as dashboard/cluster/units.py says it; with a unit of its own also "2.5 h".
  const lasting = (count, unit) => interpolate({ s: gettext("%(count)s s"), min: gettext("%(count)s min"), h: gettext("%(count)s h"), d: gettext("%(count)s d") }[unit], { count }, true);
  // The same on axes and bars, in one unit.
  const duration = (seconds) => {
    const [each, unit] = seconds < 60 ? [1, "s"] : seconds < 3600 ? [60, "min"] : seconds < 4 * 86400 ? [3600, "h"] : [86400, "d"];
    const digits = (each === 1 && seconds >= 10) || seconds >= 1e7 ? 0 : 1;
    return lasting(+(seconds / each).toFixed(digits), unit).replaceAll(" ", "\u202f");
  };
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  // Bytes, as gantrymq/byte_size.py says them; each: what follows the unit, "/s" for a rate.
  window.gantrySize = (value, each = "") => {
    if (!Number.isFinite(value)) return "—";
    let power = 0;
    while (Math.abs(value) >= 1023.5 && power < UNITS.length - 1) { value /= 1024; power += 1; }
    return `${value.toFixed(!power || Math.abs(value) >= 99.95 ? 0 : 1)}\u202f${UNITS[power]}${each}`;
  };
  window.gantryTimes = { axis, axisZones, both, duration, isShown, lasting, mode, offsetAt, put, showAll, text, zone: ZONE, zoneName };
  showAll(document);
  showClocks();
  new MutationObserver((changes) => {
    for (const change of changes) for (const added of change.addedNodes) if (added.nodeType === Node.ELEMENT_NODE && added.dataset.shown === undefined) showAll(added);
  }).observe(document.body, { childList: true, subtree: true });
})();
