// The page of documents: search, rendered documents and their links. The whole state is in the
// address, so reloading and going back work.

import { ask, byId, bytes, decodedPath, el, encodedPath, number, percent, plural, visible } from "./dom.js";
import { listenForKeys } from "./keys.js";
import { asParameters, built, goTo, withoutTitle } from "./markup.js";
import { listen } from "./news.js";
import { whileTyping } from "./typing.js";

const fields = { query: byId("query"), collection: byId("collection"), mode: byId("mode") };
const [results, empty, summary, note, article] = ["results", "empty", "summary", "note", "document"].map(byId);

const shown = whileTyping(Object.values(fields), run, refuse);
let status = null;

// -- the address ---------------------------------------------------------------------------------

const addressOfDocument = (key, values) => `#/document/${encodedPath(key)}${asParameters(values)}`;
const addressOfLink = (key, heading) => addressOfDocument(key || article.dataset.key, { heading });
const addressOfList = (name) => `#/collection/${encodedPath(name)}`;
const addressOfSearch = (wanted) => `#/search${asParameters(wanted)}`;

function show() {
  const [path, parameters = ""] = location.hash.slice(2).split("?");
  const [view, ...rest] = path.split("/");
  const values = Object.fromEntries(new URLSearchParams(parameters));
  if (view === "document") return showDocument(decodedPath(rest.join("/")), values);
  if (view === "collection") return showList(decodedPath(rest[0] || ""));
  fields.query.value = values.query || "";
  fields.mode.value = values.mode || "query";
  chooseCollection(values.collection || "");
  return answer();
}

// -- search --------------------------------------------------------------------------------------

const wanted = () => ({
  query: fields.query.value,
  collection: fields.collection.value,
  mode: fields.mode.value === "query" ? "" : fields.mode.value,
});

function run() {
  history.replaceState(null, "", addressOfSearch(wanted()));
  answer();
}

function answer() {
  if (!fields.query.value.trim()) return shown(showStart);
  return shown(async (signal) => {
    const found = await ask("search", wanted(), signal);
    clear();
    summary.textContent = `${plural(found.results.length, "document", "documents")}, ${number(Math.ceil(found.seconds * 1000))} ms`;
    note.hidden = !found.note;
    note.textContent = visible(found.note || "");
    if (!found.results.length) empty.append(el("h2", {}, "Nothing found"), el("p", {}, "Try other words, or fewer."));
    results.append(...found.results.map(resultOf));
  });
}

// What users say of a collection, of a folder in it and of all: a paragraph each.
function contextsOf(found) {
  return (found.context || "").split(/\n{2,}/).filter(Boolean)
    .map((context) => el("p", { class: "said muted" }, context.split("\n").join(" ")));
}

function resultOf(hit) {
  return el("li", { class: "result", tabindex: "-1" },
    el("div", { class: "result-head" },
      el("h2", { class: "title" }, el("a", { href: addressOfDocument(hit.key, { line: hit.line }) }, hit.title)),
      hit.is_stale ? el("span", { class: "badge" }, "changed since") : null,
      el("span", { class: "meta muted" }, `${hit.date}  ${hit.score.toFixed(2)}`)),
    el("p", { class: "key muted" }, el("bdi", {}, `${hit.key}:${hit.line}`)),
    contextsOf(hit),
    tagsOf(hit),
    el("p", { class: "snippet" }, hit.lines.flatMap((pieces, at) => [at ? el("br") : null, ...pieces.map(([piece, isMarked]) => (isMarked ? el("mark", {}, piece) : piece))])));
}

const tagsOf = (each) => (each.tags.length ? el("p", { class: "tags" }, each.tags.map((tag) => el("span", {}, tag))) : null);

function showStart() {
  clear();
  document.title = "Documents";
  if (status && !status.collections.length) {
    empty.append(el("h2", {}, "There are no collections yet"),
      el("p", {}, "Add a folder of documents in a terminal; this page updates by itself."),
      el("p", {}, el("code", {}, "vector-index-mcp documents collection add FOLDER --name NAME")));
    return;
  }
  empty.append(el("h2", {}, "Search by words and by meaning"),
    el("p", {}, "Ask a question, or name what you look for. Results come as you type; the best document is first. "),
    el("p", {}, "tag:name, after:2026-01-31 and before:2026-03-01 limit a search."));
}

// -- a collection --------------------------------------------------------------------------------

function showList(name) {
  return shown(async (signal) => {
    const listed = await ask("list", { collection: name }, signal);
    clear();
    document.title = `${visible(name)} – documents`;
    const count = listed.documents.length < listed.total ? `the newest ${number(listed.documents.length)} of ${number(listed.total)}` : plural(listed.total, "document", "documents");
    summary.textContent = `${visible(name)}: ${count}`;
    results.append(...listed.documents.map((each) => el("li", { class: "result", tabindex: "-1" },
      el("div", { class: "result-head" },
        el("h2", { class: "title" }, el("a", { href: addressOfDocument(each.key) }, each.title)),
        el("span", { class: "meta muted" }, each.date)),
      el("p", { class: "key muted" }, el("bdi", {}, each.key)), tagsOf(each))));
  });
}

// -- a document ----------------------------------------------------------------------------------

function showDocument(key, values) {
  return shown(async (signal) => {
    const found = await ask("document", { key }, signal);
    const isSame = article.dataset.key === key && !article.hidden;
    const place = scrollY;
    clear();
    document.title = `${visible(found.title)} – documents`;
    article.dataset.key = key;
    article.replaceChildren(...[
      el("header", { class: "document-head" },
        el("h2", {}, found.title),
        el("p", { class: "key muted" }, el("bdi", {}, key), found.date ? `  ${found.date}` : ""),
        found.tags ? tagsOf(found) : null,
        contextsOf(found)),
      el("div", { class: "body" }, built(withoutTitle(found.nodes, found.title), addressOfLink)),
      found.left_out ? el("p", { class: "muted" }, `${bytes(found.left_out)} more are not shown; open the file.`) : null,
    ].filter(Boolean));
    article.hidden = false;
    showLinks(found);
    if (isSame) scrollTo(0, place);
    else goTo(article.querySelector(".body"), values);
  });
}

function showLinks(found) {
  const part = (words, linked) => (linked.length
    ? [el("h2", {}, words), el("ul", { class: "links" }, linked.map((other) => el("li", {}, el("a", { href: addressOfDocument(other.key), title: other.key }, other.title))))]
    : []);
  const parts = [...part("Links to", found.out), ...part("Linked from", found.back)];
  byId("links").replaceChildren(...parts);
  byId("links").hidden = !parts.length;
}

// -- what is shown -------------------------------------------------------------------------------

function clear() {
  for (const part of [results, empty]) part.replaceChildren();
  for (const part of [note, article, byId("links")]) part.hidden = true;
  summary.textContent = "";
}

function refuse(words) {
  clear();
  summary.textContent = words;
}

// -- the service ---------------------------------------------------------------------------------

function onStatus(news) {
  const isFirst = status === null;
  const isWritten = news.text_revision !== status?.text_revision;
  status = news;
  byId("location").textContent = visible(news.file);
  const isBusy = news.files_to_do > 0 || news.waits_for_vectors;
  byId("state").dataset.state = news.problem ? "ERROR" : isBusy ? "SCANNING" : news.state;
  byId("state-words").textContent = news.problem ? "needs attention" : isBusy ? "indexing" : "up to date";
  showProgress(news);
  showCollections(news);
  byId("facts").replaceChildren(...factsOf(news).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  if (isFirst) show();
  else if (location.hash.startsWith("#/document/")) { if (isWritten) show(); }
  else if (!fields.query.value.trim() && !location.hash.startsWith("#/collection/")) showStart();
}

function showProgress(news) {
  const [done, all] = news.files_to_do ? [news.files_done, news.files_to_do] : [news.embedded, news.chunks];
  const share = percent(done, all);
  byId("progress").hidden = !(news.files_to_do || news.waits_for_vectors);
  byId("progress").setAttribute("aria-valuenow", share);
  byId("progress").style.setProperty("--share", `${share}%`);
}

function showCollections(news) {
  chooseCollection(fields.collection.value, news.collections);
  byId("collections").replaceChildren(...news.collections.map((each) => el("li", {},
    el("span", { class: "count" }, number(each.documents)),
    el("a", { href: addressOfList(each.name), title: each.path }, each.name),
    each.problem ? el("p", { class: "bad" }, each.problem) : null)));
}

function chooseCollection(name, collections = status ? status.collections : []) {
  const names = collections.map((each) => each.name);
  if (name && !names.includes(name)) names.push(name);
  fields.collection.replaceChildren(
    el("option", { value: "" }, "all collections"),
    ...names.map((each) => el("option", { value: each }, each)));
  fields.collection.value = name;
}

function factsOf(news) {
  const facts = [["Documents", number(news.documents)], ["Chunks", number(news.chunks)],
    ["By meaning", `${percent(news.embedded, news.chunks)} %`]];
  if (news.reason) facts.push(["Model", news.reason]);
  if (news.problem) facts.push(["Problem", el("span", { class: "bad" }, news.problem)]);
  const skipped = Object.entries(news.skipped).map(([reason, count]) => `${number(count)} ${reason}`);
  if (skipped.length) facts.push(["Skipped", skipped.join(", ")]);
  for (const each of news.failed) facts.push(["Failed", el("span", { class: "bad" }, each)]);
  return facts;
}

listenForKeys(fields.query, () => results.firstElementChild);
addEventListener("hashchange", show);
listen({ status: onStatus }, () => "vector-index-mcp documents ui");
