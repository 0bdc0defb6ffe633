// The page of the datasets: lists them, searches them, and makes one from a folder.

import { Refused, ask, byId, el, number, percent, plural, tell, visible } from "./dom.js";
import { listenForKeys } from "./keys.js";
import { asParameters } from "./markup.js";
import { listen } from "./news.js";
import { whileTyping } from "./typing.js";

const PAUSE_MS = 250; // longer than elsewhere: a search may need several models
const fields = { query: byId("query"), dataset: byId("dataset") };
const [results, empty, summary, note] = ["results", "empty", "summary", "note"].map(byId);

const newest = whileTyping(Object.values(fields), run, refuse, PAUSE_MS);
let status = null;
let isMaking = false;

// -- a question ----------------------------------------------------------------------------------

const wanted = () => ({ query: fields.query.value, dataset: fields.dataset.value });

function show() {
  const values = Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] || ""));
  fields.query.value = values.query || "";
  chooseDataset(values.dataset || "");
  return answer();
}

function run() {
  history.replaceState(null, "", `#/search${asParameters(wanted())}`);
  answer();
}

function answer() {
  if (!fields.query.value.trim()) return newest(showStart);
  if (!results.children.length) summary.textContent = "asking …";
  return newest(async (signal) => {
    const found = await ask("search", wanted(), signal);
    clear();
    summary.textContent = `${plural(found.results.length, "text", "texts")}, ${number(found.milliseconds)} ms`;
    note.hidden = !found.note;
    note.textContent = visible(found.note);
    if (!found.results.length) empty.append(el("h2", {}, "Nothing found"), el("p", {}, "Try other words, or another dataset."));
    results.append(...found.results.map(resultOf));
  });
}

function refuse(words) {
  clear();
  summary.textContent = words;
}

function resultOf(hit) {
  return el("li", { class: "result", tabindex: "-1" },
    el("div", { class: "result-head" },
      el("h2", { class: "title" }, hit.title),
      el("span", { class: "meta muted" }, `${hit.dataset}  ${hit.score.toFixed(2)}`)),
    el("p", { class: "key muted" }, el("bdi", {}, hit.path)),
    el("p", { class: "snippet" }, hit.lines.flatMap((pieces, at) => [at ? el("br") : null, ...pieces.map(([piece, isMarked]) => (isMarked ? el("mark", {}, piece) : piece))])));
}

function showStart() {
  clear();
  if (status && !status.datasets.length) {
    empty.append(el("h2", {}, "There are no datasets yet"),
      el("p", {}, "Make one from a folder of texts on this page, or unpack one that somebody has sent:"),
      el("p", {}, el("code", {}, `vector-index-mcp datasets add FILE.tar.zst --output ${status.folder}`)));
    return;
  }
  empty.append(el("h2", {}, "Try a question"), el("p", {}, "Agents get the same answers from the tool knowledge.search."));
}

function clear() {
  for (const part of [results, empty]) part.replaceChildren();
  note.hidden = true;
  summary.textContent = "";
}

// -- the datasets --------------------------------------------------------------------------------

function onStatus(news) {
  const isFirst = status === null;
  status = news;
  byId("location").textContent = visible(news.folder);
  byId("endings").textContent = `Files that end in ${news.endings.join(", ")} are used. Nothing leaves this machine.`;
  showState();
  byId("datasets").replaceChildren(...(news.datasets.length ? news.datasets.map(datasetOf) : [el("li", { class: "muted" }, "none")]));
  chooseDataset(fields.dataset.value);
  if (isFirst) show();
  else if (!fields.query.value.trim()) showStart();
}

function datasetOf(each) {
  const isReady = each.status === "ready";
  const facts = isReady ? [plural(each.chunkCount, "text", "texts"), each.model, each.license] : [];
  return el("li", {},
    el("span", { class: "count" }, isReady ? "ready" : "error"),
    el("p", { class: "id" }, each.id),
    isReady ? el("p", {}, each.name) : null,
    isReady ? el("p", { class: "muted" }, each.description) : el("p", { class: "bad" }, each.error),
    isReady ? el("p", { class: "muted" }, facts.filter(Boolean).join(", ")) : null);
}

function chooseDataset(id) {
  const ids = (status ? status.datasets : []).filter((each) => each.status === "ready").map((each) => each.id);
  if (id && !ids.includes(id)) ids.push(id);
  fields.dataset.replaceChildren(
    el("option", { value: "" }, "all datasets"),
    ...ids.map((each) => el("option", { value: each }, each)));
  fields.dataset.value = id;
}

function showState() {
  const hasError = status !== null && status.datasets.some((each) => each.status === "error");
  const isBusy = isMaking || (status !== null && status.is_loading);
  byId("state").dataset.state = isBusy ? "SCANNING" : hasError ? "ERROR" : "READY";
  byId("state-words").textContent = isMaking ? "making" : isBusy ? "loading" : hasError ? "needs attention" : "ready";
}

// -- making one ----------------------------------------------------------------------------------

function onJobs(jobs) {
  isMaking = jobs.some((job) => !job.has_ended);
  if (status) showState();
  byId("jobs-card").hidden = !jobs.length;
  byId("jobs").replaceChildren(...jobs.map(jobOf));
}

function jobOf(job) {
  const share = percent(job.done, job.total);
  if (job.has_ended) {
    const words = job.error ? el("p", { class: "bad" }, job.error) : el("p", {}, `made of ${plural(job.documents, "document", "documents")}, ${plural(job.chunks, "text", "texts")}`);
    return el("li", { class: "job" }, el("p", { class: "id" }, job.id), words, el("p", { class: "muted" }, job.source));
  }
  const words = job.total ? `${job.what}: ${number(job.done)} of ${number(job.total)}` : job.what;
  return el("li", { class: "job" },
    el("button", { class: "plain", type: "button", onclick: () => tell("cancel", { number: job.number }) }, "cancel"),
    el("p", { class: "id" }, job.id),
    el("p", {}, words),
    el("div", { class: "bar", role: "progressbar", "aria-label": job.id, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(job.total ? share : 0), "--share": `${job.total ? share : 0}%` }, el("span")),
    el("p", { class: "muted" }, job.source));
}

byId("make").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const [button, problem] = [form.querySelector("button"), byId("make-error")];
  button.disabled = true;
  problem.hidden = true;
  try {
    await tell("make", Object.fromEntries(new FormData(form)));
    form.reset();
  } catch (error) {
    problem.textContent = error instanceof Refused ? visible(error.message) : "The service did not answer.";
    problem.hidden = false;
  } finally {
    button.disabled = false;
  }
});

listenForKeys(fields.query, () => results.firstElementChild);
addEventListener("hashchange", show);
listen({ status: onStatus, jobs: onJobs }, () => "vector-index-mcp datasets ui");
