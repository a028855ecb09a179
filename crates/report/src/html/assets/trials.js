// The table of all trials: sorted, filtered and shown a page at a time, so that ten thousand
// trials are as fast as ten.
const PAGE = 50;

function trialsTable(host, run) {
  const t = run.trials;
  const number = (name, of, show = short) => ({ name, value: of, show: (i) => show(of(i)) });
  const columns = [
    number("trial", (i) => t.order[i], String), number("block", (i) => t.block[i], String),
    { name: "workload", word: true, value: (i) => t.w[i], show: (i) => run.workloads[t.w[i]].name },
    { name: "setting", value: (i) => t.s[i], show: (i) => settingName(run, t.s[i]) },
    number([...new Set(run.workloads.map((w) => w.unit))].join(" or "), (i) => t.throughput_mib_s[i]), number("÷ median", (i) => t.relative[i]),
    number("amplification", (i) => t.amplification[i]), number("requests", (i) => t.requests[i], (v) => (v === null ? "–" : String(v))),
    number("KiB/request", (i) => t.request_kib[i]), number("queue", (i) => t.queue[i]),
    number("busy", (i) => t.busy[i]),
    number("p50", (i) => t.p50_us[i], time), number("p99", (i) => t.p99_us[i], time),
    number("got MiB", (i) => t.useful_mib[i]), number("ahead MiB", (i) => t.ahead_mib[i]),
    number("device MiB", (i) => t.device_mib[i]), number("CPU ms", (i) => t.cpu_ms[i]), number("wall s", (i) => t.seconds[i]),
    { name: "what disturbed it", word: true, wide: true, value: (i) => (t.why[i] ? 1 : 0), show: (i) => t.why[i] || "" },
  ].filter((c) => c.word || c.name === "setting" || t.order.some((_, i) => c.value(i) !== null));
  let rows = t.order.map((_, i) => i), page = 0, by = 0, up = true;
  const body = el("tbody", {});
  const where = el("span", { class: "soft small", "aria-live": "polite" });
  const heads = columns.map((column, c) => {
    const button = el("button", { type: "button", onclick: () => { up = by === c ? !up : true; by = c; order(); } }, column.name);
    return el("th", { scope: "col", class: column.word ? "word" : null }, button);
  });
  const order = () => {
    const value = columns[by].value;
    const least = (v) => (v === null || v === undefined ? -Infinity : v);
    rows.sort((a, b) => (up ? 1 : -1) * (least(value(a)) - least(value(b))) || a - b);
    heads.forEach((head, c) => {
      if (c === by) head.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    page = 0;
    show();
  };
  const show = () => {
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    body.replaceChildren(...rows.slice(page * PAGE, page * PAGE + PAGE).map((i) => el("tr", { class: t.clean[i] ? null : "spoiled" },
      ...columns.map((c) => el("td", { class: c.wide ? "wide" : c.word ? "word" : null }, c.show(i))))));
    where.textContent = `${rows.length} trials, page ${page + 1} of ${pages}`;
    back.disabled = page === 0;
    next.disabled = page >= pages - 1;
  };
  const texts = t.order.map((_, i) => `${run.workloads[t.w[i]].name} ${settingName(run, t.s[i])} ${t.clean[i] ? "" : "disturbed"} ${t.why[i] || ""}`.toLowerCase());
  const filter = el("input", { type: "search", oninput: () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows = t.order.map((_, i) => i).filter((i) => words.every((word) => texts[i].includes(word)));
    order();
  } });
  const back = el("button", { type: "button", onclick: () => { page--; show(); } }, "Previous");
  const next = el("button", { type: "button", onclick: () => { page++; show(); } }, "Next");
  const scroll = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Trials" },
    el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body));
  host.append(el("div", { class: "tools pages" }, el("label", {}, "Only with the words ", filter), back, next, where), scroll);
  order();
}
