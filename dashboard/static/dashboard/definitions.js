/* Definitions: a chosen file goes into the text, which is what is sent; without scripts the text alone is there. */
(() => {
  "use strict";
  const BYTES_MAX = 1 << 20;
  const chooser = document.querySelector("input[data-into]");
  if (!chooser) return;
  const text = document.getElementById(chooser.dataset.into);
  chooser.closest(".field").hidden = false;
  chooser.addEventListener("change", async () => {
    const file = chooser.files[0];
    chooser.setCustomValidity(file && file.size > BYTES_MAX ? chooser.dataset.tooLarge : "");
    if (!file || !chooser.reportValidity()) return;
    text.value = await file.text();
    text.dispatchEvent(new Event("input", { bubbles: true }));
    text.focus();
  });
})();
