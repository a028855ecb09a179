// The charts of a page, drawn from the data in it.
const X = {
  log: true, format: size, second: (kib) => String(kib * 2), title: "read-ahead: KiB above, 512-byte sectors below",
  full: (kib) => `${kib} KiB (${kib * 2} sectors)`,
};

const METRICS = [
  { name: "Throughput", of: (c) => c.throughput_mib_s, y: { format: short }, units: true },
  { name: "Throughput, relative to each curve's own best", relative: true, of: (c) => c.throughput_mib_s, y: { title: "% of its best", format: short, unit: " %" } },
  { name: "Latency p50", of: (c) => c.latency_us && [c.latency_us[0]], y: { title: "latency of half of the reads", format: time, log: true } },
  { name: "Latency p99", of: (c) => c.latency_us && [c.latency_us[1]], y: { title: "latency of 99 of 100 reads", format: time, log: true } },
  { name: "Random reads: latency p50", of: (c) => c.random_latency_us && [c.random_latency_us[0]], y: { title: "latency of half of the random reads", format: time, log: true } },
  { name: "Random reads: latency p99", of: (c) => c.random_latency_us && [c.random_latency_us[1]], y: { title: "latency of 99 of 100 random reads", format: time, log: true } },
  { name: "Amplification", of: (c) => c.amplification, y: { title: "bytes read from the device ÷ bytes asked for", format: short, log: true, unit: "×" } },
  { name: "Requests to the device", of: (c) => c.device_requests, y: { title: "requests in a trial", format: short, log: true } },
  { name: "Mean size of a request", of: (c) => c.request_kib && [c.request_kib], y: { title: "KiB for each request to the device", format: short, unit: " KiB" } },
];

// The axis of a metric: throughput has the unit of its workload, MiB/s or that of a command's figure.
function axis(metric, runs) {
  if (!metric.units) return metric.y;
  const units = [...new Set(runs.flatMap((run) => run.workloads.map((w) => w.unit)))];
  return { ...metric.y, title: units.join(" or "), unit: units.length === 1 ? ` ${units[0]}` : "" };
}

const seriesName = (run, w, many) => (many ? `${run.label}: ${run.workloads[w].name}` : run.workloads[w].name);

// The combinations of settings other than read-ahead: one curve each.
const kinds = (run) => [...new Set(run.settings.map((s) => s.labels))];

function curveSeries(runs, metric, pick) {
  const series = [];
  let k = 0;
  runs.forEach((run) => run.workloads.forEach((workload, w) => {
    for (const labels of kinds(run)) {
      const colour = k++;
      if (pick && !pick(run, w)) continue;
      const points = run.cells
        .filter((c) => c.w === w && run.settings[c.s].labels === labels && metric.of(c))
        .map((c) => {
          const spoiled = c.disturbed ? `, ${c.disturbed} disturbed` : "";
          return [run.settings[c.s].kib, ...metric.of(c), `${c.repeats} ${c.repeats === 1 ? "trial" : "trials"}${spoiled}`];
        })
        .map((p) => (p.length === 3 ? [p[0], p[1], null, null, p[2]] : p))
        .sort((a, b) => a[0] - b[0]);
      if (!points.length) continue;
      if (metric.relative) relative(points);
      const name = seriesName(run, w, runs.length > 1) + (labels ? `, ${labels}` : "");
      series.push({ name, k: colour, dash: DASHES[Math.floor(colour / 8) % 8 || (runs.length > 1 ? runs.indexOf(run) % 8 : 0)], points, band: runs.length === 1, rings: bends(run, w, metric) });
    }
  }));
  return series;
}

function relative(points) {
  const best = Math.max(...points.map((p) => p[1]));
  for (const p of points) for (const i of [1, 2, 3]) if (p[i] !== null && p[i] !== undefined) p[i] = (p[i] / best) * 100;
}

// The economical setting (small ring) and the best setting (large ring) of a curve.
function bends(run, w, metric) {
  const bend = run.curves.find((c) => c.w === w);
  if (!bend || !metric.name.startsWith("Throughput")) return [];
  const rings = [];
  if (bend.best_kib !== null) rings.push({ x: bend.best_kib, big: true, label: size(bend.best_kib) });
  if (bend.economical_kib !== null && bend.economical_kib !== bend.best_kib) rings.push({ x: bend.economical_kib, label: size(bend.economical_kib) });
  if (bend.knee_kib !== null) rings.push({ x: bend.knee_kib, knee: true });
  return rings;
}

function predictedSeries(runs, series) {
  const more = [];
  runs.forEach((run) => (run.predicted || []).forEach((curve) => {
    const name = seriesName(run, curve.w, runs.length > 1);
    const own = series.find((s) => s.name === name);
    if (own) more.push({ name: `${name}, predicted`, k: own.k, dash: "3 3", thin: true, dots: false, bars: false, points: curve.points });
  }));
  return more;
}

function curves(host, runs) {
  let vendor = [], shown = 0, limited = 0;
  const { advised } = JSON.parse(byId("data").textContent);
  const has = METRICS.filter((m) => runs.some((run) => run.cells.some((c) => m.of(c))));
  const config = (metric) => {
    const own = curveSeries(runs, metric);
    const predicted = metric.name === "Throughput" && runs.length === 1 ? predictedSeries(runs, own) : [];
    const marks = [...(runs.length > 1 ? [] : gather(runs[0])), ...vendor];
    const limits = metric.name === "Throughput" && runs.length === 1 ? runs[0].limits : [];
    const levels = limits.filter((l) => l.w === null || l.w === worked[limited]);
    return { label: `${metric.name} against read-ahead`, x: X, y: axis(metric, runs), series: [...own, ...predicted], marks, levels, rug };
  };
  // The values that vendors advise, each once.
  const rug = [...new Set(advised.flatMap((a) => [a.low_kib, a.high_kib]))].map((x) => ({ x, label: adviceAt(advised, x) }));
  // The workloads with known limits.
  const worked = runs.length === 1 ? [...new Set(runs[0].limits.map((l) => l.w))].filter((w) => w !== null) : [];
  const place = el("div", {});
  host.append(el("div", { class: "tools" }, choice("Show", has.map((m) => m.name), (i) => { shown = i; chart.set(config(has[i])); }),
    choice("Advised for", ["nobody", ...advised.map((a) => a.name)], (i) => {
      vendor = i ? lines(advised[i - 1]) : [];
      chart.set(config(has[shown]));
    }),
    worked.length ? choice("Limits of", worked.map((w) => runs[0].workloads[w].name), (i) => { limited = i; chart.set(config(has[shown])); }) : null), place);
  const chart = new Chart(place, config(has[0]));
}

// The vendors that advise a value.
function adviceAt(advised, x) {
  const who = advised.filter((a) => a.low_kib === x || a.high_kib === x).map((a) => a.name);
  return `${size(x)} is advised for ${who.slice(0, 6).join("; ")}${who.length > 6 ? ` and ${who.length - 6} others` : ""}`;
}

// A vendor's advice as one line or two.
function lines(advice) {
  const one = advice.low_kib === advice.high_kib;
  const ends = one ? [[advice.low_kib, "advised"]] : [[advice.low_kib, "advised from"], [advice.high_kib, "advised to"]];
  return ends.map(([x, label]) => ({ x, kind: "advised", label: `${label} ${size(x)}` }));
}

// Marks of the same setting become one line.
function gather(run) {
  const by = new Map();
  for (const mark of run.marks) {
    const one = by.get(mark.kib) || { x: mark.kib, kind: mark.kind, label: "" };
    one.label += (one.label ? ", " : "") + mark.label;
    if (mark.kind === "recommended") one.kind = "recommended";
    by.set(mark.kib, one);
  }
  return [...by.values()];
}

const settingName = (run, s) => run.settings[s].label + (run.settings[s].labels ? `, ${run.settings[s].labels}` : "");

function tradeoff(host, run) {
  const all = run.tradeoffs || [];
  const nameOf = (s) => size(run.settings[s].kib) + (run.settings[s].labels ? `, ${run.settings[s].labels}` : "");
  const config = (t) => ({
    label: `What ${run.workloads[t.other].name} pays for what ${run.workloads[t.goal].name} gains`,
    x: { format: (v) => `${short(v)}×`, title: `${run.workloads[t.goal].name}: throughput relative to ${settingName(run, t.over)}`,
      full: (v) => t.points.filter((p) => p.gain === v).map((p) => settingName(run, p.s)).join(", ") },
    y: { title: `${run.workloads[t.other].name}: throughput relative to ${settingName(run, t.over)}`, format: (v) => `${short(v)}×`, zero: true },
    series: [
      { name: "settings", k: 0, line: false, r: 4, points: t.points.map((p) => [p.gain, p.keep]) },
      { name: "Pareto front: no other setting is better at both", k: 4, points: t.front.map((i) => [t.points[i].gain, t.points[i].keep, null, null, undefined, nameOf(t.points[i].s)]), r: 5 },
    ],
  });
  const place = el("div", {});
  const names = all.map((t) => `${run.workloads[t.goal].name} against ${run.workloads[t.other].name}`);
  host.append(el("div", { class: "tools" }, choice("Trade", names, (i) => chart.set(config(all[i])))), place);
  const chart = new Chart(place, config(all[0]));
}

// A selector of cells with some detail, and the charts of the selected ones.
function detailChart(host, run, has, config) {
  const ws = [...new Set(run.details.filter(has).map((d) => d.w))].sort((a, b) => a - b);
  const place = el("div", {});
  let chart = null;
  const show = (i) => {
    const all = run.details.filter((d) => d.w === ws[i] && has(d)).sort((a, b) => a.s - b.s);
    const marked = new Set(run.marks.map((m) => m.kib));
    const wanted = all.filter((d) => marked.has(run.settings[d.s].kib));
    const few = wanted.length ? wanted : all.slice(0, 1).concat(all.slice(-1));
    const o = config(all, run.workloads[ws[i]].name);
    if (chart) chart.hidden.clear();
    const hide = new Set(all.filter((d) => !few.includes(d)).map((d) => settingName(run, d.s)));
    if (chart) { chart.hidden = hide; chart.set(o); } else {
      chart = new Chart(place, o);
      chart.hidden = hide;
      chart.set(o);
    }
  };
  host.append(el("div", { class: "tools" }, choice("Workload", ws.map((w) => run.workloads[w].name), show)), place);
  show(0);
}

// Logarithms of latencies with their counts, empty buckets included, so that no line crosses them.
function gapless(pairs) {
  const nano = Math.log2(1000);
  const counts = new Map(pairs.map(([us, count]) => [Math.round((Math.log2(us) + nano) * 4), count]));
  const [first, last] = [Math.min(...counts.keys()), Math.max(...counts.keys())];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
    .map((bucket) => [Math.round((bucket / 4 - nano) * 1000) / 1000, counts.get(bucket) || 0]);
}

function latencies(host, run) {
  const pairs = (d) => (d.random_us.length ? d.random_us : d.stream_us);
  detailChart(host, run, (d) => pairs(d).length > 0, (all, name) => ({
    label: `Latencies of ${name}`,
    x: { format: (v) => time(2 ** v), title: "latency (each bucket is a fourth of a power of two)" },
    y: { title: "% of reads", format: short, unit: " %" },
    series: all.map((d, i) => {
      const total = pairs(d).reduce((sum, p) => sum + p[1], 0);
      const points = gapless(pairs(d)).map(([at, count]) => [at, (count / total) * 100]);
      return { name: settingName(run, d.s), k: i, dash: DASHES[Math.floor(i / 8) % 8], points, dots: false };
    }),
  }));
}

function requestSizes(host, run) {
  detailChart(host, run, (d) => d.sizes.length > 0, (all, name) => ({
    label: `Sizes of the requests that the device got for ${name}`, columns: true,
    x: { log: true, format: size, title: "up to this many KiB" },
    y: { title: "% of requests", format: short, unit: " %" },
    series: all.map((d, i) => {
      const total = d.sizes.reduce((sum, n) => sum + n, 0) || 1;
      return { name: settingName(run, d.s), k: i, dash: DASHES[Math.floor(i / 8) % 8], points: d.sizes.map((n, c) => [4 * 2 ** c, (n / total) * 100]) };
    }),
  }));
}

// Values of equal slots of time as points.
const slots = (of) => (d) => of(d).map((v, n) => [(n + 1) * d.slot_seconds, v]);

const LINES = [
  { name: "Data got", of: slots((d) => d.mib_s), y: { title: "MiB/s that the readers got", format: short, unit: " MiB/s" } },
  { name: "Requests of the readers", of: slots((d) => d.requests_s), y: { title: "requests a second", format: short, unit: "/s" } },
  { name: "Data from the device", of: slots((d) => d.device_mib_s), y: { title: "MiB/s from the device", format: short, unit: " MiB/s" } },
  { name: "Requests under way", of: slots((d) => d.queue), y: { title: "mean queue of the device", format: short } },
  { name: "Size of requests", of: slots((d) => d.device_request_kib), y: { title: "mean KiB of a request to the device", format: short, unit: " KiB" } },
];

// Other quantities over time: one line for each name.
function watched(run) {
  const units = new Map(run.details.flatMap((d) => d.series.map((s) => [s.name, s.unit])));
  return [...units].map(([name, unit]) => ({
    name: name.charAt(0).toUpperCase() + name.slice(1),
    of: (d) => d.series.filter((s) => s.name === name).flatMap((s) => s.points),
    y: { title: `${unit}, mean over the repeats`, format: unit === "KiB" ? size : short, unit: unit === "KiB" ? "" : ` ${unit}`, log: unit === "KiB" },
  }));
}

function timelines(host, run) {
  for (const line of [...watched(run), ...LINES]) {
    const known = (d) => line.of(d).filter((p) => p[1] !== null).length;
    if (!run.details.some((d) => known(d) > 1)) continue;
    // A series with a single value is a point among the lines of others.
    const has = (d) => known(d) > 0;
    const place = el("div", {});
    host.append(el("h3", {}, line.name), place);
    detailChart(place, run, has, (all, name) => ({
      label: `${line.name} over time, ${name}`, height: 240,
      x: { format: (v) => `${short(v)} s`, title: "seconds since the start of a trial, in the storage's own time" },
      y: line.y,
      series: all.map((d, i) => ({ name: settingName(run, d.s), k: i, dash: DASHES[Math.floor(i / 8) % 8], dots: known(d) < 3, points: line.of(d) })),
    }));
  }
}

function drift(host, run) {
  const t = run.trials;
  const points = (want) => t.order.map((_, i) => [t.started_s[i], t.relative[i]]).filter((p, i) => p[1] !== null && t.clean[i] === want);
  const blocks = (run.drift || []).map((b) => [b.at_s, b.relative, b.low, b.high]);
  const place = el("div", {});
  host.append(place);
  new Chart(place, {
    label: "Each trial relative to the median of its cell, over the run", height: 260,
    x: { format: (v) => `${short(v)} s`, title: "seconds since the run began" },
    y: { title: "throughput ÷ median of its cell", format: short, zero: false },
    series: [
      { name: "trials", k: 0, line: false, r: 2.2, points: points(1) },
      { name: "disturbed trials", k: 1, line: false, r: 3, points: points(0) },
      { name: "median of each block", k: 4, points: blocks, r: 4 },
    ],
    levels: [{ y: 1, label: "" }],
  });
}
