// Charts over time with many marks, on canvases that share a range of time.
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Round values between two limits, about this many.
function steps(from, to, count) {
  const raw = (to - from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || power;
  const values = [];
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) values.push(v);
  return values;
}

// The displayed range of time.
class TimeRange {
  constructor(end) {
    this.all = [0, Math.max(1, end)];
    this.now = this.all;
    this.plots = [];
  }

  set(from, to) {
    const [low, high] = this.all;
    const width = Math.min(high - low, Math.max(to - from, (high - low) / 1e5));
    const start = Math.min(Math.max(from, low), high - width);
    this.now = [start, start + width];
    this.plots.forEach((plot) => plot.draw());
  }
}

class TimePlot {
  // o: { label, height, left, y: [from, to] in units or null, yFormat, yTitle, draw(ctx, plot), find(plot, x, y) }
  constructor(host, range, o) {
    this.range = range;
    this.canvas = el("canvas", { role: "img", "aria-label": o.label });
    this.tip = el("div", { class: "tip", hidden: true });
    this.mark = el("div", { class: "selection", hidden: true });
    this.pad = el("div", { class: "timeplot", tabindex: 0, role: "group", "aria-label": `${o.label}: + and - zoom, arrows move, 0 shows all` }, this.canvas, this.mark);
    this.reset = el("button", { type: "button", onclick: () => this.showAll() }, "Show all");
    host.replaceChildren(el("div", { class: "chart" }, this.pad, this.tip), el("div", { class: "tools" }, this.reset));
    range.plots.push(this);
    this.listen();
    this.set(o);
    new ResizeObserver(() => this.draw()).observe(host);
  }

  set(o) {
    this.o = o;
    this.y = o.y;
    this.canvas.setAttribute("aria-label", o.label);
    this.draw();
  }

  showAll() {
    this.y = this.o.y;
    this.range.set(...this.range.all);
  }

  x(t) { return this.area.left + ((t - this.range.now[0]) / (this.range.now[1] - this.range.now[0])) * this.area.width; }

  yOf(v) { return this.area.top + this.area.height - ((v - this.y[0]) / (this.y[1] - this.y[0])) * this.area.height; }

  timeAt(x) { return this.range.now[0] + ((x - this.area.left) / this.area.width) * (this.range.now[1] - this.range.now[0]); }

  valueAt(y) { return this.y[0] + ((this.area.top + this.area.height - y) / this.area.height) * (this.y[1] - this.y[0]); }

  draw() {
    const { o, canvas } = this;
    const width = Math.max(280, this.pad.clientWidth || 800);
    const dots = window.devicePixelRatio || 1;
    canvas.width = width * dots;
    canvas.height = o.height * dots;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${o.height}px`;
    const left = Math.min(o.left, width / 3);
    this.area = { left, top: 22, width: width - left - 16, height: o.height - 62 };
    this.reset.disabled = this.range.now[1] - this.range.now[0] === this.range.all[1] - this.range.all[0] && this.y === o.y;
    const ctx = canvas.getContext("2d");
    ctx.setTransform(dots, 0, 0, dots, 0, 0);
    ctx.font = "12px system-ui, sans-serif";
    this.axes(ctx);
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.area.left, this.area.top, this.area.width, this.area.height);
    ctx.clip();
    o.draw(ctx, this);
    ctx.restore();
    this.tip.hidden = true;
  }

  axes(ctx) {
    const { area, o } = this;
    const bottom = area.top + area.height;
    ctx.strokeStyle = css("--line");
    ctx.fillStyle = css("--soft");
    ctx.lineWidth = 1;
    ctx.beginPath();
    if (this.y) {
      ctx.textAlign = "right";
      for (const v of o.ySteps(this.y)) {
        const y = Math.round(this.yOf(v)) + 0.5;
        ctx.moveTo(area.left, y);
        ctx.lineTo(area.left + area.width, y);
        ctx.fillText(o.yFormat(v), area.left - 6, y + 4);
      }
      ctx.textAlign = "left";
      ctx.fillText(o.yTitle, 2, 12);
    }
    ctx.textAlign = "center";
    for (const t of steps(...this.range.now, area.width / 110)) {
      const x = Math.round(this.x(t)) + 0.5;
      ctx.moveTo(x, area.top);
      ctx.lineTo(x, bottom + 4);
      ctx.fillText(time(t), x, bottom + 18);
    }
    ctx.stroke();
    ctx.textAlign = "right";
    ctx.fillText("time since the start", area.left + area.width, bottom + 35);
  }

  // Zooms around a position, on both axes if the chart has two.
  scale(factor, t, v) {
    const [from, to] = this.range.now;
    if (this.y && v !== null) {
      const [low, high] = this.y;
      const next = [v - (v - low) * factor, v + (high - v) * factor];
      this.y = factor > 1 && next[1] - next[0] >= this.o.y[1] - this.o.y[0] ? this.o.y : next;
    }
    this.range.set(t - (t - from) * factor, t + (to - t) * factor);
  }

  move(share, up) {
    const [from, to] = this.range.now;
    if (this.y && up) {
      const by = (this.y[1] - this.y[0]) * up;
      this.y = [this.y[0] + by, this.y[1] + by];
    }
    this.range.set(from + (to - from) * share, to + (to - from) * share);
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  listen() {
    let start = null;
    this.pad.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      start = this.place(event);
      this.pad.setPointerCapture(event.pointerId);
    });
    this.pad.addEventListener("pointermove", (event) => {
      const at = this.place(event);
      if (start) this.select(start, at); else this.point(at);
    });
    this.pad.addEventListener("pointerup", (event) => {
      const end = this.place(event);
      if (start) this.chosen(start, end);
      start = null;
      this.mark.hidden = true;
    });
    this.pad.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.pad.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const [x, y] = this.place(event);
      this.scale(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(x), this.y && this.valueAt(y));
    }, { passive: false });
    this.pad.addEventListener("keydown", (event) => {
      const middle = [(this.range.now[0] + this.range.now[1]) / 2, this.y && (this.y[0] + this.y[1]) / 2];
      const keys = {
        "+": () => this.scale(0.5, ...middle), "-": () => this.scale(2, ...middle), 0: () => this.showAll(),
        ArrowLeft: () => this.move(-0.2, 0), ArrowRight: () => this.move(0.2, 0),
        ArrowUp: () => this.move(0, 0.2), ArrowDown: () => this.move(0, -0.2),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  // The selection frame: the full height if the pointer hardly moved vertically.
  frame(a, b) {
    const tall = !this.y || Math.abs(a[1] - b[1]) < 12;
    const [top, bottom] = tall ? [this.area.top, this.area.top + this.area.height] : [Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    return { left: Math.min(a[0], b[0]), right: Math.max(a[0], b[0]), top, bottom, tall };
  }

  select(a, b) {
    const f = this.frame(a, b);
    this.mark.hidden = f.right - f.left < 4;
    this.mark.style.left = `${f.left}px`;
    this.mark.style.top = `${f.top}px`;
    this.mark.style.width = `${f.right - f.left}px`;
    this.mark.style.height = `${f.bottom - f.top}px`;
    this.tip.hidden = true;
  }

  chosen(a, b) {
    const f = this.frame(a, b);
    if (f.right - f.left < 4) return;
    if (!f.tall) this.y = [this.valueAt(f.bottom), this.valueAt(f.top)];
    this.range.set(this.timeAt(f.left), this.timeAt(f.right));
  }

  point(at) {
    const found = this.o.find(this, ...at);
    this.tip.hidden = !found;
    if (!found) return;
    const [head, ...rest] = found;
    this.tip.replaceChildren(el("b", {}, head), ...rest.map((text) => el("div", {}, text)));
    const flip = at[0] > this.pad.clientWidth * 0.6;
    this.tip.style.left = flip ? "auto" : `${at[0] + 14}px`;
    this.tip.style.right = flip ? `${this.pad.clientWidth - at[0] + 14}px` : "auto";
    this.tip.style.top = `${at[1] + 14}px`;
  }
}
