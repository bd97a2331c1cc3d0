/* Putting dead letters back: count, go, stop. Each step is one request, so that a closed page stops as well. */
(() => {
  "use strict";
  const ROWS_MAX = 500;
  const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");
  const letters = (count) => `${number(count)} ${count === 1 ? "letter" : "letters"}`;
  const WORDS = { sent: ["put back", "tag-good"], failed: ["failed", "tag-problem"], begun: ["not known", "tag-attention"], before: ["left: put back before", ""] };

  for (const card of document.querySelectorAll("[data-put-back]")) start(card);

  function start(card) {
    const part = (name) => card.querySelector(`[data-${name}]`);
    const form = card.querySelector("form"), bar = card.querySelector("progress");
    let counted = null, stop = null;

    const say = (text) => { part("state").hidden = false; part("state-text").textContent = text; };

    function show(isRunning) {
      part("count").hidden = isRunning;
      part("stop").hidden = !isRunning;
      part("go").hidden = isRunning || !counted?.matched;
      if (counted) part("go").textContent = `Put ${letters(counted.matched)} back`;
      for (const field of form.elements) if (!field.matches("[type=hidden], button")) field.disabled = isRunning;
    }

    async function walk(fields, older, each) {
      stop = new AbortController();
      const answered = { detail: "" };
      do {
        const body = new URLSearchParams({ ...fields, older: older ?? "" });
        let answer, step;
        try {
          answer = await fetch(card.dataset.putBack, { method: "POST", body, credentials: "same-origin", headers: { "HX-Request": "true" } });
          if (answer.headers.has("HX-Redirect")) { location.href = answer.headers.get("HX-Redirect"); return answered; }
          step = await answer.json();
        } catch { answered.detail = "The connection was lost: what the last step did shows when the page is read again."; break; }
        if (!answer.ok) { answered.detail = Object.values(step.fields ?? {}).flat()[0] ?? step.detail; break; }
        each(step);
        older = step.older;
        if (step.troubles.length) { answered.detail = step.troubles[0]; break; }
      } while (older && !stop.signal.aborted);
      answered.isWhole = !older && !answered.detail;
      return answered;
    }

    part("count").addEventListener("click", async () => {
      const fields = Object.fromEntries(new FormData(form));
      const total = { matched: 0, scanned: 0, begin: null };
      counted = null; bar.hidden = true; show(true); say("Counting …");
      const end = await walk({ ...fields, dry_run: "on" }, "", (step) => {
        total.begin ??= step.begin;
        total.matched += step.matched; total.scanned += step.scanned;
        say(`${letters(total.matched)} of ${number(total.scanned)} looked at …`);
      });
      counted = end.isWhole ? total : null;
      say(end.isWhole ? `${letters(total.matched)} of ${number(total.scanned)} looked at. Nothing was sent yet.` : end.detail || "Stopped.");
      show(false);
    });

    part("go").addEventListener("click", async () => {
      const fields = Object.fromEntries(new FormData(form)), all = counted;
      const done = { sent: 0, failed: 0, begun: 0, before: 0 };
      bar.hidden = false; bar.value = 0; part("results").querySelector("tbody").replaceChildren();
      show(true); say("Putting back …");
      const begun = performance.now();
      const told = () => `${number(done.sent)} of ${number(all.matched)} put back${done.failed ? `, ${number(done.failed)} failed` : ""}${done.begun ? `, ${number(done.begun)} not known` : ""}${done.before ? `, ${number(done.before)} left: put back before` : ""}`;
      const end = await walk(fields, all.begin, (step) => {
        for (const result of step.results) { done[result.state] += 1; add(result); }
        const seen = done.sent + done.failed + done.begun + done.before;
        bar.value = all.matched ? seen / all.matched : 1;
        say(`${told()} · ${(done.sent / Math.max(0.001, (performance.now() - begun) / 1000)).toFixed(1)} a second`);
      });
      counted = null;
      say(`${told()}. ${end.isWhole ? "All done." : end.detail || "Stopped."}`);
      show(false);
    });

    part("stop").addEventListener("click", () => { stop?.abort(); say("Stopping after this step …"); });
    form.addEventListener("change", () => { counted = null; show(false); });
    form.addEventListener("submit", (event) => event.preventDefault());

    function add(result) {
      const body = part("results").querySelector("tbody");
      part("results").hidden = false;
      const row = document.createElement("tr"), place = document.createElement("td"), what = document.createElement("td"), cause = document.createElement("td");
      const [word, kind] = WORDS[result.state], tag = document.createElement("span"), more = document.createElement("small");
      place.textContent = result.place; place.className = "name";
      tag.textContent = word; tag.className = `tag ${kind}`;
      more.textContent = result.state === "before" ? "" : ` ${result.told}`; more.className = "muted";
      what.append(tag, more); what.className = "name";
      cause.textContent = result.cause; cause.className = "opt name";
      row.append(place, what, cause);
      body.prepend(row);
      while (body.childElementCount > ROWS_MAX) body.lastElementChild.remove();
    }
  }
})();
