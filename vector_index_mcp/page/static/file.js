// Shows the whole file of a hit, with the lines of the hit marked.

import { codeOf, pathOf, waysTo } from "./code.js";
import { Refused, ask, byId, decodedPath, el, encodedPath, number, plural } from "./dom.js";

const MUCH = 20; // more marked lines than this are scrolled to their beginning, not their middle

const view = byId("file");
let pending = null; // aborts the request under way

export const address = (path, first, last) => `#/file/${encodedPath(path)}?lines=${first}-${last}`;

export function start() {
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !view.hidden) location.hash = results();
  });
}

const results = () => document.querySelector('.tabs a[data-view="search"]').hash || "#/search";

export async function show(rest) {
  const [path, parameters = ""] = rest.split("?");
  const [first, last] = linesIn(new URLSearchParams(parameters).get("lines") || "");
  hide();
  const mine = (pending = new AbortController());
  view.setAttribute("aria-busy", "true");
  try {
    fill(await ask("file", { path: decodedPath(path), line: first || 1 }, mine.signal), first, last);
  } catch (error) {
    if (mine.signal.aborted) return;
    view.replaceChildren(back(), el("p", { class: "note" }, error instanceof Refused ? error.message : "The service did not answer."));
  } finally {
    if (pending === mine) view.removeAttribute("aria-busy");
  }
}

export function hide() {
  pending?.abort();
  view.replaceChildren();
}

function linesIn(text) {
  const [first, last] = text.split("-").map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : 0));
  return [first, Math.max(first, last || 0)];
}

const back = () => el("p", { class: "back" }, el("a", { href: results() }, "Back to the results"));

function fill(found, first, last) {
  const [body] = codeOf(found.spans, found.first_line);
  const title = el("h2", { class: "place", tabindex: "-1" }, pathOf(found.path));
  const from = Math.max(first, found.first_line);
  const count = Math.min(last, found.last_line) - from + 1;
  const band = first && count > 0 ? el("div", { class: "band", "--from": String(from - found.first_line), "--count": String(count) }) : null;
  if (band) body.prepend(band);
  view.replaceChildren(
    back(),
    el("div", { class: "result-head" },
      title,
      found.is_stale ? el("span", { class: "badge", title: "The file has changed since it was indexed; its line numbers may differ" }, "changed") : null,
      el("span", { class: "meta muted" }, factsOf(found, band && [from, from + count - 1])),
      waysTo(`${found.path}:${first || found.first_line}`, found.editor)),
    ...(found.is_cut ? [el("p", { class: "note" }, `The file is long: lines ${number(found.first_line)} to ${number(found.last_line)} are shown.`)] : []),
    body);
  title.focus({ preventScroll: true });
  if (band) band.scrollIntoView({ block: count > MUCH ? "start" : "center" });
  else scrollTo(0, 0);
}

function factsOf(found, marked) {
  const facts = [plural(found.lines, "line", "lines"), found.language];
  if (marked) facts.push(marked[0] === marked[1] ? `line ${marked[0]} is marked` : `lines ${marked.join("–")} are marked`);
  if (found.masked) facts.push(`${plural(found.masked, "credential", "credentials")} masked`);
  return facts.join(", ");
}
