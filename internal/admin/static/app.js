// What pages do beside links, forms and htmx: parts that are live keep what a person is at, charts, and a question before what cannot
// be taken back.
"use strict";

// A part is not replaced while something is being typed or selected in it; opened details stay open.
let opened = new Map();
document.addEventListener("htmx:sseBeforeMessage", (event) => {
  const part = event.target;
  const focus = document.activeElement;
  const selection = window.getSelection();
  if ((part.contains(focus) && focus.matches("input, select, textarea")) || (selection && !selection.isCollapsed && part.contains(selection.anchorNode))) {
    event.preventDefault();
    return;
  }
  opened = new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
});
document.addEventListener("htmx:sseMessage", () => {
  for (const [id, is] of opened) {
    const details = document.getElementById(id);
    if (details) details.open = is;
  }
});

// What is on the screen is told to the server now and then, while the page is visible.
for (const part of document.querySelectorAll("[data-look]")) {
  setInterval(() => { if (!document.hidden) htmx.trigger(part, "look"); }, part.dataset.look * 1000);
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// Charts. Colours are those of the style sheet.
const night = window.matchMedia("(prefers-color-scheme: dark)");
const seconds = (iso) => Date.parse(iso) / 1000;
const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// Each kind turns what the server sent into columns (times first) and says how they are drawn.
const kinds = {
  slots: {
    columns: (sent) => [sent.slots.map((s) => seconds(s.at)), sent.slots.map((s) => s.used)],
    series: (names, colour) => [{ label: names[0], stroke: colour("--bar"), fill: colour("--bar-faint"), width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
  },
  // Bars that stand on each other: the lowest is drawn last, over the higher ones.
  pages: {
    columns: (sent) => {
      const times = sent.buckets.map((b) => seconds(b.from));
      const fetched = sent.buckets.map((b) => b.fetched);
      const failed = sent.buckets.map((b, i) => fetched[i] + b.failed);
      return [times, sent.buckets.map((b, i) => failed[i] + b.excluded), failed, fetched];
    },
    series: (names, colour, sent) => {
      const own = [(b) => b.excluded, (b) => b.failed, (b) => b.fetched];
      return ["--bar-out", "--bar-bad", "--bar"].map((name, i) => ({
        label: names[2 - i], stroke: colour(name), fill: colour(name), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.86, 72], align: 1 }),
        value: (plot, v, series, at) => (at === null || at === undefined || !sent().buckets[at] ? "–" : own[i](sent().buckets[at]).toLocaleString()),
      }));
    },
    span: (sent) => sent.width_seconds,
  },
};

function draw(box) {
  const kind = kinds[box.dataset.chart];
  let plot = null, sent = null;
  const make = () => {
    if (plot) plot.destroy();
    plot = null;
    if (!sent) return;
    const columns = kind.columns(sent);
    box.classList.toggle("bare", columns[0].length === 0);
    if (columns[0].length === 0) {
      box.textContent = box.dataset.empty || "";
      return;
    }
    box.textContent = "";
    const resolved = resolver(box);
    const axis = { stroke: resolved("--faint"), grid: { stroke: resolved("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    plot = new uPlot({
      width: box.clientWidth, height: box.clientWidth < 500 ? 160 : 190, cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: { time: true, range: (u, low, high) => [low, Math.max(high + (kind.span ? kind.span(sent) : 0), low + (kind.span ? 12 * kind.span(sent) : 60))] },
        y: { range: (u, low, high) => [0, Math.max(high || 0, 4)] },
      },
      axes: [{ ...axis, size: 34, space: 90, values: (u, ticks) => ticks.map(clock) }, { ...axis, size: 52, incrs: [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10000, 20000, 25000, 50000, 100000, 1000000] }],
      series: [{ value: (u, v) => (v === null ? "–" : clock(v)), label: "" }, ...kind.series(box.dataset.names.split("|"), resolved, () => sent)],
    }, columns, box);
  };
  const fetchAgain = async () => {
    if (document.hidden && plot) return;
    try {
      const answer = await fetch(box.dataset.from, { headers: { Accept: "application/json" } });
      if (!answer.ok) return; // what is drawn stays
      const first = !plot;
      sent = await answer.json();
      if (first) make(); else plot.setData(kind.columns(sent));
    } catch {
      // the server is away for a moment; what is drawn stays
    }
  };
  fetchAgain();
  if (box.dataset.every) setInterval(fetchAgain, box.dataset.every * 1000);
  night.addEventListener("change", make);
  new ResizeObserver(() => { if (plot && plot.width !== box.clientWidth && box.clientWidth > 0) plot.setSize({ width: box.clientWidth, height: box.clientWidth < 500 ? 160 : 190 }); }).observe(box);
}

// A canvas needs colours as they come out, not light-dark(): an element that wears one tells.
function resolver(box) {
  const probe = document.createElement("span");
  box.append(probe);
  const cache = new Map();
  return (name) => {
    if (!cache.has(name)) {
      if (!probe.isConnected) box.append(probe);
      probe.style.color = `var(${name})`;
      cache.set(name, getComputedStyle(probe).color);
      probe.remove();
    }
    return cache.get(name);
  };
}

for (const box of document.querySelectorAll("[data-chart]")) draw(box);
