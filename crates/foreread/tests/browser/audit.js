// What a person with a screen reader, a keyboard or weak eyes would stumble over. Gives sentences.
(() => {
  const problems = [];
  const say = (what, node) => problems.push(`${what}: ${(node && node.outerHTML || "").slice(0, 140)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (node) => node.checkVisibility({ visibilityProperty: true });

  if (!document.documentElement.lang) say("no language", document.documentElement);
  if (!document.title.trim()) say("no title");
  for (const name of ["main", "h1", "header.top", "footer"]) if (all(name).length !== 1) say(`not one ${name}`);
  if (!document.querySelector('meta[name="viewport"]')) say("no viewport");

  let level = 0;
  for (const heading of all("h1,h2,h3,h4").filter(shown)) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1 && level > 0) say(`heading jumps from ${level} to ${own}`, heading);
    if (!heading.textContent.trim()) say("empty heading", heading);
    level = own;
  }

  const seen = new Set();
  for (const node of all("[id]")) {
    if (seen.has(node.id)) say(`id ${node.id} twice`, node);
    seen.add(node.id);
  }
  for (const attribute of ["aria-labelledby", "aria-controls", "aria-describedby"]) {
    for (const node of all(`[${attribute}]`)) {
      for (const id of node.getAttribute(attribute).split(/\s+/)) if (!seen.has(id)) say(`${attribute} to nothing`, node);
    }
  }
  for (const link of all('a[href^="#"]')) if (!seen.has(link.hash.slice(1))) say("link to nothing", link);
  for (const node of all("[href],[src]")) {
    const to = node.getAttribute("href") || node.getAttribute("src");
    if (!to.startsWith("#") && !document.documentElement.dataset.served) say("link out of the page", node);
  }

  const name = (node) => (node.getAttribute("aria-label")
    || (node.getAttribute("aria-labelledby") || "").split(/\s+/).map((id) => id && seen.has(id) ? document.getElementById(id).textContent : "").join(" ")
    || [...(node.labels || [])].map((label) => label.textContent).join(" ")
    || node.textContent || "").trim();
  for (const node of all("button,a,input,select,summary,[tabindex],[role=region],[role=slider],[role=group],section")) {
    if (node.tagName !== "MAIN" && !name(node)) say("no name", node);
  }
  for (const node of all("svg")) {
    const image = node.getAttribute("role") === "img" && node.getAttribute("aria-label");
    if (!image && node.getAttribute("aria-hidden") !== "true") say("picture without words", node);
  }
  for (const node of all("[tabindex]")) if (node.tabIndex > 0) say("order of focus is changed", node);
  for (const table of all("table")) {
    if (!table.tHead) say("table without heads", table);
    for (const th of table.querySelectorAll("th")) if (!th.scope) say("th without scope", th);
  }
  for (const node of all("[aria-sort]")) if (node.tagName !== "TH") say("aria-sort on no heading", node);
  for (const node of all("[role=slider]")) {
    for (const a of ["aria-valuemin", "aria-valuemax", "aria-valuenow"]) if (!node.hasAttribute(a)) say(`slider without ${a}`, node);
  }
  for (const node of all("*")) {
    const style = getComputedStyle(node);
    const scrolls = /auto|scroll/.test(style.overflowX) && node.scrollWidth > node.clientWidth + 1;
    if (scrolls && shown(node) && node.tabIndex < 0) say("scrolls, but not by keyboard", node);
  }
  for (const child of document.body.children) {
    const landmark = ["HEADER", "MAIN", "FOOTER", "NAV", "SCRIPT"].includes(child.tagName) || child.classList.contains("skip");
    if (!landmark) say("outside of all landmarks", child);
  }

  // Contrast by WCAG 2.1: 4.5, or 3 for large letters.
  const numbers = (text) => text.match(/-?[\d.]+(e-?\d+)?%?/g).map(parseFloat);
  const colour = (text) => {
    if (text === "transparent" || text === "none") return [0, 0, 0, 0];
    const n = numbers(text.replace(/^color\(srgb/, ""));
    const scale = text.startsWith("color(srgb") ? 1 : 255;
    if (!/^(rgb|color\(srgb)/.test(text)) say(`colour ${text} is not understood`);
    return [n[0] / scale, n[1] / scale, n[2] / scale, n.length > 3 ? n[3] : 1];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const background = (node) => {
    const layers = [];
    for (let at = node; at instanceof Element; at = at.parentElement) {
      const own = colour(getComputedStyle(at).backgroundColor);
      layers.push(own);
      if (own[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [1, 1, 1, 1]);
  };
  const light = (c) => {
    const linear = c.slice(0, 3).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = new Set();
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !shown(node) || /SCRIPT|STYLE|NOSCRIPT|OPTION/.test(node.tagName)) continue;
    if (node.disabled || node.closest(".hidden-text")) continue;
    const style = getComputedStyle(node);
    const ground = background(node);
    const ink = over(colour(node instanceof SVGElement ? style.fill : style.color), ground);
    const pixels = parseFloat(style.fontSize);
    const large = pixels >= 24 || (pixels >= 18.66 && Number(style.fontWeight) >= 700);
    const found = contrast(ink, ground);
    const key = `${style.color} ${style.fill} ${ground}`;
    if (found < (large ? 3 : 4.5) && !told.has(key)) {
      told.add(key);
      say(`contrast ${found.toFixed(2)} of "${walker.currentNode.textContent.trim().slice(0, 30)}"`, node);
    }
  }
  // Lines of charts are graphics: 3 is enough.
  for (const line of all(".chart .series, .chart .dot").filter(shown)) {
    const style = getComputedStyle(line);
    const paint = line.classList.contains("dot") ? style.fill : style.stroke;
    const found = contrast(over(colour(paint), background(line)), background(line));
    if (found < 3 && !told.has(paint)) { told.add(paint); say(`contrast ${found.toFixed(2)} of a line`, line); }
  }
  return problems;
})()
