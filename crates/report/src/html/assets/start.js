// Helpers for all parts of the page.
const NS = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

// An element with attributes and children; text goes in as text, never as markup.
function el(name, attributes = {}, ...children) {
  const node = name.startsWith("svg:")
    ? document.createElementNS(NS, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Three significant digits, as everywhere in foreread.
function short(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  const m = Math.abs(value);
  if (m === 0) return "0";
  const decimals = m >= 99.95 ? 0 : m >= 9.995 ? 1 : m >= 0.9995 ? 2 : m >= 0.09995 ? 3 : 4;
  const text = value.toFixed(decimals);
  return /[1-9]/.test(text) ? text : "0";
}

function time(us) {
  if (us === null || !Number.isFinite(us)) return "–";
  if (us >= 1e6) return `${short(us / 1e6)} s`;
  return us >= 1e3 ? `${short(us / 1e3)} ms` : `${short(us)} µs`;
}

function size(kib) {
  if (kib === 0) return "0";
  if (kib >= 1024 && kib % 1024 === 0) return `${kib / 1024}M`;
  if (Number.isInteger(kib) && kib < 10240) return `${kib}K`;
  return kib >= 10240 ? `${short(kib / 1024)}M` : `${short(kib)}K`;
}

const ratio = (r) => (r >= 1.995 ? `${short(r)} times` : `${r >= 1 ? "+" : "−"}${Math.abs((r - 1) * 100).toFixed(0)} %`);

// Announces a text to screen readers.
function say(text) {
  const place = byId("said");
  if (place) place.textContent = text;
}

function theme() {
  const button = byId("theme");
  if (!button) return;
  const names = ["auto", "light", "dark"];
  const set = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
    button.dataset.now = name;
  };
  button.addEventListener("click", () => {
    set(names[(names.indexOf(button.dataset.now) + 1) % names.length]);
  });
  set("auto");
}

function copyButtons() {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (button.dataset.copy === "ready") continue;
    button.dataset.copy = "ready";
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre").textContent;
      try {
        await navigator.clipboard.writeText(text);
        say("copied");
        button.textContent = "Copied";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(button.parentElement.querySelector("pre"));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected";
      }
    });
  }
}

// A selector with a name; calls back with the selected value.
function choice(label, options, onChange, chosen = 0) {
  const select = el("select", { onchange: () => onChange(Number(select.value)) },
    ...options.map((text, i) => el("option", { value: i, selected: i === chosen }, text)));
  return el("label", {}, `${label} `, select);
}

// A table's body sorted by the column that is clicked. Cells carry their value in data-v.
function sortable(table) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => {
        const v = row.cells[column].dataset.v;
        return v === undefined || v === "" ? -Infinity : Number(v);
      };
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (up ? 1 : -1) * (value(a) - value(b)));
      table.tBodies[0].append(...rows);
      say(`sorted by ${button.textContent}, ${up ? "ascending" : "descending"}`);
    });
  });
}
