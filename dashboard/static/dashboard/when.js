/* Picking a time for fields that take one as text: a date and a clock, whose zone they are, and ways to say it fast.
   The text is what is sent, so that it can be read, typed and linked as before. */
(() => {
  "use strict";
  const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone || "local";
  const AGO = ["15 min", "1 h", "6 h", "24 h", "7 d"];
  const two = (number) => String(number).padStart(2, "0");
  const make = (tag, facts = {}, ...children) => { const made = Object.assign(document.createElement(tag), facts); made.append(...children); return made; };

  for (const field of document.querySelectorAll("input[data-when]")) {
    const picked = make("input", { type: "datetime-local", step: "1", ariaLabel: gettext("Date and time") });
    const zone = make("select", { ariaLabel: gettext("Zone") }, make("option", { value: "utc", textContent: "UTC" }), make("option", { value: "local", textContent: LOCAL }));
    const quick = make("div", { className: "when-quick" });
    const box = make("details", { className: "when-pick" }, make("summary", { textContent: gettext("Pick"), ariaLabel: interpolate(gettext("Pick a time: %(field)s"), { field: field.labels?.[0]?.textContent.trim() ?? "" }, true) }), make("div", { className: "when-box" }, picked, zone, quick));
    if (new Date().getTimezoneOffset() === 0 && LOCAL.endsWith("UTC")) zone.hidden = true;
    else if (window.gantryTimes.mode() === "local") zone.value = "local";
    const beside = make("small", { className: "when-beside muted" });

    // The moment that stands in the field; null if it is none.
    function read() {
      const text = field.value.trim(), told = /^\d{4}-/.test(text) ? new Date(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text.replace(" ", "T") : `${text.replace(" ", "T")}${text.length > 10 ? "Z" : ""}`) : null;
      return told && !Number.isNaN(told.getTime()) ? told : null;
    }

    // As the picker opens; an hour ago if the field has no moment.
    function show() {
      const at = read() ?? new Date(Date.now() - 3600e3);
      const minutes = zone.value === "utc" ? 0 : -at.getTimezoneOffset();
      picked.value = new Date(at.getTime() + minutes * 60e3).toISOString().slice(0, 19);
    }

    // What was typed is UTC unless it has a zone: the reader's own time stands under it.
    function echo() {
      const at = read();
      beside.textContent = at && window.gantryTimes.offsetAt(at.getTime()) ? `= ${window.gantryTimes.both(at.getTime())}` : "";
    }

    function set(text) {
      field.value = text;
      echo();
      const [name, value] = field.dataset.when.split("=");
      const other = value && field.form?.elements[name];
      if (other) other.value = value;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }

    function take() {
      if (!picked.value) return;
      const text = picked.value.replace("T", " ");
      if (zone.value === "utc") { set(text); return; }
      const offset = -new Date(picked.value).getTimezoneOffset(), far = Math.abs(offset);
      set(`${text}${offset < 0 ? "-" : "+"}${two(Math.floor(far / 60))}:${two(far % 60)}`);
    }

    for (const ago of AGO) {
      const button = make("button", { type: "button", className: "ghost small", textContent: interpolate(gettext("%(time)s ago"), { time: window.gantryTimes.lasting(...ago.split(" ")) }, true) });
      button.addEventListener("click", () => { set(ago); box.open = false; field.focus(); });
      quick.append(button);
    }
    const today = make("button", { type: "button", className: "ghost small", textContent: gettext("Today, 00:00") });
    today.addEventListener("click", () => { const now = new Date(); picked.value = `${zone.value === "utc" ? now.toISOString().slice(0, 10) : `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`}T00:00:00`; take(); box.open = false; field.focus(); });
    quick.append(today);
    field.addEventListener("input", echo);
    picked.addEventListener("input", take);
    zone.addEventListener("change", take);
    box.addEventListener("toggle", () => { if (box.open) show(); });
    box.addEventListener("keydown", (event) => { if (event.key === "Escape") { box.open = false; field.focus(); } });
    document.addEventListener("click", (event) => { if (box.open && !box.contains(event.target)) box.open = false; });
    const label = field.closest("label");
    (label && label.contains(field) ? label : field).after(box, beside);
    echo();
  }
})();
