// Search as you type: the form, the results and the keys that walk through them.

import { Refused, ask, byId, el, lines, number, plural, visible } from "./dom.js";

const TYPING_MS = 120; // a pause after which somebody may want to see results
const FOLDED_LINES = 14;

const query = byId("query");
const path = byId("path");
const language = byId("language");
const results = byId("results");
const summary = byId("summary");
const note = byId("note");
const empty = byId("empty");

let status = null;
let shown = null; // the answer on the screen
let pending = null; // aborts the question that is on its way
let timer = 0;
let onAsked = () => {};

export function start(whenAsked) {
  onAsked = whenAsked;
  for (const field of [query, path, language]) {
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(run, TYPING_MS);
    });
  }
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    run();
  });
  document.addEventListener("keydown", onKey);
  showEmpty();
}

export const values = () => ({ query: query.value, path: path.value, language: language.value });

// Fill the form in and ask, unless that is what is asked already.
export function take(wanted) {
  const now = values();
  const isSame = Object.keys(now).every((name) => now[name] === (wanted[name] || ""));
  query.value = wanted.query || "";
  path.value = wanted.path || "";
  language.value = wanted.language || "";
  if (!isSame) run();
}

export function onStatus(news) {
  const isReady = news.model.state === "ready" && status?.model.state !== "ready";
  const isIndexed = !news.current_run && status?.current_run;
  status = news;
  if (shown?.note && (isReady || isIndexed)) answer(values()); // what limited it is over
  else if (!query.value.trim()) showEmpty();
}

function run() {
  const wanted = values();
  onAsked(wanted);
  answer(wanted);
}

async function answer(wanted) {
  if (pending) pending.abort();
  pending = null;
  if (!wanted.query.trim()) {
    shown = null;
    showEmpty();
    return;
  }
  const mine = (pending = new AbortController());
  results.setAttribute("aria-busy", "true");
  try {
    show(await ask("search", wanted, mine.signal), wanted);
  } catch (error) {
    if (mine.signal.aborted) return;
    if (error instanceof Refused) {
      clear(error.message);
    } else {
      summary.textContent = "The service did not answer.";
    }
  } finally {
    if (pending === mine) results.removeAttribute("aria-busy");
  }
}

// -- what is shown -------------------------------------------------------------------------------

function clear(words) {
  shown = null;
  results.replaceChildren();
  empty.replaceChildren();
  note.hidden = true;
  summary.textContent = visible(words);
}

function show(found, wanted) {
  clear("");
  shown = found;
  const way = found.mode === "hybrid" ? "by words and by meaning" : "by words only";
  summary.textContent = `${plural(found.results.length, "result", "results")}, ${way}, ${number(Math.ceil(found.seconds * 1000))} ms`;
  note.hidden = !found.note;
  note.textContent = visible(found.note || "");
  if (!found.results.length) showNothingFound(wanted, found.note);
  results.append(...found.results.map((hit) => resultOf(hit, found.words)));
}

function showEmpty() {
  if (query.value.trim()) return;
  clear("");
  if (status && !status.indexed_chunk_count) {
    empty.append(el("h2", {}, "Nothing is indexed yet"), el("p", {}, reasonForNothing()));
    return;
  }
  const key = (name) => el("kbd", {}, name);
  empty.append(
    el("h2", {}, "Search by meaning and by identifier"),
    el("p", {}, "Describe what the code does, or write a name in any spelling. Results come as you type; the best place is first."),
    el("ul", { class: "keys" },
      el("li", {}, key("/"), " to the search field"),
      el("li", {}, key("↑"), key("↓"), " from result to result"),
      el("li", {}, key("Enter"), " to unfold one"),
      el("li", {}, key("c"), " to copy its path and lines")),
  );
}

function reasonForNothing() {
  if (status.error_message) return status.error_message;
  if (status.current_run || status.status !== "WATCHING") {
    return "The project is being read. Text can be found within seconds; this page notices by itself.";
  }
  const reasons = Object.entries(status.skipped).map(([reason, count]) => `${number(count)} ${reason}`);
  const skipped = reasons.length ? ` Skipped: ${reasons.join(", ")}.` : "";
  return `No file of this project has text to index.${skipped} Files that git ignores are left out; whatever you save is indexed at once.`;
}

function showNothingFound(wanted, isLimited) {
  const advice = isLimited ? "Not everything could be searched; the note says why." : "Try other words, or fewer.";
  empty.append(el("h2", {}, isLimited ? "Nothing found so far" : "Nothing found"), el("p", {}, advice));
  if (wanted.path || wanted.language) {
    const button = el("button", { type: "button", class: "plain", onclick: () => take({ query: wanted.query }) }, "Search all files");
    empty.append(button);
  }
}

function resultOf(hit, wanted) {
  const place = `${hit.file_path}:${hit.start_line}-${hit.end_line}`;
  const slash = hit.file_path.lastIndexOf("/") + 1;
  const copy = el("button", { type: "button", class: "plain copy", title: `Copy ${place}`, "aria-label": `Copy ${place}`, onclick: () => copyPlace(copy, place) }, "Copy");
  const code = codeOf(hit);
  return el("li", { class: "result", tabindex: "-1", "aria-label": place },
    el("div", { class: "result-head" },
      el("h3", { class: "place" },
        el("bdi", {}, hit.file_path.slice(0, slash), el("b", {}, hit.file_path.slice(slash))),
        el("span", { class: "lines" }, `:${hit.start_line}–${hit.end_line}`)),
      hit.is_stale && el("span", { class: "badge", title: "The file has changed since; it is being indexed anew" }, "changed"),
      el("span", { class: "meta muted" }, `${hit.language}  ${hit.score.toFixed(2)}`),
      copy),
    hit.scope && el("p", { class: "scope muted" }, hit.scope),
    code,
    matchesOf(hit, wanted));
}

function matchesOf(hit, wanted) {
  if (!hit.matched.length) return el("p", { class: "matches muted" }, "found by meaning alone");
  const others = wanted.length - hit.matched.length;
  const rest = others ? ` ${others} of ${wanted.length} words not in it` : "";
  return el("p", { class: "matches muted" }, hit.matched.map((word) => el("mark", {}, word)), rest);
}

function codeOf(hit) {
  const text = el("code", {}, hit.spans.map(([kind, piece, isMarked]) => {
    const span = kind ? el("span", { class: `t-${kind}` }, lines(piece)) : lines(piece);
    return isMarked ? el("mark", {}, span) : span;
  }));
  const count = text.textContent.split("\n").length;
  const numbers = Array.from({ length: count }, (_, index) => hit.start_line + index).join("\n");
  const body = el("div", { class: "code" },
    el("pre", { class: "numbers", "aria-hidden": "true" }, lines(numbers)),
    el("pre", { class: "text", tabindex: "-1" }, text));
  if (count <= FOLDED_LINES) return body;
  body.classList.add("folded");
  const unfold = el("button", { type: "button", class: "plain unfold", "aria-expanded": "false", onclick: () => {
    const isFolded = body.classList.toggle("folded");
    unfold.setAttribute("aria-expanded", String(!isFolded));
    unfold.textContent = isFolded ? `Show all ${count} lines` : "Show fewer";
  } }, `Show all ${count} lines`);
  return el("div", {}, body, unfold);
}

async function copyPlace(button, place) {
  await navigator.clipboard.writeText(place);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1200);
}

// -- keys ----------------------------------------------------------------------------------------

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isWriting = event.target.closest("input") !== null;
  const current = event.target.closest(".result");
  if (event.key === "/" && !isWriting) {
    location.hash = "#/search";
    query.focus();
    query.select();
  } else if (event.key === "Escape" && current) {
    query.focus();
  } else if (event.key === "ArrowDown" && (event.target === query || current)) {
    focusResult(current ? current.nextElementSibling : results.firstElementChild);
  } else if (event.key === "ArrowUp" && current) {
    if (current.previousElementSibling) focusResult(current.previousElementSibling);
    else query.focus();
  } else if (event.key === "Enter" && event.target === current && current) {
    current.querySelector(".unfold")?.click();
  } else if (event.key === "c" && event.target === current && current) {
    current.querySelector(".copy").click();
  } else {
    return;
  }
  event.preventDefault();
}

function focusResult(item) {
  if (!item) return;
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
}
