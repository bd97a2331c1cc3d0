// Ctrl-K: go to a page, topic, group or message by its name. ?: which keys there are. Texts are set as text, never as HTML.
"use strict";
(() => {
  const palette = document.getElementById("palette"), keys = document.getElementById("keys");
  if (!palette) return;
  const input = palette.querySelector("input"), list = palette.querySelector("[role=listbox]");
  const status = palette.querySelector("[role=status]");
  const WAIT_MS = 120;
  let items = [], chosen = 0, timer = 0, asked = 0;

  function choose(index) {
    chosen = items.length ? (index + items.length) % items.length : 0;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    const current = list.children[chosen];
    if (current) { input.setAttribute("aria-activedescendant", current.id); current.scrollIntoView({ block: "nearest" }); }
    else input.removeAttribute("aria-activedescendant");
  }

  function draw(answer) {
    items = answer.found;
    list.replaceChildren(...items.map((item, at) => {
      const row = document.createElement("li"), kind = document.createElement("small"), label = document.createElement("span");
      row.id = `palette-${at}`;
      row.setAttribute("role", "option");
      label.textContent = item.label;
      kind.textContent = item.kind;
      row.append(label, kind);
      row.addEventListener("click", () => { location.href = item.href; });
      return row;
    }));
    status.textContent = answer.trouble || (items.length ? "" : gettext("No name contains this."));
    choose(0);
  }

  async function ask() {
    const turn = ++asked;
    try {
      const answer = await fetch(`${palette.dataset.find}?q=${encodeURIComponent(input.value)}`);
      if (!answer.ok) throw new Error(interpolate(gettext("answered with %(status)s"), answer, true));
      const told = await answer.json();
      if (turn === asked) draw(told);
    } catch (error) {
      if (turn === asked) draw({ found: [], trouble: interpolate(gettext("Not found: %(why)s"), { why: error.message }, true) });
    }
  }

  function open() {
    if (palette.open) return;
    input.value = "";
    palette.showModal();          // focus comes back by itself when it closes
    ask();
  }

  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, WAIT_MS); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { event.preventDefault(); choose(chosen + 1); }
    else if (event.key === "ArrowUp") { event.preventDefault(); choose(chosen - 1); }
    else if (event.key === "Enter" && items[chosen]) { event.preventDefault(); location.href = items[chosen].href; }
  });
  for (const dialog of [palette, keys]) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  document.querySelector("[data-palette]")?.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") { event.preventDefault(); open(); }
    else if (event.key === "?" && !event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select") && !palette.open) keys.showModal();
  });
})();
