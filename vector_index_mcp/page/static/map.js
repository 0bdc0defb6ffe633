// The map of a folder: as areas, and as a table for those who prefer to read.

import { Refused, ask, byId, el, encodedPath, number, percent, plural, visible } from "./dom.js";

const REFRESH_MS = 2000; // the map is refreshed at most this often while the index changes
const HEADER_PX = 22; // the height of a folder's name above its contents
const GAP_PX = 2;
const LEAST_LABEL_PX = 34;

const tree = byId("tree");
const tip = byId("tip");

let folder = "";
let data = null;
let isShown = false;
let timer = 0;
let revision = null;
const partOf = new WeakMap(); // the part that each tile shows

export function start() {
  new ResizeObserver(draw).observe(tree);
  tree.addEventListener("pointermove", moveTip);
  tree.addEventListener("pointerleave", () => { tip.hidden = true; });
}

export async function show(wanted) {
  isShown = true;
  folder = wanted;
  tip.hidden = true;
  try {
    const answer = await ask("map", { folder: wanted });
    if (wanted !== folder) return;
    data = answer;
  } catch (error) {
    if (wanted !== folder) return;
    if (!(error instanceof Refused)) return; // the service is gone; page.js shows that
    data = null;
    byId("crumbs").replaceChildren(visible(error.message));
  }
  draw();
  fillTable();
}

export function hide() {
  isShown = false;
  tip.hidden = true;
}

export function onStatus(status, projectName) {
  byId("crumbs").dataset.project = projectName;
  const now = `${status.indexed_chunk_count} ${status.embedded_chunk_count} ${Object.values(status.skipped)}`;
  if (now === revision) return;
  revision = now;
  if (isShown && !timer) {
    timer = setTimeout(() => { timer = 0; if (isShown) show(folder); }, REFRESH_MS);
  }
}

const missing = (part) => Object.values(part.missing).reduce((sum, count) => sum + count, 0);
const weight = (part) => part.chunks + missing(part);
const join = (name) => (folder ? `${folder}/${name}` : name);
export const address = (path) => `#/map/${encodedPath(path)}`;

// -- areas ---------------------------------------------------------------------------------------

function draw() {
  tree.replaceChildren();
  if (!data || !isShown || !tree.clientWidth) return;
  if (!weight(data)) {
    tree.append(el("p", { class: "empty" }, "Nothing is indexed in this folder."));
    return;
  }
  const whole = { x: 0, y: 0, width: tree.clientWidth, height: tree.clientHeight };
  for (const [part, area] of squarified(data.parts, whole)) {
    const path = part.kind === "rest" ? null : join(part.name);
    const tile = tileOf(part, area, path);
    tree.append(tile);
    const inner = { x: area.x + 3, y: area.y + HEADER_PX, width: area.width - 6, height: area.height - HEADER_PX - 3 };
    if (part.parts.length && inner.width > LEAST_LABEL_PX && inner.height > HEADER_PX) {
      tile.classList.add("tile-folder");
      for (const [child, place] of squarified(part.parts, inner)) {
        tree.append(tileOf(child, place, child.kind === "rest" ? null : `${path}/${child.name}`));
      }
    }
  }
}

function tileOf(part, area, path) {
  const width = Math.max(0, area.width - GAP_PX);
  const height = Math.max(0, area.height - GAP_PX);
  const tile = el("div", {
    class: "tile",
    "--share": String(part.chunks ? percent(part.vectors, part.chunks) : 0),
    "--missing": `${weight(part) ? (100 * missing(part)) / weight(part) : 0}%`,
    "--x": `${area.x}px`, "--y": `${area.y}px`, "--width": `${width}px`, "--height": `${height}px`,
  });
  if (width > LEAST_LABEL_PX && height > 15) tile.append(el("span", {}, part.name));
  if (part.kind === "folder" && path) {
    tile.classList.add("tile-enter");
    tile.addEventListener("click", () => { location.hash = address(path); });
  }
  partOf.set(tile, part);
  return tile;
}

// Divides an area into rows of areas that are as square as possible: Bruls, Huizing, van Wijk,
// Squarified Treemaps (2000).
function squarified(parts, area) {
  const total = parts.reduce((sum, part) => sum + weight(part), 0);
  const scale = total ? (area.width * area.height) / total : 0;
  const left = parts.map((part) => ({ part, size: weight(part) * scale })).filter(({ size }) => size > 0);
  const placed = [];
  let { x, y, width, height } = area;
  while (left.length) {
    const side = Math.min(width, height);
    const row = [left.shift()];
    while (left.length && worst([...row, left[0]], side) <= worst(row, side)) row.push(left.shift());
    const depth = row.reduce((sum, { size }) => sum + size, 0) / side;
    let offset = 0;
    for (const { part, size } of row) {
      const length = size / depth;
      placed.push([part, width >= height
        ? { x, y: y + offset, width: depth, height: length }
        : { x: x + offset, y, width: length, height: depth }]);
      offset += length;
    }
    if (width >= height) { x += depth; width -= depth; } else { y += depth; height -= depth; }
  }
  return placed;
}

function worst(row, side) {
  const sum = row.reduce((total, { size }) => total + size, 0);
  const depth = sum / side;
  return Math.max(...row.map(({ size }) => Math.max(depth / (size / depth), size / depth / depth)));
}

function moveTip(event) {
  const part = partOf.get(event.target.closest(".tile"));
  tip.hidden = !part;
  if (!part) return;
  tip.replaceChildren(
    el("b", {}, part.name),
    el("p", {}, counts(part)),
    ...Object.entries(part.missing).map(([reason, count]) => el("p", { class: "tip-missing" }, part.kind === "file" ? `not indexed: ${reason}` : `${number(count)} not indexed: ${reason}`)));
  const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
  tip.style.setProperty("--x", `${Math.max(8, x)}px`);
  tip.style.setProperty("--y", `${below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 10}px`);
}

function counts(part) {
  const files = part.kind === "file" ? "" : `${plural(part.files, "file", "files")}, `;
  const share = part.chunks ? `, ${percent(part.vectors, part.chunks)} % found by meaning` : "";
  return `${files}${plural(part.chunks, "chunk", "chunks")}${share}`;
}

// -- table ---------------------------------------------------------------------------------------

function fillTable() {
  if (!data) return;
  const names = folder ? folder.split("/") : [];
  const crumbs = [el("a", { href: address("") }, byId("crumbs").dataset.project || "project")];
  names.forEach((name, index) => {
    const path = names.slice(0, index + 1).join("/");
    crumbs.push(el("span", { class: "muted" }, "/"), el("a", { href: address(path) }, name));
  });
  crumbs.at(-1).setAttribute("aria-current", "page");
  byId("crumbs").replaceChildren(...crumbs, el("span", { class: "muted crumbs-counts" }, counts(data)));
  byId("parts").replaceChildren(...data.parts.map(rowOf));
}

function rowOf(part) {
  const share = part.chunks ? percent(part.vectors, part.chunks) : null;
  const reasons = Object.entries(part.missing).map(([reason, count]) => (part.kind === "file" ? reason : `${number(count)} ${reason}`));
  const name = part.kind === "folder" ? el("a", { href: address(join(part.name)) }, el("bdi", {}, `${part.name}/`)) : el("bdi", {}, part.name);
  return el("tr", {},
    el("th", { scope: "row" }, name),
    el("td", { class: "count" }, number(part.chunks)),
    el("td", { class: "count" }, share === null ? "–" : `${share} %`),
    el("td", { class: "reasons" }, reasons.join(", ")));
}
