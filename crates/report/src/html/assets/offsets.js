// File offset against time: what was read, what was submitted, what was waited for, what was
// evicted.
const LAYERS = [
  { key: "windows", name: "submitted to be read", k: 0 },
  { key: "accesses", name: "read by the program", k: 2 },
  { key: "waits", name: "waits", k: 4 },
  { key: "evictions", name: "evicted", k: 5 },
];

// Steps of offsets are powers of two times 4 KiB.
function offsetSteps([from, to]) {
  let step = 4096;
  while ((to - from) / step > 7) step *= 2;
  const values = [];
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) values.push(v);
  return values;
}

class OffsetPlot {
  constructor(host, data, range) {
    this.data = data;
    this.hidden = new Set();
    this.note = el("p", { class: "small soft" }, "");
    const place = el("div", {});
    const names = data.files.map((f) => f.path.split("/").slice(-2).join("/"));
    this.legend = el("div", { class: "legend", role: "group", "aria-label": "What is drawn" });
    host.replaceChildren(el("div", { class: "tools" }, choice("File", names, (i) => this.show(i))), this.note, this.legend, place);
    this.file = data.files[0];
    this.plot = new TimePlot(place, range, this.config());
    this.show(0);
  }

  show(index) {
    this.file = this.data.files[index];
    const f = this.file;
    const every = f.every > 1 ? `; one of ${f.every} marks is drawn` : "";
    this.note.textContent = `${f.path}: ${bytes(f.size)}${every}`;
    this.legend.replaceChildren(...LAYERS.filter((l) => f[l.key].length).map((l) => this.toggle(l)));
    this.plot.set(this.config());
  }

  toggle(layer) {
    const swatch = el("i", { class: `swatch k${layer.k}` });
    const node = el("button", { type: "button", "aria-pressed": String(!this.hidden.has(layer.key)) }, swatch, layer.name);
    node.addEventListener("click", () => {
      if (!this.hidden.delete(layer.key)) this.hidden.add(layer.key);
      node.setAttribute("aria-pressed", String(!this.hidden.has(layer.key)));
      this.plot.draw();
    });
    return node;
  }

  // The part of the file with events.
  extent() {
    const f = this.file;
    const ends = [...f.accesses.map((a) => [a[2], a[2] + a[3]]), ...f.waits.map((w) => [w[2], w[2] + 4096])];
    const spans = ends.length ? ends : f.windows.map((w) => [w[1], w[1] + w[2]]);
    let low = Infinity, high = 0;
    for (const [a, b] of spans) { low = Math.min(low, a); high = Math.max(high, b); }
    if (!(high > low)) return [0, Math.max(4096, f.size)];
    const room = (high - low) * 0.03 + 4096;
    return [Math.max(0, low - room), high + room];
  }

  config() {
    return {
      label: `Offsets of ${this.file.path} over time`, height: 420, left: 84, y: this.extent(),
      ySteps: offsetSteps, yFormat: bytes, yTitle: "offset in the file",
      draw: (ctx, plot) => this.draw(ctx, plot), find: (plot, x, y) => this.find(plot, x, y),
    };
  }

  shown(key) { return this.hidden.has(key) ? [] : this.file[key]; }

  draw(ctx, plot) {
    const bar = (x, low, high, width) => {
      const [top, bottom] = [plot.yOf(high), plot.yOf(low)];
      ctx.fillRect(x, top, Math.max(1.5, width), Math.max(1.5, bottom - top));
    };
    ctx.fillStyle = css("--c0");
    ctx.globalAlpha = 0.35;
    for (const [t, offset, length] of this.shown("windows")) bar(plot.x(t) - 1.5, offset, offset + length, 3);
    ctx.globalAlpha = 0.55;
    ctx.fillStyle = css("--c5");
    for (const [t, offset, length] of this.shown("evictions")) bar(plot.x(t) - 1.5, offset, offset + length, 3);
    ctx.globalAlpha = 1;
    ctx.fillStyle = css("--c2");
    for (const [from, to, offset, length] of this.shown("accesses")) bar(plot.x(from), offset, offset + length, plot.x(to) - plot.x(from));
    ctx.fillStyle = css("--c4");
    for (const [t, length, offset] of this.shown("waits")) {
      const x = plot.x(t), y = plot.yOf(offset);
      ctx.fillRect(x, y - 1, Math.max(2, plot.x(t + length) - x), 2);
    }
  }

  // The event nearest to the pointer.
  find(plot, x, y) {
    let best = null, least = 8;
    const consider = (left, right, low, high, words) => {
      const dx = Math.max(left - x, x - right, 0);
      const dy = Math.max(plot.yOf(high) - y, y - plot.yOf(low), 0);
      const far = Math.hypot(dx, dy);
      if (far < least) { least = far; best = words; }
    };
    for (const [t, length, offset] of this.shown("waits")) {
      consider(plot.x(t), plot.x(t + length), offset, offset, () => [`waited ${time(length)}`, `at ${bytes(offset)} (${offset})`, `from ${time(t)}`]);
    }
    for (const [from, to, offset, length] of this.shown("accesses")) {
      consider(plot.x(from), plot.x(to), offset, offset + length, () => [`read ${bytes(length)}`, `at ${bytes(offset)} (${offset})`, `${time(from)} to ${time(to)}`]);
    }
    for (const [t, offset, length] of this.shown("windows")) {
      consider(plot.x(t), plot.x(t), offset, offset + length, () => [`submitted ${bytes(length)}`, `from ${bytes(offset)}`, `at ${time(t)}`]);
    }
    for (const [t, offset, length, advised] of this.shown("evictions")) {
      consider(plot.x(t), plot.x(t), offset, offset + length, () => [`evicted ${bytes(length)}`, advised ? "by the program's advice" : "by the kernel", `from ${bytes(offset)}`, `at ${time(t)}`]);
    }
    return best && best();
  }
}
