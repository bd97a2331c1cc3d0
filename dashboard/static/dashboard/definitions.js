/* Definitions: a chosen file goes into the text, which is what is sent; without scripts the text alone is there. The
   browser's own button would speak the browser's language. */
(() => {
  "use strict";
  const BYTES_MAX = 1 << 20;
  const field = document.getElementById("from-file");
  if (!field) return;
  const [button, chooser, name, problem] = ["button", "input", "[role=status]", "[role=alert]"].map((one) => field.querySelector(one));
  const text = document.getElementById(button.dataset.into);
  field.hidden = false;
  button.addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", async () => {
    const file = chooser.files[0];
    if (!file) return;
    const isTooLarge = file.size > BYTES_MAX, found = isTooLarge ? "" : await file.text();
    chooser.value = "";       // or the same file, changed meanwhile, could not be chosen again
    name.textContent = isTooLarge ? "" : file.name;
    problem.textContent = isTooLarge ? problem.dataset.tooLarge : "";
    if (isTooLarge) return;
    text.value = found;
    text.dispatchEvent(new Event("input", { bubbles: true }));
    text.focus();
  });
})();
