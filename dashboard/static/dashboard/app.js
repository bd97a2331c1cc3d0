// GantryMQ's one script: live values, the chart, arriving messages, copying, the theme, a few keys.
// Everything works without it too, only not by itself. No dependency but htmx, which swaps fragments.
"use strict";
(() => {
  const FRESH_S = 3;          // as on the server (live/board.py)
  const SILENT_MS = 4000;     // a socket brings something each second: without news for so long, nothing is known
  const CONNECT_MS = 10000;
  const LIVE = "[data-channel]:not(nav), [data-refresh]";   // the menu's counts alone make no live page
  const UNKNOWN = "—";
  const AT_LEAST = "≥";       // before a sum that lacks a part
  const HISTORY_S = 900;
  const $ = (selector, root = document) => root.querySelector(selector);
  const times = window.gantryTimes;
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- figures: each knows its age -------------------------------------------------------------------------------

  let clockOffset = 0;        // server clock minus ours, seconds; from the newest frame
  const serverNow = () => Date.now() / 1000 + clockOffset;

  const said = (text, values) => interpolate(text, values, true);   // both of Django's catalog, as gettext

  const ageText = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    const time = whole < 60 ? times.lasting(whole, "s") : whole < 3600 ? times.lasting(Math.floor(whole / 60), "min") : times.lasting(Math.floor(whole / 3600), "h");
    return said(gettext("%(time)s ago"), { time });
  };

  function showFigure(element, [text, at, why]) {
    if (!times.isShown(element, text)) times.put(element, text);
    element.dataset.at = at ?? "";
    element.dataset.why = why ?? "";
    showAge(element);
  }

  function showAge(element) {
    const at = parseFloat(element.dataset.at);
    const isUnknown = Number.isNaN(at);
    const age = isUnknown ? 0 : serverNow() - at;
    const isStale = !isUnknown && age > FRESH_S + (element.closest("[data-refresh-s]") && (!live.isOpen || element.closest("[data-channel^='part:']")) ? 4 : 0);
    element.classList.toggle("is-unknown", isUnknown);
    element.classList.toggle("is-stale", isStale);
    element.classList.toggle("is-live", !isUnknown && !isStale);
    const why = element.dataset.why ?? element.title;
    const lacks = element.firstChild?.nodeValue?.startsWith(AT_LEAST) ? why : "";
    const title = isUnknown ? why || gettext("not known yet") : isStale ? `${ageText(age)}${why ? `: ${why}` : ""}` : lacks;
    if (title) element.title = title; else element.removeAttribute("title");
    if (element.closest(".tile-value")) {
      let note = $(".age", element);
      if (isStale || lacks) {
        if (!note) { note = document.createElement("span"); note.className = "age"; element.append(note); }
        note.textContent = isStale ? ageText(age) : lacks;
      } else note?.remove();
    }
  }

  function showFigures(root, figures, bars) {
    for (const element of $$("[data-live]", root)) {
      const figure = figures[element.dataset.live];
      if (figure) showFigure(element, figure);
    }
    for (const bar of $$("[data-bar]", root)) {
      if (bar.dataset.bar in bars) showBar(bar, bars[bar.dataset.bar]);
    }
  }

  function showBar(bar, ratio) {
    const marks = bar.dataset.marks ? bar.dataset.marks.split(",").map(Number) : [];
    const passed = ratio === null ? 0 : marks.filter((mark) => ratio > mark).length;
    const level = ratio === null ? "unknown" : !marks.length ? "plain" : ["ok", "warn", "bad"][Math.min(passed, 2)];
    bar.setAttribute("class", `bar bar-${level}`);
    $(".bar-fill", bar).setAttribute("width", `${(Math.min(Math.max(ratio ?? 0, 0), 1) * 100).toFixed(2)}%`);
    const label = bar.getAttribute("aria-label").split(":")[0];
    bar.setAttribute("aria-label", `${label}: ${ratio === null ? UNKNOWN : `${(ratio * 100).toFixed(1)} %`}`);
  }

  // ---- the socket ------------------------------------------------------------------------------------------------

  const live = { socket: null, isOpen: false, tries: 0, timer: 0, hadOne: false, lastFrameAt: 0, newsAt: Date.now(), asked: new Set(), refused: new Map(), tooMany: false };

  const channels = () => [...new Set($$("[data-channel]").map((element) => element.dataset.channel))];

  function connect() {
    clearTimeout(live.timer);
    if (!channels().length || live.socket) return;
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`);
    live.socket = socket;
    setTimeout(() => { if (socket.readyState === WebSocket.CONNECTING) socket.close(); }, CONNECT_MS);
    socket.onopen = () => {
      live.isOpen = true; live.hadOne = true; live.tries = 0; live.lastFrameAt = Date.now(); live.tooMany = false;
      live.asked = new Set(); live.refused = new Map();
      subscribe();
      showConnection();
    };
    socket.onmessage = (event) => {
      live.lastFrameAt = live.newsAt = Date.now();
      if (document.hidden && !event.data.includes('"channel":"waiting"')) return;   // it asks again when it is seen
      const message = JSON.parse(event.data);
      if (message.error && live.asked.has(message.channel)) { live.refused.set(message.channel, message.error); showConnection(); }
      for (const frame of message.frames ?? []) if (frame.counts) showWaiting(frame.counts); else if (!document.hidden) takeFrame(frame);
    };
    socket.onclose = (event) => {
      live.socket = null; live.isOpen = false; live.tries += 1; live.tooMany = event.code === 4503;
      showConnection();
      if (event.code === 4401) { location.reload(); return; }   // logged out: the server says where to go
      const wait = Math.min(15000, 500 * 2 ** Math.min(live.tooMany ? 5 : live.tries, 5)) * (0.7 + Math.random() * 0.6);
      live.timer = setTimeout(connect, wait);
    };
  }

  // The counts of the menu, and of the tab's title: of a hidden page, too.
  function showWaiting(counts) {
    for (const badge of $$("[data-waiting]")) {
      const text = counts[badge.dataset.waiting] ?? "";
      if (badge.textContent !== text) badge.textContent = text;
      badge.hidden = !text;
    }
    const title = document.title.replace(/^\([^)]*\) /, "");
    document.title = counts.alerts ? `(${counts.alerts}) ${title}` : title;
  }

  // What the page shows may change: a filter, a sorting. Typing asks for many lists, of which the last one counts.
  let subscribing = 0;
  function subscribeSoon() {
    if (live.isOpen) { clearTimeout(subscribing); subscribing = setTimeout(subscribe, 400); } else connect();
  }

  function subscribe() {
    if (!live.isOpen) return;
    const wanted = channels();
    const gone = [...live.asked].filter((channel) => !wanted.includes(channel)), fresh = wanted.filter((channel) => !live.asked.has(channel));
    for (const channel of gone) live.refused.delete(channel);
    live.asked = new Set(wanted);
    if (gone.length || fresh.length) live.socket.send(JSON.stringify({ unsubscribe: gone, subscribe: fresh }));
  }

  const isRefused = (element) => live.refused.has(element.dataset.channel ?? element.closest("[data-channel]")?.dataset.channel);

  function showConnection() {
    const bar = $("#connection-bar");
    const isLost = !live.isOpen && live.tries > 0;
    const [refusal] = live.refused.values();
    bar.hidden = !$(LIVE) || (!isLost && !refusal);
    if (live.tooMany) bar.textContent = gettext("This account has too many tabs open, so this one is not live. Values are polled every few seconds.");
    else if (isLost) bar.textContent = live.hadOne ? gettext("Connection lost. Reconnecting …") : gettext("No live connection. Values are polled every few seconds.");
    else if (refusal) bar.textContent = interpolate(gettext("Not live: %(reason)s. Values are polled every few seconds."), { reason: refusal }, true);
    const silentS = silence();
    for (const pulse of $$("[data-pulse]")) {
      pulse.classList.toggle("is-live", live.isOpen && !silentS);
      pulse.lastElementChild.textContent =
        silentS ? said(gettext("no news for %(seconds)s s"), { seconds: silentS }) : live.isOpen ? gettext("live") : isLost ? gettext("not live") : gettext("connecting");
    }
  }

  // Whole seconds without news, 0 while news comes: a network that is gone closes no socket.
  function silence() {
    const element = $("[data-refresh]");
    const asked = element && !live.isOpen ? parseFloat(element.dataset.refreshS) * 1000 : 0;
    const silentMs = Date.now() - live.newsAt;
    return silentMs > SILENT_MS + asked ? Math.round(silentMs / 1000) : 0;
  }

  function showSilence() {
    if (!$(LIVE)) return;
    showConnection();
    const silentS = silence();
    for (const sentence of $$("[data-sentence]")) {
      const header = sentence.closest("header");
      if (!silentS) { delete sentence.dataset.before; continue; }
      sentence.dataset.before ??= sentence.textContent;
      sentence.setAttribute("aria-live", "off");
      sentence.textContent = said(gettext("No news for %(seconds)s s. Before: %(sentence)s"), { seconds: silentS, sentence: sentence.dataset.before });
      header.className = "verdict verdict-unknown";
    }
  }

  function takeFrame(frame) {
    clockOffset = frame.now - Date.now() / 1000;
    for (const root of $$("[data-channel]")) {
      if (root.dataset.channel !== frame.channel) continue;
      const shaped = root.matches("[data-shape]") ? root : $("[data-shape]", root);
      if (frame.channel.startsWith("part:")) { if (frame.html) patch(root, new DOMParser().parseFromString(frame.html, "text/html")); continue; }
      if (frame.sentence && $("[data-sentence]", root)) showVerdict(root, frame);   // at once, also when the rest of the page has to be asked for
      if (frame.channel === "overview" && shaped && shaped.dataset.shape !== frame.shape) { refresh(root); continue; }
      showFigures(root, frame.figures, frame.bars);
      if (frame.points) chart?.add(frame.points, frame.all);
      if (frame.rows || frame.more) showRows(frame);
    }
  }

  function showVerdict(root, frame) {
    const sentence = $("[data-sentence]", root);
    const wasLevel = sentence.dataset.level;
    if (sentence.textContent !== frame.sentence || (sentence.firstElementChild?.getAttribute("href") ?? "") !== frame.link) {
      // Screen readers hear changes of state, not of a number each second.
      sentence.setAttribute("aria-live", wasLevel !== undefined && wasLevel !== String(frame.level) ? "polite" : "off");
      const link = frame.link ? Object.assign(document.createElement("a"), { href: frame.link }) : sentence;
      link.textContent = frame.sentence;
      if (link !== sentence) sentence.replaceChildren(link);
    }
    sentence.dataset.level = frame.level;
    const why = $("[data-why]", root);
    why.hidden = !frame.link;
    if (frame.link) why.href = frame.link;
    $("[data-level]", root).className = `verdict verdict-${frame.word}`;
  }

  // ---- asking again without a socket: only values change, unless rows came or went -----------------------------------

  async function refresh(element) {
    if (element.dataset.busy) return;
    element.dataset.busy = "1";
    try {
      const headers = { "HX-Request": "true" };
      if (element.dataset.refreshTarget) headers["HX-Target"] = element.dataset.refreshTarget;
      const answer = await fetch(element.dataset.refresh, { headers, credentials: "same-origin" });
      if (answer.headers.has("HX-Redirect")) { location.href = answer.headers.get("HX-Redirect"); return; }
      if (!answer.ok) return;
      live.newsAt = Date.now();
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      patch(element, fresh);
    } catch { /* the network is away: values grow old and say so */ } finally { delete element.dataset.busy; }
  }

  function patch(element, fresh) {
    times.showAll(fresh);       // as this page shows moments: what is the same then stays
    const nowShaped = element.matches("[data-shape]") ? element : $("[data-shape]", element);
    const newShaped = $("[data-shape]", fresh);
    if (!newShaped) return;
    if (nowShaped?.dataset.shape !== newShaped.dataset.shape && !("refreshValues" in element.dataset)) {
      nowShaped.replaceWith(newShaped);
      window.htmx?.process(newShaped);
      start(newShaped);
      return;
    }
    const values = new Map($$("[data-live]", newShaped).map((item) => [item.dataset.live, item]));
    for (const item of $$("[data-live]", nowShaped)) {
      const value = values.get(item.dataset.live);
      if (value) showFigure(item, [value.dataset.utc ?? value.textContent, value.dataset.at || null, value.title || null]);
    }
    patchCells(nowShaped, newShaped);
    const bars = new Map($$("[data-bar]", newShaped).map((item) => [item.dataset.bar, item]));
    for (const bar of $$("[data-bar]", nowShaped)) bars.get(bar.dataset.bar) && bar.replaceWith(bars.get(bar.dataset.bar));
    const [sentence, mark] = [$("[data-sentence]", newShaped), $("[data-level]", newShaped)];
    if (sentence && $("[data-sentence]", nowShaped)) {
      $("[data-sentence]", nowShaped).replaceChildren(...sentence.childNodes);
      $("[data-level]", nowShaped).className = mark.className;
    }
    const points = $("[data-chart-points]", newShaped);
    if (points) chart?.add(JSON.parse(points.textContent), true);
    const rows = $("[data-rows]", newShaped);
    if (rows && $("[data-live-rows]")) showRows({ rows: $$("tr.row", rows).map((row) => row.outerHTML), all: true });
  }

  // Cells hold more than a figure. Nothing else moves: what is open stays open, and the one that has the focus waits.
  function patchCells(now, fresh) {
    const cells = new Map($$("[data-cell]", fresh).map((cell) => [cell.dataset.cell, cell]));
    for (const cell of $$("[data-cell]", now)) {
      const other = cells.get(cell.dataset.cell);
      if (!other || cell.isEqualNode(other) || cell.contains(document.activeElement)) continue;
      cell.className = other.className;
      if (cell.innerHTML !== other.innerHTML) cell.replaceChildren(...other.childNodes);
    }
  }

  setInterval(() => {
    for (const element of $$("[data-live]")) showAge(element);
    showSilence();
    if (live.isOpen && Date.now() - live.lastFrameAt > 12000) live.socket.close();   // half-open: start over
    if (document.hidden) return;
    for (const element of $$("[data-refresh]")) {
      if (element.dataset.refreshWhen === "offline" && (live.isOpen || live.tries === 0) && !isRefused(element)) continue;
      const due = parseFloat(element.dataset.refreshS) * 1000;
      if (Date.now() - (element.refreshedAt ?? pageShownAt) >= due) { element.refreshedAt = Date.now(); refresh(element); }
    }
  }, 1000);
  const pageShownAt = Date.now();

  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !live.socket) return;
    // What was missed comes as a whole: leave and join again.
    if (live.isOpen) { live.socket.send(JSON.stringify({ unsubscribe: [...live.asked] })); live.asked = new Set(); subscribe(); }
  });

  // ---- messages that arrive --------------------------------------------------------------------------------------

  function showRows(frame) {
    const list = $("[data-live-rows]");
    if (!list) return;
    const body = $("[data-rows]", list);
    const known = new Set($$("tr.row", body).map((row) => row.dataset.place));
    const holder = document.createElement("template");
    holder.innerHTML = (frame.rows ?? []).join("");   // rows are made and escaped by the server's template
    const only = list.dataset.onlyQueue;
    const fresh = [...holder.content.children].filter((row) => !known.has(row.dataset.place) && (!only || row.dataset.queue === only));
    const note = $("[data-arrived]", list);
    const isOpened = $(".opened", body) !== null, isPaused = "paused" in list.dataset;
    if (fresh.length && (isOpened || isPaused)) {    // who reads a message keeps it: the others wait
      const most = frame.all ? Math.max(list.held ?? 0, isPaused ? fresh.length : 0) : (list.held ?? 0) + fresh.length + (frame.more ?? 0);
      list.held = most;
      note.hidden = !list.held;
      if (list.held) showHeldNote(note, `${said(isOpened ? gettext("%(count)s new, held while a message is open.") : gettext("%(count)s new, held while paused."), { count: short(list.held) })} `, isOpened ? gettext("Close and show") : gettext("Show"));
      return;
    }
    list.held = 0;
    if (fresh.length) {
      if (body.childElementCount) for (const row of fresh) row.classList.add("is-new");
      body.prepend(...fresh);
      $("[data-table]", list).classList.remove("is-empty");
      const rows = $$("tr.row", body);
      for (const row of rows.slice(Number(list.dataset.rowsMax))) {
        if (row.nextElementSibling?.matches(".opened")) row.nextElementSibling.remove();
        row.remove();
      }
    }
    list.skipped = frame.all ? 0 : (list.skipped ?? 0) + (frame.more ?? 0);
    note.hidden = !list.skipped;
    if (list.skipped) note.textContent = said(gettext("Too many to show each: %(count)s more arrived between these."), { count: list.skipped.toLocaleString("en").replaceAll(",", "\u202f") });
  }

  // The button stays while the number grows: it may be just under a finger, or have the focus.
  function showHeldNote(note, text, label) {
    let button = $("[data-show-held]", note);
    if (!button) {
      button = Object.assign(document.createElement("button"), { type: "button", className: "ghost small" });
      button.dataset.showHeld = "";
      note.replaceChildren("", button);
    }
    note.firstChild.nodeValue = text;
    if (button.textContent !== label) button.textContent = label;
  }

  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr.row");
    const opener = event.target.closest("[data-open]") ?? (row && !event.target.closest("a, button") && !String(getSelection()) ? $("[data-open]", row) : null);
    if (!opener || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    toggleMessage(opener);
  });

  // What was held comes as a whole: leave and join again, or ask again where no socket is.
  function showHeld(list) {
    if (!list?.held) return;
    list.held = 0;
    $("[data-arrived]", list).hidden = true;
    if (live.isOpen) { live.socket.send(JSON.stringify({ unsubscribe: [...live.asked] })); live.asked = new Set(); subscribe(); }
    else { const element = list.closest("[data-refresh]"); if (element) refresh(element); }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-show-held]");
    if (!button) return;
    const list = button.closest("[data-live-rows]");
    setPaused(list, false);
    for (const opened of $$(".opened", list)) {
      const opener = $("[data-open]", opened.previousElementSibling);
      if (opener) toggleMessage(opener); else opened.remove();
    }
    showHeld(list);
  });

  function setPaused(list, isPaused) {
    list.toggleAttribute("data-paused", isPaused);
    const button = $("[data-pause]", list), address = new URL(location.href);
    button?.setAttribute("aria-pressed", String(isPaused));
    if (isPaused) address.searchParams.set("tail", "off"); else address.searchParams.delete("tail");
    history.replaceState(history.state, "", address);
  }

  document.addEventListener("click", (event) => {
    const list = event.target.closest("[data-pause]")?.closest("[data-live-rows]");
    if (!list) return;
    setPaused(list, !("paused" in list.dataset));
    if (!("paused" in list.dataset) && !$(".opened", list)) showHeld(list);
  });

  // ---- a search goes on by itself, step by step, until it is stopped, done, or has enough -----------------------------

  const SCAN_MESSAGES = 200000, SCAN_ROWS = 200;

  function showScan(scan, state) {
    const text = $("[data-scan-text]", scan), toggle = $("[data-scan-toggle]", scan);
    const thin = (number) => number.toLocaleString("en").replaceAll(",", "\u202f");
    const end = state.older ? state.isRunning ? "" : state.trouble ? ` · ${state.trouble}` : ` · ${gettext("stopped")}` : ` · ${gettext("all scanned")}`;
    // Read out at the end, not at each step.
    text.setAttribute("aria-live", state.isRunning ? "off" : "polite");
    const back = { count: thin(state.scanned), moment: state.reached ? times.text(state.reached) : "" };
    const looked = said(state.reached ? gettext("%(count)s messages scanned, back to %(moment)s") : gettext("%(count)s messages scanned"), back);
    text.textContent = `${looked} · ${said(gettext("%(count)s found"), { count: thin(state.matched) })} · ${(state.tookMs / 1000).toFixed(1)} s${end}`;
    if (toggle) {
      toggle.hidden = !state.older;
      toggle.textContent = state.isRunning ? gettext("Stop") : gettext("Look further back");
    }
    const empty = $("[data-scan-empty]", scan.parentElement);
    if (empty) empty.hidden = Boolean(state.older);
  }

  async function runScan(scan) {
    const state = scan.state, list = scan.parentElement, body = $("[data-rows]", list);
    const limits = { scanned: state.scanned + SCAN_MESSAGES, matched: state.matched + SCAN_ROWS };
    state.isRunning = true; state.trouble = ""; state.stop = new AbortController();
    const before = performance.now() - state.tookMs;
    showScan(scan, state);
    while (state.isRunning && state.older && scan.isConnected && state.scanned < limits.scanned && state.matched < limits.matched) {
      const address = new URL(scan.dataset.scan, location.href);
      address.search = location.search;
      address.searchParams.set("older", state.older);
      try {
        const answer = await fetch(address, { headers: { "HX-Request": "true" }, credentials: "same-origin", signal: state.stop.signal });
        if (answer.headers.has("HX-Redirect")) { location.href = answer.headers.get("HX-Redirect"); return; }
        const step = await answer.json();
        if (!answer.ok) { state.trouble = step.detail ?? gettext("not possible"); break; }
        const holder = document.createElement("template");
        holder.innerHTML = step.rows.join("");      // rows are made and escaped by the server's template
        const known = new Set($$("tr.row", body).map((row) => row.dataset.place));
        const fresh = [...holder.content.children].filter((row) => !known.has(row.dataset.place));
        body.append(...fresh);
        if (fresh.length) $("[data-table]", list).classList.remove("is-empty");
        state.scanned += step.scanned; state.matched += fresh.length;
        state.reached = step.reached || state.reached; state.older = step.older; state.tookMs = performance.now() - before;
        if (step.troubles.length) { state.trouble = step.troubles[0]; break; }
      } catch (error) {
        if (error.name !== "AbortError") state.trouble = gettext("the connection was lost");
        break;
      }
      if (state.isRunning) showScan(scan, state);
    }
    state.isRunning = false;
    showScan(scan, state);
  }

  document.addEventListener("click", (event) => {
    const scan = event.target.closest("[data-scan-toggle]")?.closest("[data-scan]");
    if (!scan?.state || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    if (scan.state.isRunning) { scan.state.isRunning = false; scan.state.stop.abort(); } else runScan(scan);
  });

  function startScan(scan) {
    const { older, scanned, matched, took } = scan.dataset;
    const reachedAt = $("[data-scan-text] time", scan)?.dateTime ?? "", reached = reachedAt && `${reachedAt.slice(0, 19).replace("T", " ")} UTC`;
    scan.state = { older: older || null, scanned: Number(scanned), matched: Number(matched), tookMs: Number(took), reached, isRunning: false };
    if (older && !("stopped" in scan.dataset)) runScan(scan);
  }

  // The tab and the form of the body that an opened row shows stand in the address, too.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("tr.opened [data-view]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const address = new URL(location.href);
    for (const name of ["tab", "as"]) address.searchParams.delete(name);
    address.searchParams.set("open", link.closest("tr").dataset.of);
    for (const [name, value] of new URL(link.href).searchParams) address.searchParams.set(name, value);
    history.replaceState(history.state, "", address);
  });

  function messageRow(html) {
    const row = Object.assign(document.createElement("tr"), { className: "opened", innerHTML: '<td colspan="7"></td>' });
    row.firstElementChild.innerHTML = html;
    return row;
  }

  async function fetchMessage(address) {
    try {
      const answer = await fetch(address, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
      const text = await answer.text();
      if (!answer.ok) return messageRow(text);
      const holder = document.createElement("template");
      holder.innerHTML = text;
      return holder.content.firstElementChild;
    } catch { return messageRow(gettext("the connection was lost")); }
  }

  async function toggleMessage(opener) {
    const row = opener.closest("tr");
    const next = row.nextElementSibling;
    const address = new URL(location.href);
    if (next?.matches(".opened")) {
      next.remove();
      opener.setAttribute("aria-expanded", "false");
      for (const name of ["open", "tab", "as"]) address.searchParams.delete(name);
      const list = row.closest("[data-live-rows]");
      if (list && !$(".opened", list)) showHeld(list);
    } else {
      const waiting = messageRow("…");               // at once: arriving messages wait for a row that is open
      waiting.firstElementChild.setAttribute("aria-busy", "true");
      row.after(waiting);
      opener.setAttribute("aria-expanded", "true");
      const opened = await fetchMessage(opener.href);
      if (!waiting.isConnected) return;              // closed again
      waiting.replaceWith(opened);
      window.htmx?.process(opened);
      address.searchParams.set("open", opener.dataset.open);
    }
    history.replaceState(history.state, "", address);
  }

  // ---- the chart: two lines over fifteen minutes, drawn as SVG ------------------------------------------------------

  let chart = null;

  class Chart {
    constructor(element) {
      this.element = element;
      this.points = JSON.parse($("[data-chart-points]", element)?.textContent || "[]");
      this.svg = element.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
      this.tip = element.appendChild(document.createElement("div"));
      this.tip.className = "chart-tip"; this.tip.hidden = true;
      this.cursorAt = null;
      element.addEventListener("pointermove", (event) => this.point(event.clientX));
      element.addEventListener("pointerleave", () => this.point(null));
      element.addEventListener("keydown", (event) => this.key(event));
      element.addEventListener("blur", () => this.point(null));
      new ResizeObserver(() => this.draw()).observe(element);
    }

    add(points, isAll) {
      if (isAll) this.points = points;
      else {
        const last = this.points.at(-1)?.[0] ?? 0;
        this.points.push(...points.filter((point) => point[0] > last));
      }
      if (this.points.length > HISTORY_S) this.points.splice(0, this.points.length - HISTORY_S);
      this.draw();
    }

    draw() {
      const { clientWidth: width, clientHeight: height } = this.element;
      if (!width) return;
      const left = 44, bottom = 20, top = 8;
      const end = Math.max(this.points.at(-1)?.[0] ?? 0, serverNow() - 2);
      // A young chart shows what there is, two minutes at least; it widens to fifteen.
      const span = Math.min(HISTORY_S, Math.max(120, end - (this.points[0]?.[0] ?? end)));
      const begin = end - span;
      const most = niceMax(Math.max(1, ...this.points.map((point) => Math.max(point[1] ?? 0, point[2] ?? 0))));
      const x = (at) => left + ((at - begin) / span) * (width - left - 2);
      const y = (rate) => top + (1 - rate / most) * (height - top - bottom);
      this.scale = { x, y, left, begin, end, span, width, height, bottom, top };
      const parts = [];
      for (let step = 0; step <= 2; step += 1) {
        const at = y((most * step) / 2).toFixed(1);
        parts.push(`<line class="grid" x1="${left}" x2="${width}" y1="${at}" y2="${at}"/><text x="${left - 8}" y="${+at + 4}" text-anchor="end">${short((most * step) / 2)}</text>`);
      }
      const tick = span > 600 ? 300 : span > 240 ? 120 : span > 150 ? 60 : 30;
      for (let back = 0; back <= span - tick / 4; back += tick) {
        const label = back === 0 ? gettext("now") : `−${back % 60 ? times.lasting(back, "s") : times.lasting(back / 60, "min")}`;
        parts.push(`<text x="${Math.max(x(end - back), left + 18).toFixed(1)}" y="${height - 3}" text-anchor="${back ? "middle" : "end"}">${label}</text>`);
      }
      const ins = this.path(1, x, y), outs = this.path(2, x, y);
      for (const run of this.runs(1)) {
        const line = run.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`).join("L");
        parts.push(`<path class="area" d="M${x(run[0][0]).toFixed(1)},${y(0)}L${line}L${x(run.at(-1)[0]).toFixed(1)},${y(0)}Z"/>`);
      }
      parts.push(`<path class="line line-in" d="${ins}"/><path class="line line-out" d="${outs}"/>`);
      if (this.cursorAt !== null) parts.push(`<line class="cursor" x1="${x(this.cursorAt)}" x2="${x(this.cursorAt)}" y1="${top}" y2="${height - bottom}"/>`);
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.innerHTML = parts.join("");          // numbers only
      this.showTip();
    }

    runs(column) {                                  // unknown seconds and pauses are gaps, never zero
      const runs = []; let run = [];
      for (const point of this.points) {
        const isGap = point[column] === null || (run.length && point[0] - run.at(-1)[0] > 3.5);
        if (isGap && run.length) { runs.push(run); run = []; }
        if (point[column] !== null) run.push([point[0], point[column]]);
      }
      if (run.length) runs.push(run);
      return runs.map((points) => (points.length === 1 ? [points[0], [points[0][0] + 0.5, points[0][1]]] : points));
    }

    path(column, x, y) {
      return this.runs(column).map((run) => `M${run.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`).join("L")}`).join("");
    }

    point(clientX) {
      if (clientX === null || !this.scale) this.cursorAt = null;
      else {
        const { left, width, begin } = this.scale;
        const across = (clientX - this.element.getBoundingClientRect().left - left) / (width - left - 2);
        this.cursorAt = across < 0 || across > 1 ? null : begin + across * this.scale.span;
      }
      this.draw();
    }

    key(event) {
      const step = { ArrowLeft: -5, ArrowRight: 5 }[event.key];
      if (!step || !this.scale) return;
      event.preventDefault();
      this.cursorAt = Math.min(this.scale.end, Math.max(this.scale.begin, (this.cursorAt ?? this.scale.end) + step));
      this.draw();
    }

    showTip() {
      const nearest = this.cursorAt === null ? null : this.points.reduce((best, point) => (Math.abs(point[0] - this.cursorAt) < Math.abs((best?.[0] ?? Infinity) - this.cursorAt) ? point : best), null);
      this.tip.hidden = !nearest;
      if (!nearest) return;
      const isNear = Math.abs(nearest[0] - this.cursorAt) < 3;
      const time = times.text(`${new Date(this.cursorAt * 1000).toISOString().slice(11, 19)} UTC`);
      this.tip.textContent = isNear ? `${time}  ${gettext("in")} ${short(nearest[1])}  ${gettext("out")} ${short(nearest[2])}` : `${time}  ${UNKNOWN}`;
      const at = this.scale.x(this.cursorAt), room = this.scale.width - this.tip.offsetWidth;
      this.tip.style.left = `${Math.min(Math.max(0, at + 10), room)}px`;
    }
  }

  const niceMax = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 5, 10].find((step) => step * power >= value) * power;
  };
  const short = (value) => {
    if (value === null || value === undefined) return UNKNOWN;
    if (value >= 1e6) return `${+(value / 1e6).toFixed(1)}M`;
    if (value >= 10000) return `${+(value / 1e3).toFixed(0)}k`;
    return value >= 10 ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : `${+value.toFixed(1)}`;
  };

  // ---- small things ----------------------------------------------------------------------------------------------

  document.addEventListener("click", async (event) => {
    const copier = event.target.closest("[data-copy], [data-copy-text]");
    if (copier) {
      const text = copier.dataset.copyText ?? $(copier.dataset.copy)?.textContent ?? "";
      try { await navigator.clipboard.writeText(text); } catch {   // no clipboard over plain HTTP from elsewhere
        const area = document.createElement("textarea");
        area.value = text; document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
      }
      copier.classList.add("is-copied");
      const word = $("span", copier), was = word?.textContent;
      if (word) word.textContent = gettext("Copied");
      setTimeout(() => { copier.classList.remove("is-copied"); if (word) word.textContent = was; }, 1400);
      return;
    }
    const toggle = event.target.closest("[data-toggle]");
    if (toggle && $(toggle.dataset.toggle)) {
      event.preventDefault();
      const panel = $(toggle.dataset.toggle);
      panel.hidden = !panel.hidden;
      if (!panel.hidden) $("input:not([type=hidden])", panel)?.focus();
      return;
    }
    const row = event.target.closest("tr[data-href]");
    if (row && !event.target.closest("a, button, label, .pick") && !String(getSelection())) location.href = row.dataset.href;
  });

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-form]");
    if (!form) return;
    event.preventDefault();
    const chosen = event.submitter.value;
    document.documentElement.dataset.theme = chosen;
    for (const button of $$("button", form)) button.setAttribute("aria-pressed", String(button.value === chosen));
    fetch(form.action, { method: "POST", body: new FormData(form, event.submitter), credentials: "same-origin", redirect: "manual" });
  });

  let pendingKey = "";
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select") || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "/") { const search = $("[data-search]"); if (search) { event.preventDefault(); search.focus(); } }
    else if (pendingKey === "g") {
      const target = { o: "/", t: "/topics", g: "/groups", a: "/alerts", d: "/dead-letters", r: "/reports/" }[event.key];
      if (target && $(`.nav a[href="${target}"]`)) location.href = target;
    }
    else if (event.key === "j" || event.key === "k") stepThroughRows(event.key === "j" ? 1 : -1);
    pendingKey = pendingKey === "g" ? "" : event.key;
  });

  // j and k: the problems, then the rows of the page's tables, by the link of each; Enter opens it.
  function stepThroughRows(step) {
    const links = $$(".problem h2 a, .brokers tbody th a, tr[data-href] td.name > a, a[data-open]").filter((link) => link.checkVisibility());
    if (!links.length) return;
    const row = document.activeElement.closest(".problem, tr");
    const at = links.findIndex((link) => row?.contains(link));
    const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  // A form whose fields depend on one choice: only those that the choice needs are shown.
  function showNeeded(form) {
    const choice = form.elements[form.dataset.what];
    const show = () => {
      for (const field of $$("[data-for]", form)) field.closest(".field").hidden = !field.dataset.for.split(" ").includes(choice.value);
    };
    choice.addEventListener("change", show);
    show();
  }

  // ---- begin ------------------------------------------------------------------------------------------------------

  function start(root) {
    const element = root.matches?.("[data-chart]") ? root : $("[data-chart]", root);
    if (element) { chart = new Chart(element); chart.draw(); }
    if (root !== document) window.drawHistory?.(root);
    for (const item of $$("[data-live]", root)) { item.dataset.why = item.title; showAge(item); }
    for (const scan of $$("[data-scan]", root)) startScan(scan);
    for (const opener of $$("tr.row + tr.opened", root)) $("[data-open]", opener.previousElementSibling)?.setAttribute("aria-expanded", "true");
    showConnection();
  }

  const first = $("[data-live][data-at]:not([data-at=''])");
  if (first && $("[data-pulse]")) clockOffset = Math.max(...$$("[data-live]").map((item) => parseFloat(item.dataset.at) || 0)) - Date.now() / 1000;
  start(document);
  for (const form of $$("form[data-what]")) showNeeded(form);
  for (const tab of $$(".tabs [aria-current]")) tab.parentElement.scrollLeft = tab.offsetLeft - (tab.parentElement.clientWidth - tab.offsetWidth) / 2;
  // A message's tab that was chosen by key keeps the focus when its row is drawn anew.
  let refocus = "";
  document.addEventListener("htmx:beforeSwap", (event) => {
    const view = document.activeElement?.closest("tr.opened [data-view]");
    refocus = view && event.detail.target === view.closest("tr") ? `tr[data-of="${CSS.escape(view.closest("tr").dataset.of)}"] ${view.closest("nav") ? "nav" : ".segmented"} [aria-current]:not([aria-current=false])` : "";
  });
  document.addEventListener("htmx:afterSwap", () => { if (refocus) $(refocus)?.focus({ preventScroll: true }); refocus = ""; subscribeSoon(); for (const item of $$("[data-live]")) { item.dataset.why ??= item.title; showAge(item); } });
  // What was folded out stays so when its part of the page is drawn anew.
  let unfolded = [];
  document.addEventListener("htmx:beforeSwap", (event) => { unfolded = $$("details[id][open]", event.detail.target).map((one) => one.id); });
  document.addEventListener("htmx:afterSwap", () => { for (const id of unfolded.splice(0)) document.getElementById(id)?.setAttribute("open", ""); });
  document.addEventListener("gantry:times", () => chart?.draw());
  connect();
})();
