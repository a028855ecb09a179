// Bytes with three significant digits.
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = count ? Math.max(0, Math.min(4, Math.floor(Math.log2(count) / 10))) : 0;
  return unit ? `${short(count / 1024 ** unit)} ${units[unit]}` : `${count} B`;
}

// The quantities that the width of a box can show: their index in a sample.
const QUANTITIES = [
  { name: "time waited", at: 2, format: time },
  { name: "time saved", at: 3, format: time },
  { name: "bytes read", at: 4, format: bytes },
  { name: "waits", at: 1, format: short },
];
const ROW = 22;

// Functions with the sums of their waits, the outermost at the top.
class FlameGraph {
  constructor(host, data) {
    this.data = data;
    this.quantity = 0;
    this.kernel = false;
    this.path = [];
    this.box = el("div", { class: "flame", role: "group", "aria-label": "Flame graph" });
    this.line = el("p", { class: "small soft" }, "");
    const back = el("button", { type: "button", onclick: () => this.zoom([]) }, "Show all");
    this.back = back;
    const tools = el("div", { class: "tools" },
      choice("Width", QUANTITIES.map((q) => q.name), (i) => { this.quantity = i; this.build(); }),
      choice("Kernel functions", ["hidden", "shown"], (i) => { this.kernel = i === 1; this.build(); }),
      back);
    host.replaceChildren(tools, this.line, this.box);
    this.build();
    new ResizeObserver(() => this.draw()).observe(host);
  }

  // The tree of the chosen quantity.
  build() {
    const { data } = this;
    const { at } = QUANTITIES[this.quantity];
    this.root = { name: -1, value: 0, rules: new Map(), below: new Map() };
    for (const sample of data.samples) {
      const value = sample[at];
      if (!value) continue;
      let node = this.root;
      this.add(node, value, sample[5]);
      for (const name of data.stacks[sample[0]]) {
        if (!this.kernel && data.names[name].kind === "kernel") continue;
        if (!node.below.has(name)) node.below.set(name, { name, value: 0, rules: new Map(), below: new Map() });
        node = node.below.get(name);
        this.add(node, value, sample[5]);
      }
    }
    this.zoom([]);
  }

  add(node, value, rule) {
    node.value += value;
    if (rule) node.rules.set(rule, (node.rules.get(rule) || 0) + value);
  }

  zoom(path) {
    this.path = path;
    this.back.hidden = !path.length;
    this.draw();
  }

  text(node) {
    const quantity = QUANTITIES[this.quantity];
    const share = `${short((node.value / this.root.value) * 100)} %`;
    const rules = [...node.rules].sort((a, b) => b[1] - a[1]).map((r) => r[0]).join(", ");
    return `${quantity.format(node.value)} (${share})${rules ? `, ${rules}` : ""}`;
  }

  draw() {
    const quantity = QUANTITIES[this.quantity];
    if (!this.root.value) {
      this.line.textContent = quantity.at === 3 ? "No diagnosis predicts that time is saved." : "Nothing was recorded.";
      this.box.replaceChildren();
      this.box.style.height = "0px";
      return;
    }
    this.line.textContent = `${quantity.name}: ${quantity.format(this.root.value)}`;
    const width = this.box.clientWidth || 800;
    const boxes = [];
    let depth = 0;
    const place = (node, path, left, own, row) => {
      if (own < 1.5) return;
      depth = Math.max(depth, row + 1);
      if (node !== this.root) boxes.push(this.boxOf(node, path, left, own, row - 1));
      let at = left;
      const below = [...node.below.values()].sort((a, b) => b.value - a.value);
      const scale = own / node.value;
      for (const child of below) {
        place(child, [...path, child.name], at, child.value * scale, row + 1);
        at += child.value * scale;
      }
    };
    // Boxes above the chosen one have the full width.
    let top = this.root, row = 0;
    this.path.forEach((name, i) => {
      top = top.below.get(name);
      if (i < this.path.length - 1) boxes.push(this.boxOf(top, this.path.slice(0, i + 1), 0, width, row++));
    });
    place(top, this.path, 0, width, this.path.length ? row + 1 : 0);
    this.box.replaceChildren(...boxes);
    this.box.style.height = `${(depth - 1) * ROW}px`;
  }

  boxOf(node, path, left, width, row) {
    const name = this.data.names[node.name];
    const words = this.text(node);
    const node_ = el("button", { type: "button", class: `frame ${name.kind}${width > 24 ? "" : " narrow"}`, title: `${name.text}\n${words}\n${name.detail}`,
      "aria-label": `${name.text}: ${words}`, onclick: () => this.zoom(path) }, width > 24 ? name.text : "");
    node_.style.left = `${left}px`;
    node_.style.top = `${row * ROW}px`;
    node_.style.width = `${Math.max(1, width - 1)}px`;
    return node_;
  }
}
