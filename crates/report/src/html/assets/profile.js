// The waterfall: what threads wait for, and what devices do at the same time.
const BAR = 20;
const CLASSES = ["miss", "in flight", "direct I/O", "metadata", "write-back", "throttled", "advice", "swap"];
// The device's requests come after the classes of waits.
const KINDS = [4, 1, 3, 5, 6, 7, 2, 3];

function waterfall(host, data, range) {
  const { lanes } = data;
  const colour = (lane, what) => (lane.is_device ? (what.startsWith("read") ? 0 : 6) : KINDS[Math.max(0, CLASSES.indexOf(what))]);
  const seen = [...new Set(lanes.filter((l) => !l.is_device).flatMap((l) => l.bars.map((b) => b[2])))];
  const legend = el("div", { class: "legend small" }, ...seen.map((name) => key(KINDS[Math.max(0, CLASSES.indexOf(name))], `waits: ${name}`)),
    lanes.some((l) => l.is_device) ? key(0, "device reads") : null);
  const note = data.bars_left_out ? el("p", { class: "small soft" }, `The ${data.bars_left_out} shortest are left out.`) : null;
  const place = el("div", {});
  host.replaceChildren(legend, ...(note ? [note] : []), place);
  const top = (plot, i) => plot.area.top + i * BAR;
  const draw = (ctx, plot) => {
    const colours = Array.from({ length: 8 }, (_, i) => css(`--c${i}`));
    lanes.forEach((lane, i) => {
      for (const [start, length, what] of lane.bars) {
        const x = plot.x(start), width = plot.x(start + length) - x;
        if (x > plot.area.left + plot.area.width || x + width < plot.area.left) continue;
        ctx.fillStyle = colours[colour(lane, what)];
        ctx.fillRect(x, top(plot, i) + 3, Math.max(1, width), BAR - 6);
      }
    });
    ctx.restore();
    ctx.save();
    ctx.fillStyle = css("--ink");
    ctx.textAlign = "right";
    lanes.forEach((lane, i) => ctx.fillText(lane.name.slice(0, 22), plot.area.left - 6, top(plot, i) + 14));
  };
  const find = (plot, x, y) => {
    const lane = lanes[Math.floor((y - plot.area.top) / BAR)];
    if (!lane || y < plot.area.top) return null;
    let best = null, least = 6;
    for (const bar of lane.bars) {
      const far = Math.max(plot.x(bar[0]) - x, x - plot.x(bar[0] + bar[1]), 0);
      if (far < least) { least = far; best = bar; }
    }
    return best && [lane.is_device ? best[2] : `waits: ${best[2]}`, time(best[1]), `from ${time(best[0])}`];
  };
  new TimePlot(place, range, { label: "Waits of threads and requests of devices over time", height: lanes.length * BAR + 62, left: 150, y: null, draw, find });
}

function key(k, text) {
  return el("span", { class: "key" }, el("i", { class: `swatch k${k}` }), text);
}

function drawProfile() {
  const data = JSON.parse(byId("data").textContent);
  const range = new TimeRange(data.end_us);
  new FlameGraph(byId("flame-chart"), data);
  if (data.files.length) new OffsetPlot(byId("offsets-chart"), data, range);
  else byId("offsets-chart").textContent = "No file was read.";
  if (data.lanes.length) waterfall(byId("waterfall-chart"), data, range);
  else byId("waterfall-chart").textContent = "No thread waited, and no device had a request.";
  const redraw = () => range.plots.forEach((plot) => plot.draw());
  new MutationObserver(redraw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
}

theme();
copyButtons();
drawProfile();
document.documentElement.dataset.ready = "yes";
