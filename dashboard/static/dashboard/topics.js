/* The list of topics: what is chosen stays chosen when the list is drawn anew. */
(() => {
  "use strict";
  const list = document.querySelector("[data-picks]");
  if (list) {
    const chosen = new Set();
    const boxes = () => [...list.querySelectorAll("input[name=topic]:not(:disabled)")];
    const button = document.querySelector("[data-picked]");
    const label = button.textContent;

    function show() {
      for (const box of boxes()) box.checked = chosen.has(box.value);
      const count = boxes().filter((box) => box.checked).length;
      button.disabled = button.hidden = !count;
      button.textContent = count ? label.replace(/\s?…/, ` (${count})$&`) : label;
      const all = list.querySelector("[data-pick-all]");
      if (all) {
        all.checked = count > 0 && count === boxes().length;
        all.indeterminate = count > 0 && !all.checked;
      }
    }

    list.addEventListener("change", (event) => {
      const box = event.target;
      if (box.matches("[data-pick-all]")) {
        for (const one of boxes()) box.checked ? chosen.add(one.value) : chosen.delete(one.value);
      } else if (box.name === "topic") {
        box.checked ? chosen.add(box.value) : chosen.delete(box.value);
      }
      show();
    });
    new MutationObserver((changes) => {
      if (changes.some((change) => [...change.addedNodes].some((node) => node.id === "topic-list"))) show();
    }).observe(list, { childList: true });
    for (const box of boxes()) if (box.checked) chosen.add(box.value);   // the browser came back to this page
    show();
  }
})();
