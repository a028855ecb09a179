// Draws the charts of the page. Those outside the window are drawn when they come into view, so
// that a large report opens immediately.
const DRAW = { curves: (host, runs) => curves(host, runs), tradeoff, latencies, sizes: requestSizes, timelines, drift, trials: trialsTable };

function drawPlace(place, runs) {
  if (place.dataset.drawn) return;
  place.dataset.drawn = "yes";
  place.replaceChildren();
  const which = place.dataset.run;
  const of = which === "all" ? runs : runs[Number(which)];
  const draw = DRAW[place.dataset.draw];
  draw(place, place.dataset.draw === "curves" && which !== "all" ? [of] : of);
}

const places = () => [...document.querySelectorAll("[data-draw]")];

function watchPlaces(runs) {
  const watch = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) { watch.unobserve(one.target); drawPlace(one.target, runs); }
  }, { rootMargin: "600px" });
  for (const place of places()) watch.observe(place);
}

function drawAll() {
  const runs = JSON.parse(byId("data").textContent).runs;
  watchPlaces(runs);
  addEventListener("beforeprint", () => {
    const now = JSON.parse(byId("data").textContent).runs;
    places().forEach((place) => drawPlace(place, now));
    // Print sections that are collapsed on the screen.
    const folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((one) => { one.open = true; });
    addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }), { once: true });
  });
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
}

theme();
copyButtons();
drawAll();
live();
document.documentElement.dataset.ready = "yes";
