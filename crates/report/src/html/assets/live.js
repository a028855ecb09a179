// Updates a page while its run is being measured: polls the progress, and replaces what has changed
// without disturbing the part that the reader is using.
function live() {
  const state = document.documentElement.dataset.live;
  if (!state) return;
  let trials = null;
  const look = async () => {
    try {
      const now = await (await fetch(state)).json();
      const place = byId("progress");
      if (place) place.textContent = `${now.trials} trials so far, ${now.status}`;
      if (trials !== null && (now.trials !== trials || now.status !== "running")) await takeOver();
      trials = now.trials;
      if (now.status !== "running") return;
    } catch {
      // The server has exited or is busy: keep the page and try again.
    }
    setTimeout(look, 1000);
  };
  look();
}

async function takeOver() {
  const text = await (await fetch(location.pathname)).text();
  const fresh = new DOMParser().parseFromString(text, "text/html");
  byId("data").textContent = fresh.getElementById("data").textContent;
  const runs = JSON.parse(byId("data").textContent).runs;
  const busy = document.activeElement;
  for (const section of fresh.querySelectorAll("main > section[id]")) {
    const own = byId(section.id);
    const drawn = own && own.querySelector("[data-draw]");
    if (!own) {
      byId("content").append(document.importNode(section, true));
    } else if (drawn) {
      if (!drawn.dataset.drawn || drawn.contains(busy)) continue;
      delete drawn.dataset.drawn;
      drawPlace(drawn, runs);
    } else if (!own.contains(busy) && own.innerHTML !== section.innerHTML) {
      own.replaceChildren(...[...section.childNodes].map((node) => document.importNode(node, true)));
      own.querySelectorAll("table.sortable").forEach(sortable);
    }
  }
  copyButtons();
  watchPlaces(runs);
}
