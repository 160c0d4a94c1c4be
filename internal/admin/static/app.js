// What pages do beside links and forms: parts that are live, and a question before what cannot be taken back.
"use strict";

// Parts with data-live are replaced by what the server sends. Opened details, the focus and what is being typed stay.
for (const part of document.querySelectorAll("[data-live]")) {
  const source = new EventSource(part.dataset.live);
  source.onmessage = (event) => {
    const focus = document.activeElement;
    if (part.contains(focus) && focus.matches("input, select, textarea")) return;
    const selection = window.getSelection();
    if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) return;
    const open = new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const id = part.contains(focus) ? focus.id : "";
    part.innerHTML = event.data;
    for (const [name, is] of open) {
      const details = document.getElementById(name);
      if (details) details.open = is;
    }
    if (id) document.getElementById(id)?.focus();
  };
  source.addEventListener("end", () => source.close());
  source.addEventListener("gone", () => { source.close(); location.assign("/runs"); });
  addEventListener("pagehide", () => source.close());
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});
