// Draws what the page has a place for. Places below the fold are drawn when they come into view,
// so that a large report opens at once.
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

function drawAll() {
  const runs = JSON.parse(byId("data").textContent).runs;
  const places = [...document.querySelectorAll("[data-draw]")];
  const watch = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) { watch.unobserve(one.target); drawPlace(one.target, runs); }
  }, { rootMargin: "600px" });
  for (const place of places) watch.observe(place);
  addEventListener("beforeprint", () => places.forEach((place) => drawPlace(place, runs)));
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
}

theme();
copyButtons();
drawAll();
document.documentElement.dataset.ready = "yes";
