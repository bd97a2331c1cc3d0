/* Counting dead letters before they are put back: a step is one request, so that a closed page stops counting. */
(() => {
  "use strict";
  const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");
  const letters = (count) => interpolate(ngettext("%(count)s message", "%(count)s messages", count), { count: number(count) }, true);

  for (const card of document.querySelectorAll("[data-resend]")) start(card);

  function start(card) {
    const part = (name) => card.querySelector(`[data-${name}]`);
    const form = card.querySelector("form");
    let counted = null, stop = null;

    const say = (text) => { part("state").hidden = false; part("state-text").textContent = text; };

    function show(isRunning) {
      part("count").hidden = isRunning;
      part("stop").hidden = !isRunning;
      part("go").hidden = isRunning || !counted?.matched;
      form.elements.older.value = counted?.begin ?? "";
      form.elements.wanted.value = counted?.matched ?? "";
      if (counted) part("go").textContent = interpolate(gettext("Resend %(letters)s"), { letters: letters(counted.matched) }, true);
      for (const field of form.elements) if (!field.matches("[type=hidden], button")) field.disabled = isRunning;
    }

    async function walk(fields, each) {
      stop = new AbortController();
      const answered = { detail: "" };
      let older = "";
      do {
        const body = new URLSearchParams({ ...fields, older: older ?? "", wanted: "", dry_run: "on" });
        let answer, step;
        try {
          answer = await fetch(card.dataset.resend, { method: "POST", body, credentials: "same-origin", headers: { "HX-Request": "true" } });
          if (answer.headers.has("HX-Redirect")) { location.href = answer.headers.get("HX-Redirect"); return answered; }
          step = await answer.json();
        } catch { answered.detail = gettext("The connection was lost. Count again."); break; }
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
      counted = null; show(true); say(gettext("Counting …"));
      const end = await walk(fields, (step) => {
        total.begin ??= step.begin;
        total.matched += step.matched; total.scanned += step.scanned;
        say(interpolate(gettext("%(letters)s of %(count)s scanned …"), { letters: letters(total.matched), count: number(total.scanned) }, true));
      });
      counted = end.isWhole ? total : null;
      say(end.isWhole ? interpolate(gettext("%(letters)s of %(count)s scanned. Nothing has been sent yet."), { letters: letters(total.matched), count: number(total.scanned) }, true) : end.detail || gettext("Stopped."));
      show(false);
      if (counted?.matched) part("go").focus();
    });

    part("stop").addEventListener("click", () => { stop?.abort(); say(gettext("Stopping after this step …")); });
    form.addEventListener("change", () => { counted = null; show(false); });
    form.addEventListener("submit", (event) => { if (!counted?.matched) event.preventDefault(); });
  }
})();
