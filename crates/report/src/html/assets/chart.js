// The chart of all pages: series of points over an axis, with intervals, lines across,
// a cursor that follows the mouse or the arrow keys, a legend that hides series, and zoom.
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2"];

class Chart {
  // o: { label, x: {log, ticks?, format, title}, y: {title, format, zero, log}, series, marks }
  // a series: { name, k (colour), points: [[x, y, low, high]], dash, ring: [x…], thin, dots }
  constructor(host, o) {
    this.host = host;
    this.hidden = new Set();
    this.legend = el("div", { class: "legend", role: "group", "aria-label": "Series shown" });
    this.box = el("div", { class: "chart" });
    this.pad = el("div", {
      class: "pad", tabindex: 0, role: "slider", "aria-label": `${o.label}: cursor`,
      "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0, "aria-valuetext": "",
    });
    this.tip = el("div", { class: "tip", hidden: true });
    this.reset = el("button", { type: "button", hidden: true, onclick: () => this.zoom(null) },
      "Show all");
    this.pad.append(this.box);
    this.wrap = el("div", { class: "chart" }, this.pad, this.tip);
    host.replaceChildren(this.legend, this.wrap, el("div", { class: "tools" }, this.reset));
    this.listen();
    this.set(o);
    new ResizeObserver(() => this.draw()).observe(host);
  }

  set(o) {
    this.o = o;
    this.range = null;
    this.at = -1;
    this.drawLegend();
    this.draw();
  }

  shown() {
    return this.o.series.filter((s) => !this.hidden.has(s.name) && s.points.length > 0);
  }

  // If there are many series, a button shows the hidden ones.
  drawLegend(unfolded = false) {
    const button = (s) => {
      const shape = el("svg:svg", { class: `k${s.k % 8}`, viewBox: "0 0 30 12", "aria-hidden": "true" },
        el("svg:line", { class: "series", x1: 1, x2: 29, y1: 6, y2: 6, "stroke-dasharray": s.dash || "" }));
      const node = el("button", { type: "button", "aria-pressed": "true" }, shape, s.name);
      node.setAttribute("aria-pressed", String(!this.hidden.has(s.name)));
      node.addEventListener("click", () => {
        if (this.hidden.has(s.name)) this.hidden.delete(s.name);
        else this.hidden.add(s.name);
        node.setAttribute("aria-pressed", String(!this.hidden.has(s.name)));
        this.draw();
      });
      return node;
    };
    const all = this.o.series.filter((s) => s.points.length);
    const few = all.length > 8 && !unfolded ? all.filter((s) => !this.hidden.has(s.name)) : all;
    const more = all.length - few.length;
    const rest = more ? el("button", { type: "button", class: "more", onclick: () => {
      this.drawLegend(true);
      this.legend.querySelector("button").focus();
    } }, `${more} more`) : null;
    this.legend.replaceChildren(...few.map(button), ...(rest ? [rest] : []));
    this.legend.hidden = this.o.series.length < 2;
  }

  // The scales of the axes for the displayed series.
  scale() {
    const o = this.o;
    const fx = o.x.log ? (x) => Math.log2(Math.max(x, 2)) : (x) => x;
    const inside = (p) => !this.range || (fx(p[0]) >= this.range[0] && fx(p[0]) <= this.range[1]);
    const points = this.shown().flatMap((s) => s.points.filter((p) => p[1] !== null && inside(p)));
    const xs = points.map((p) => fx(p[0]));
    let [x0, x1] = this.range || [Math.min(...xs), Math.max(...xs)];
    if (!(x1 > x0)) [x0, x1] = [x0 - 1, x0 + 1];
    if (o.columns) [x0, x1] = [x0 - 0.5, x1 + 0.5];
    const ends = (p) => [p[1], p[2], p[3]].filter((v) => v !== undefined && v !== null && Number.isFinite(v));
    const ys = points.flatMap(ends);
    // Wide intervals of cells with few repeats would flatten the curves: they may exceed the
    // chart.
    const values = points.map((p) => p[1]);
    const [least, top] = [Math.min(...values), Math.max(...values)];
    const reach = (y) => (o.y.log ? Math.min(Math.max(y, least / 3), top * 3) : Math.min(y, top + Math.abs(top) * 0.6));
    ys.forEach((y, i) => { ys[i] = reach(y); });
    // A level far above all curves would flatten them: it is named at the top.
    const most = ys.length ? Math.max(...ys) : 0;
    for (const line of o.levels || []) if (line.y <= most * 2) ys.push(line.y);
    const logY = o.y.log && ys.every((y) => y > 0);
    const fy = logY ? (y) => Math.log10(y) : (y) => y;
    let [y0, y1] = [Math.min(...ys), Math.max(...ys)].map(fy);
    if (!logY && o.y.zero !== false) y0 = Math.min(0, y0);
    if (!(y1 > y0)) [y0, y1] = [y0 - 0.5, y1 + 0.5];
    y1 += (y1 - y0) * 0.06;
    if (logY) y0 -= (y1 - y0) * 0.04;
    const onAxis = (x) => fx(x) >= x0 - 1e-9 && fx(x) <= x1 + 1e-9;
    const width = Math.max(320, this.host.clientWidth || 800);
    const height = o.height || (width < 500 ? 260 : 340);
    const m = { left: 64, right: 30, top: 34, bottom: 58 };
    const sx = (x) => m.left + ((fx(x) - x0) / (x1 - x0)) * (width - m.left - m.right);
    const sy = (y) => height - m.bottom - ((fy(y) - y0) / (y1 - y0)) * (height - m.top - m.bottom);
    return { fx, fy, x0, x1, y0, y1, sx, sy, width, height, m, logY, inside, onAxis, any: points.length > 0 };
  }

  draw() {
    const g = this.g = this.scale();
    const svg = el("svg:svg", { viewBox: `0 0 ${g.width} ${g.height}`, role: "img", "aria-label": this.o.label });
    this.svg = svg;
    this.box.replaceChildren(svg);
    if (!g.any) {
      svg.append(el("svg:text", { x: g.width / 2, y: g.height / 2, "text-anchor": "middle" }, "nothing to show"));
      this.stops = [];
      return;
    }
    this.taken = [];
    this.drawAxes(g, svg);
    this.drawMarks(g, svg);
    for (const s of this.shown()) this.drawSeries(g, svg, s);
    this.stops = [...new Set(this.shown().flatMap((s) => s.points.filter((p) => g.inside(p)).map((p) => p[0])))]
      .sort((a, b) => a - b);
    this.pad.setAttribute("aria-valuemax", Math.max(0, this.stops.length - 1));
    this.cursor = el("svg:line", { class: "cursor", y1: g.m.top, y2: g.height - g.m.bottom, visibility: "hidden" });
    svg.append(this.cursor);
    if (this.at >= 0) this.point(Math.min(this.at, this.stops.length - 1));
  }

  drawAxes(g, svg) {
    const o = this.o;
    const bottom = g.height - g.m.bottom;
    for (const y of ticks(g.y0, g.y1, g.logY)) {
      svg.append(el("svg:line", { class: "grid", x1: g.m.left, x2: g.width - g.m.right, y1: g.sy(y), y2: g.sy(y) }),
        el("svg:text", { x: g.m.left - 8, y: g.sy(y) + 4, "text-anchor": "end" }, o.y.format(y)));
    }
    const labels = o.x.log ? octaves(g.x0, g.x1, (g.width - 90) / 52) : ticks(g.x0, g.x1, false);
    for (const x of labels) {
      const at = g.sx(x);
      svg.append(el("svg:line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 5 }),
        el("svg:text", { x: at, y: bottom + 18, "text-anchor": "middle" }, o.x.format(x)));
      if (o.x.second) {
        svg.append(el("svg:text", { x: at, y: bottom + 32, "text-anchor": "middle" }, o.x.second(x)));
      }
    }
    svg.append(el("svg:line", { class: "axis", x1: g.m.left, x2: g.width - g.m.right, y1: bottom, y2: bottom }),
      el("svg:text", { x: g.m.left, y: 14 }, o.y.title),
      el("svg:text", { x: g.width - g.m.right, y: g.height - 8, "text-anchor": "end" }, o.x.title));
  }

  drawMarks(g, svg) {
    let last = -99, row = 0;
    const marks = (this.o.marks || []).filter((mark) => g.onAxis(mark.x)).sort((a, b) => a.x - b.x);
    for (const mark of marks) {
      const at = g.sx(mark.x);
      row = at - last < 90 ? (row + 1) % 3 : 0;
      last = at;
      const end = at > g.width - 130;
      const half = 3.2 * mark.label.length;
      this.taken.push({ x: at + (end ? -4 - half : 4 + half), y: g.m.top + 10 + row * 13, half });
      svg.append(
        el("svg:line", { class: `mark mark-${mark.kind}`, x1: at, x2: at, y1: g.m.top, y2: g.height - g.m.bottom }),
        el("svg:text", { class: "marklabel", x: at + (end ? -4 : 4), y: g.m.top + 10 + row * 13, "text-anchor": end ? "end" : "start" }, mark.label));
    }
    this.drawLevels(g, svg);
    for (const one of this.o.rug || []) {
      if (!g.onAxis(one.x)) continue;
      const at = g.sx(one.x), bottom = g.height - g.m.bottom;
      svg.append(el("svg:line", { class: "rug", x1: at, x2: at, y1: bottom - 9, y2: bottom }, el("svg:title", {}, one.label)));
    }
  }

  // Whether a text that ends here would overlap another; if not, reserves the space.
  clash(end, y, text) {
    const half = 3.2 * text.length, x = end - half;
    if (this.taken.some((t) => Math.abs(t.x - x) < t.half + half && Math.abs(t.y - y) < 13)) return true;
    this.taken.push({ x, y, half });
    return false;
  }

  // Upper limits; those beyond the chart are named at its top.
  drawLevels(g, svg) {
    const [left, right] = [g.m.left, g.width - g.m.right];
    let above = 0;
    for (const level of [...(this.o.levels || [])].sort((a, b) => b.y - a.y)) {
      const y = g.sy(level.y);
      if (y < g.m.top - 1) {
        const text = `↑ ${level.label}: ${this.o.y.format(level.y)}${this.o.y.unit || ""}`;
        let at = g.m.top + 10 + 13 * above++;
        while (this.clash(right, at, text)) at += 13;
        svg.append(el("svg:text", { class: "marklabel", x: right, y: at, "text-anchor": "end" }, text));
        continue;
      }
      let at = y - 4;
      while (this.clash(right - 4, at, level.label)) at += 13;
      svg.append(
        el("svg:line", { class: "mark level", x1: left, x2: right, y1: y, y2: y }),
        el("svg:text", { class: "marklabel", x: right - 4, y: at, "text-anchor": "end" }, level.label));
    }
  }

  // Labels a point if there is space; otherwise the pointer shows the label.
  name(group, x, y, text) {
    const half = 3.5 * text.length;
    for (const [dx, dy] of [[0, -13], [0, 24], [14 + half, 4], [-14 - half, 4]]) {
      const [cx, cy] = [x + dx, y + dy];
      const clash = this.taken.some((t) => Math.abs(t.x - cx) < t.half + half && Math.abs(t.y - cy) < 13);
      if (clash || cx + half > this.g.width || cx - half < this.g.m.left || cy > this.g.height - this.g.m.bottom) continue;
      this.taken.push({ x: cx, y: cy, half });
      group.append(el("svg:text", { class: "marklabel", x: cx, y: cy, "text-anchor": "middle" }, text));
      return;
    }
  }

  // Columns of the displayed series, side by side over a logarithmic axis.
  drawColumns(g, group, s, points) {
    const shown = this.shown();
    const slot = (g.sx(4) - g.sx(2)) * 0.8;
    const width = slot / shown.length;
    for (const p of points.filter((one) => one[1] > 0)) {
      const x = g.sx(p[0]) - slot / 2 + shown.indexOf(s) * width;
      group.append(el("svg:rect", { class: "column", x, y: g.sy(p[1]), width: Math.max(1, width - 1), height: g.sy(0) - g.sy(p[1]) }));
    }
  }

  drawSeries(g, svg, s) {
    const group = el("svg:g", { class: `k${s.k % 8}` });
    const points = s.points.filter((p) => p[1] !== null && Number.isFinite(p[1]) && g.inside(p) && (!g.logY || p[1] > 0));
    const path = points.map((p, i) => `${i ? "L" : "M"}${g.sx(p[0]).toFixed(1)} ${g.sy(p[1]).toFixed(1)}`).join("");
    const bounded = points.filter((p) => Number.isFinite(p[2]) && Number.isFinite(p[3]) && p[2] !== null && p[3] !== null);
    const ceiling = g.logY ? 10 ** g.y1 : g.y1;
    const floor = g.logY ? 10 ** g.y0 : g.y0;
    const place = (v) => g.sy(Math.min(Math.max(v, floor), ceiling)).toFixed(1);
    if (s.band) {
      const up = bounded.map((p, i) => `${i ? "L" : "M"}${g.sx(p[0]).toFixed(1)} ${place(p[3])}`).join("");
      const down = [...bounded].reverse().map((p) => `L${g.sx(p[0]).toFixed(1)} ${place(p[2])}`).join("");
      if (bounded.length > 1) group.append(el("svg:path", { class: "band", d: `${up}${down}Z` }));
    } else if (points.length <= 400 && s.bars !== false) {
      for (const p of bounded) {
        group.append(el("svg:line", { class: "whisker", x1: g.sx(p[0]), x2: g.sx(p[0]), y1: place(p[2]), y2: place(p[3]) }));
      }
    }
    if (this.o.columns) {
      this.drawColumns(g, group, s, points);
      svg.append(group);
      return;
    }
    if (s.line !== false) {
      group.append(el("svg:path", { class: `series${s.thin ? " thin" : ""}`, d: path, "stroke-dasharray": s.dash || "" }));
    }
    if (s.dots !== false && points.length <= 2000) {
      for (const p of points) group.append(el("svg:circle", { class: "dot", cx: g.sx(p[0]), cy: g.sy(p[1]), r: s.r || 3.2 }));
    }
    for (const ring of s.rings || []) {
      const p = points.find((point) => point[0] === ring.x);
      if (!p) continue;
      if (ring.knee) {
        group.append(el("svg:rect", { class: "ring knee", x: g.sx(p[0]) - 6, y: g.sy(p[1]) - 6, width: 12, height: 12 }));
        continue;
      }
      group.append(el("svg:circle", { class: "ring", cx: g.sx(p[0]), cy: g.sy(p[1]), r: ring.big ? 9 : 6 }));
      if (ring.label) this.name(group, g.sx(p[0]), g.sy(p[1]), ring.label);
    }
    for (const p of points) if (p[5]) this.name(group, g.sx(p[0]), g.sy(p[1]), p[5]);
    svg.append(group);
  }

  // Moves the cursor to a stop and shows its values.
  point(index) {
    const g = this.g;
    if (!this.stops.length || index < 0) return;
    this.at = index;
    const x = this.stops[index];
    this.cursor.setAttribute("x1", g.sx(x));
    this.cursor.setAttribute("x2", g.sx(x));
    this.cursor.setAttribute("visibility", "visible");
    const rows = [];
    for (const s of this.shown()) {
      const p = s.points.find((point) => point[0] === x);
      if (!p || p[1] === null) continue;
      const bounded = Number.isFinite(p[2]) && Number.isFinite(p[3]) && p[2] !== null && p[3] !== null;
      const sure = bounded ? ` (${this.o.y.format(p[2])} to ${this.o.y.format(p[3])})` : "";
      const more = p[4] ? `, ${p[4]}` : "";
      rows.push([s, `${s.name}: ${this.o.y.format(p[1])}${this.o.y.unit || ""}${sure}${more}`]);
    }
    const head = (this.o.x.full || this.o.x.format)(x);
    this.tip.replaceChildren(el("b", {}, head),
      ...rows.map(([s, text]) => el("div", { class: `k${s.k % 8}` }, el("i"), text)));
    this.tip.hidden = false;
    const scale = this.box.clientWidth / g.width || 1;
    const left = g.sx(x) * scale;
    const flip = left > this.box.clientWidth * 0.6;
    this.tip.style.left = flip ? "auto" : `${left + 12}px`;
    this.tip.style.right = flip ? `${this.box.clientWidth - left + 12}px` : "auto";
    this.tip.style.top = `${g.m.top + 40}px`;
    this.pad.setAttribute("aria-valuenow", index);
    this.pad.setAttribute("aria-valuetext", [head, ...rows.map((row) => row[1])].join("; "));
  }

  leave() {
    this.tip.hidden = true;
    this.at = -1;
    if (this.cursor) this.cursor.setAttribute("visibility", "hidden");
  }

  zoom(range) {
    this.range = range;
    this.reset.hidden = !range;
    this.leave();
    this.draw();
  }

  // The position of the pointer on the axis.
  under(event) {
    const box = this.svg.getBoundingClientRect();
    const g = this.g;
    const px = ((event.clientX - box.left) / box.width) * g.width;
    return g.x0 + ((px - g.m.left) / (g.width - g.m.left - g.m.right)) * (g.x1 - g.x0);
  }

  nearest(value) {
    let best = 0;
    this.stops.forEach((x, i) => {
      if (Math.abs(this.g.fx(x) - value) < Math.abs(this.g.fx(this.stops[best]) - value)) best = i;
    });
    return best;
  }

  listen() {
    let from = null, zone = null;
    this.pad.addEventListener("pointerdown", (event) => { from = this.under(event); });
    this.pad.addEventListener("pointermove", (event) => {
      if (!this.stops.length) return;
      const here = this.under(event);
      if (from !== null && Math.abs(here - from) > (this.g.x1 - this.g.x0) * 0.02) {
        zone ??= this.svg.appendChild(el("svg:rect", { class: "zone", y: this.g.m.top, height: this.g.height - this.g.m.top - this.g.m.bottom }));
        const px = (v) => this.g.m.left + ((v - this.g.x0) / (this.g.x1 - this.g.x0)) * (this.g.width - this.g.m.left - this.g.m.right);
        zone.setAttribute("x", Math.min(px(from), px(here)));
        zone.setAttribute("width", Math.abs(px(here) - px(from)));
      } else {
        this.point(this.nearest(here));
      }
    });
    addEventListener("pointerup", (event) => {
      if (zone) {
        const ends = [from, this.under(event)].sort((a, b) => a - b);
        const caught = this.stops.filter((x) => this.g.fx(x) >= ends[0] && this.g.fx(x) <= ends[1]);
        zone.remove();
        if (caught.length > 1) this.zoom(ends);
      }
      from = zone = null;
    });
    this.pad.addEventListener("pointerleave", () => { if (!zone) this.leave(); });
    this.pad.addEventListener("focus", () => { if (this.at < 0 && this.pad.matches(":focus-visible")) this.point(0); });
    this.pad.addEventListener("blur", () => this.leave());
    this.pad.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const last = this.stops.length - 1;
    const moves = {
      ArrowRight: Math.min(this.at + 1, last), ArrowUp: Math.min(this.at + 1, last),
      ArrowLeft: Math.max(this.at - 1, 0), ArrowDown: Math.max(this.at - 1, 0), Home: 0, End: last,
    };
    if (event.key in moves) {
      this.point(moves[event.key]);
    } else if (event.key === "Escape" || event.key === "0") {
      this.zoom(null);
    } else if (event.key === "+" && this.at >= 0 && last >= 4) {
      const reach = Math.max(1, Math.floor(last / 4));
      const [a, b] = [Math.max(0, this.at - reach), Math.min(last, this.at + reach)];
      this.zoom([this.g.fx(this.stops[a]), this.g.fx(this.stops[b])]);
      this.point(Math.floor(this.stops.length / 2));
    } else {
      return;
    }
    event.preventDefault();
  }
}

// About five round numbers between two ends; powers of ten (and their halves) if logarithmic.
function ticks(low, high, log) {
  if (log) {
    const all = [];
    for (let e = Math.floor(low); e <= Math.ceil(high); e++) {
      for (const f of high - low > 3 ? [1] : [1, 2, 5]) {
        const v = Math.log10(f) + e;
        if (v >= low && v <= high) all.push(f * 10 ** e);
      }
    }
    return all;
  }
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
  const all = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) all.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return all;
}

function octaves(low, high, room) {
  const step = Math.max(1, Math.ceil((high - low) / Math.max(2, room)));
  const all = [];
  for (let e = Math.ceil(low - 1e-9); e <= high + 1e-9; e += step) all.push(2 ** e);
  return all;
}
