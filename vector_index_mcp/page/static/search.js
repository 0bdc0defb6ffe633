// Search as you type: the form, the results and the keys for them.

import { codeOf, pathOf, waysTo } from "./code.js";
import { ask, byId, el, number, plural, visible } from "./dom.js";
import { address } from "./file.js";
import { whileTyping } from "./typing.js";

const FOLDED_LINES = 14;
const LANGUAGES_MS = 2000; // the languages are counted at most this often while the index changes

const query = byId("query");
const path = byId("path");
const language = byId("language");
const results = byId("results");
const summary = byId("summary");
const note = byId("note");
const empty = byId("empty");

let status = null;
let shown = null; // the answer on the screen
let left = null; // the result whose file is shown, to return to
let languages = {}; // the number of files for each language
let indexed = ""; // differs whenever `languages` may have changed
let counted = ""; // the value of `indexed` when `languages` was fetched
let timer = 0;
let onAsked = () => {};
const newest = whileTyping([query, path, language], run, clear);

export function start(whenAsked) {
  onAsked = whenAsked;
  document.addEventListener("keydown", onKey);
  language.addEventListener("blur", () => fillLanguages());
  showEmpty();
}

export const values = () => ({ query: query.value, path: path.value, language: language.value });

// Fill in the form and search, unless the form already has these values.
export function take(wanted) {
  const now = values();
  const isSame = Object.keys(now).every((name) => now[name] === (wanted[name] || ""));
  query.value = wanted.query || "";
  path.value = wanted.path || "";
  fillLanguages(wanted.language || "");
  if (!isSame) run();
}

// Return to the result whose file was shown.
export function resume() {
  if (!left?.isConnected) return;
  left.focus({ preventScroll: true });
  left.scrollIntoView({ block: "center" });
}

export function onStatus(news) {
  const isReady = news.model.state === "ready" && status?.model.state !== "ready";
  const isIndexed = !news.current_run && status?.current_run;
  status = news;
  indexed = `${news.indexed_file_count} ${news.last_changes[0]?.time}`;
  countLanguagesIfChanged();
  if (shown?.note && (isReady || isIndexed)) answer(values()); // what limited the answer may be over
  else if (!query.value.trim()) showEmpty();
}

function run() {
  const wanted = values();
  onAsked(wanted);
  answer(wanted);
}

function answer(wanted) {
  return newest(async (signal) => {
    if (!wanted.query.trim()) showEmpty();
    else show(await ask("search", wanted, signal), wanted);
  });
}

// -- languages -----------------------------------------------------------------------------------

// At once, and once more when the pause is over if the index has changed meanwhile.
function countLanguagesIfChanged() {
  if (timer || indexed === counted) return;
  counted = indexed;
  timer = setTimeout(() => { timer = 0; countLanguagesIfChanged(); }, LANGUAGES_MS);
  countLanguages();
}

async function countLanguages() {
  try {
    languages = await ask("languages", {});
  } catch {
    return; // there is no index yet; this is called again when there is one
  }
  if (document.activeElement !== language) fillLanguages(); // the list stays while somebody chooses
}

function fillLanguages(chosen = language.value) {
  const names = Object.keys(languages);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  language.replaceChildren(
    el("option", { value: "" }, "any"),
    ...names.map((name) => el("option", { value: name }, name in languages ? `${name} (${number(languages[name])})` : name)));
  language.value = chosen;
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
  if (!found.results.length) showNothingFound(wanted, found);
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
      el("li", {}, key("f"), " to look at the whole file"),
      el("li", {}, key("e"), " to open it in the editor"),
      el("li", {}, key("c"), " to copy its path and lines")),
  );
}

function reasonForNothing() {
  if (status.error_message) return status.error_message;
  if (status.current_run || status.status !== "WATCHING") {
    return "The project is being read. Text can be found within seconds; this page updates by itself.";
  }
  const reasons = Object.entries(status.skipped).map(([reason, count]) => `${number(count)} ${reason}`);
  const skipped = reasons.length ? ` Skipped: ${reasons.join(", ")}.` : "";
  return `No file of this project has text to index.${skipped} Files that git ignores are left out; whatever you save is indexed at once.`;
}

function showNothingFound(wanted, found) {
  const isLimited = found.is_limited;
  const advice = isLimited ? "Not everything could be searched; the note says why."
    : found.note ? "The note says why." : "Try other words, or fewer.";
  empty.append(el("h2", {}, isLimited ? "Nothing found so far" : "Nothing found"), el("p", {}, advice));
  if (wanted.path || wanted.language) {
    const button = el("button", { type: "button", class: "plain", onclick: () => take({ query: wanted.query }) }, "Search all files");
    empty.append(button);
  }
}

function resultOf(hit, wanted) {
  const place = `${hit.file_path}:${hit.start_line}-${hit.end_line}`;
  const numbers = `:${hit.start_line}–${hit.end_line}`;
  const link = el("a", { href: address(hit.file_path, hit.start_line, hit.end_line), title: "Look at the whole file" },
    pathOf(hit.file_path), el("span", { class: "lines" }, numbers));
  const item = el("li", { class: "result", tabindex: "-1", "aria-label": place, onclick: (event) => { if (event.target.closest(".place a")) left = item; } },
    el("div", { class: "result-head" },
      el("h2", { class: "place" }, link),
      hit.is_stale && el("span", { class: "badge", title: "The file has changed since; it is being indexed again" }, "changed"),
      el("span", { class: "meta muted" }, `${hit.language}  ${hit.score.toFixed(2)}`),
      waysTo(place, hit.editor)),
    hit.scope && el("p", { class: "scope muted" }, hit.scope),
    foldedCodeOf(hit),
    matchesOf(hit, wanted),
    hit.why && whyOf(hit.why));
  return item;
}

// Explains the rank and the score of a result.
function whyOf(why) {
  const meaning = why.meaning === null ? [] : [["meaning", why.meaning.toFixed(2)]];
  const factors = Object.entries(why.factors).map(([name, factor]) => [name, `×${factor.toFixed(2)}`]);
  const added = (parts) => Object.entries(parts).map(([name, part]) => [name, `${part < 0 ? "−" : "+"}${Math.abs(part).toFixed(2)}`]);
  const row = (title, parts) => parts.length > 0 && [el("dt", {}, title), el("dd", {}, parts.map(([name, value]) => `${name} ${value}`).join(", "))];
  return el("details", { class: "why muted" },
    el("summary", {}, "Why here"),
    el("dl", {},
      row("this place", [["words", why.words.toFixed(2)], ...meaning, ...factors, ["beside the best", why.chunk.toFixed(2)]]),
      why.judged !== null && row("the cross-encoder", [["says", why.judged.toFixed(2)]]),
      row("its file, in logits", added(why.file)),
      row("in its file, in logits", added(why.in_file)),
      row("its score, in logits", added(why.likelihood))));
}

function matchesOf(hit, wanted) {
  if (!hit.matched.length) return el("p", { class: "matches muted" }, "found by meaning alone");
  const others = wanted.length - hit.matched.length;
  const rest = others ? ` ${others} of ${wanted.length} words are missing` : "";
  return el("p", { class: "matches muted" }, hit.matched.map((word) => el("mark", {}, word)), rest);
}

function foldedCodeOf(hit) {
  const [body, count] = codeOf(hit.spans, hit.start_line);
  if (count <= FOLDED_LINES) return body;
  body.classList.add("folded");
  const unfold = el("button", { type: "button", class: "plain unfold", "aria-expanded": "false", onclick: () => {
    const isFolded = body.classList.toggle("folded");
    unfold.setAttribute("aria-expanded", String(!isFolded));
    unfold.textContent = isFolded ? `Show all ${count} lines` : "Show fewer";
  } }, `Show all ${count} lines`);
  return el("div", {}, body, unfold);
}

// -- keys ----------------------------------------------------------------------------------------

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isWriting = event.target.closest("input, select") !== null;
  const current = event.target.closest(".result");
  if (event.key === "/" && !isWriting) {
    toQuery();
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
  } else if (event.key === "f" && event.target === current && current) {
    current.querySelector(".place a")?.click();
  } else if (event.key === "e" && event.target === current && current) {
    current.querySelector(".editor")?.click();
  } else {
    return;
  }
  event.preventDefault();
}

function toQuery() {
  const focus = () => {
    query.focus();
    query.select();
  };
  if (query.checkVisibility()) return focus();
  addEventListener("hashchange", focus, { once: true }); // the page's own listener comes first
  location.hash = document.querySelector('.tabs a[data-view="search"]').hash;
}

function focusResult(item) {
  if (!item) return;
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
}
