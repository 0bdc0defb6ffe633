// Builds code from the coloured pieces of the service, with line numbers.

import { el, lines } from "./dom.js";

export function codeOf(spans, firstLine) {
  const text = el("code", {}, spans.map(([kind, piece, isMarked]) => {
    const span = kind ? el("span", { class: `t-${kind}` }, lines(piece)) : lines(piece);
    return isMarked ? el("mark", {}, span) : span;
  }));
  const count = text.textContent.split("\n").length;
  const numbers = Array.from({ length: count }, (_, index) => firstLine + index).join("\n");
  const body = el("div", { class: "code" },
    el("pre", { class: "numbers", "aria-hidden": "true" }, lines(numbers)),
    el("pre", { class: "text" }, text));
  return [body, count];
}

// Builds the buttons beside a place in the code: a link to the editor, if there is one, and "Copy".
export function waysTo(place, editor) {
  const copy = el("button", { type: "button", class: "plain copy", title: `Copy ${place}`, "aria-label": `Copy ${place}`, onclick: () => copyPlace(copy, place) }, "Copy");
  return [
    editor ? el("a", { class: "editor", href: editor, title: `Open ${place} in the editor`, "aria-label": `Open ${place} in the editor` }, "Open in editor") : null,
    copy];
}

async function copyPlace(button, place) {
  await navigator.clipboard.writeText(place);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1200);
}

// Builds a path with its last name in bold.
export function pathOf(path) {
  const slash = path.lastIndexOf("/") + 1;
  return el("bdi", {}, path.slice(0, slash), el("b", {}, path.slice(slash)));
}
