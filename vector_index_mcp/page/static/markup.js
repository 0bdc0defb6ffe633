// Builds elements from the tree that the service makes of Markdown, and lines with marked words.

import { el, lines } from "./dom.js";

const BLOCKS = ["ul", "ol", "li", "blockquote", "p", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "br",
  "em", "strong", "s", "code", "table", "thead", "tbody", "tr", "th", "td", "span"];

// `addressOf` returns the address of a link from a document's key and the name of a heading in it.
export function built(nodes, addressOf) {
  return nodes.map((node) => {
    if (typeof node === "string") return node;
    const common = { "data-line": node.line, "data-name": node.name };
    if (node.tag === "pre") {
      const spans = node.spans.map(([kind, piece]) => (kind ? el("span", { class: `t-${kind}` }, lines(piece)) : lines(piece)));
      return el("pre", { ...common, class: node.kind, tabindex: "0" }, spans);
    }
    const children = built(node.children || [], addressOf);
    if (node.tag === "a") return linkOf(node, children, addressOf);
    if (!BLOCKS.includes(node.tag)) return el("span", {}, children);
    const made = el(node.tag, { ...common, class: node.kind || (node.align ? `align-${node.align}` : null), start: node.start }, children);
    return node.tag === "table" ? el("div", { class: "frame" }, made) : made;
  });
}

function linkOf(node, children, addressOf) {
  if (node.href) return el("a", { href: node.href, rel: "noopener noreferrer", target: "_blank" }, children);
  return el("a", { href: addressOf(node.key, node.fragment) }, children);
}

// Removes the first heading if it repeats the title that is shown above it.
export function withoutTitle(nodes, title) {
  const [first, ...rest] = nodes;
  const isTitle = first?.tag === "h1" && first.children.length === 1 && first.children[0] === title;
  return isTitle ? rest : nodes;
}

// Scrolls to the heading or the line in `values`, else to the top.
export function goTo(body, values) {
  const blocks = [...body.querySelectorAll("[data-line]")];
  const line = Number(values.line || 0);
  const meant = values.heading
    ? blocks.find((block) => block.dataset.name === values.heading)
    : blocks.filter((block) => Number(block.dataset.line) <= line && block.tagName !== "UL" && block.tagName !== "OL").at(-1);
  if (!meant || (!values.heading && meant === blocks[0])) {
    scrollTo(0, 0);
    return;
  }
  meant.classList.add("meant");
  meant.scrollIntoView({ block: values.heading ? "start" : "center" });
}

// Builds a line from its pieces, each with 1 if it matches the query.
export const marked = (pieces) => pieces.map(([piece, isMarked]) => (isMarked ? el("mark", {}, lines(piece)) : lines(piece)));

export function asParameters(values) {
  const given = Object.entries(values || {}).filter(([, value]) => String(value || "").trim());
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
