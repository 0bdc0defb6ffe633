// Shows what the index is doing, and the last queries.

import { byId, bytes, el, number, percent, plural } from "./dom.js";
import { address as addressOfFile } from "./file.js";

const STATES = {
  INITIALIZING: "opening the index",
  SCANNING: "indexing",
  WATCHING: "up to date",
  ERROR: "error",
};
const AGO_MS = 30_000;

let queries = [];

export function start() {
  setInterval(showRecent, AGO_MS); // texts like "3 min ago" become outdated
  showRecent();
}

// -- the index -----------------------------------------------------------------------------------

export function onStatus(status) {
  const done = percent(status.embedded_chunk_count, status.indexed_chunk_count);
  const run = status.current_run;
  const isEmbedding = status.status === "WATCHING" && status.embedded_chunk_count + status.given_up_chunk_count < status.indexed_chunk_count && status.model.state !== "unavailable";
  const words = isEmbedding ? `adding vectors, ${done} %` : status.pending_path_count && !run ? "changes are waiting" : STATES[status.status];
  byId("state-words").textContent = run && run.files_to_do ? `${words}, ${percent(run.files_done, run.files_to_do)} %` : words;
  byId("state").dataset.state = isEmbedding ? "SCANNING" : status.status;
  showProgress(run && run.files_to_do ? percent(run.files_done, run.files_to_do) : isEmbedding ? done : null);
  byId("facts").replaceChildren(...factsOf(status, done).flatMap(([name, ...value]) => [el("dt", {}, name), el("dd", {}, ...value)]));
}

function showProgress(share) {
  const bar = byId("progress");
  bar.hidden = share === null;
  bar.setAttribute("aria-valuenow", share ?? 0);
  bar.style.setProperty("--share", `${share ?? 0}%`);
}

function factsOf(status, done) {
  const { model, watcher, current_run: run } = status;
  const facts = [];
  if (status.error_message) facts.push(["Error", el("strong", { class: "bad" }, status.error_message)]);
  if (run) facts.push(["Now", runOf(run)]);
  facts.push(["Files", number(status.indexed_file_count)]);
  facts.push(["Chunks", number(status.indexed_chunk_count)]);
  if (status.indexed_chunk_count) facts.push(["By meaning", `${plural(status.embedded_chunk_count, "chunk", "chunks")}, ${done} %`, el("span", { class: "bar", "--share": `${done}%` })]);
  if (status.pending_path_count) facts.push(["Waiting", plural(status.pending_path_count, "changed path", "changed paths")]);
  facts.push(["Model", `${model.name || "none used yet"}, ${model.state}`, model.reason && el("p", { class: "muted" }, model.reason)]);
  const watching = { events: "noticed at once", polling: "looked for regularly", off: "not noticed now" }[watcher.mode];
  facts.push(["Changes", watching, watcher.problem && el("p", { class: "muted" }, watcher.problem)]);
  if (!status.is_writer) facts.push(["Written by", "another process"]);
  const skipped = Object.entries(status.skipped);
  if (skipped.length) facts.push(["Skipped", el("ul", {}, skipped.map(([reason, count]) => el("li", {}, `${number(count)} ${reason}`)))]);
  const failed = Object.entries(status.failed);
  if (failed.length) facts.push(["Failed", el("ul", {}, failed.map(([path, reason]) => el("li", {}, `${path}: ${reason}`)))]);
  if (status.unreadable_folders.length) facts.push(["Unreadable", status.unreadable_folders.join(", ")]);
  if (status.masked_credential_count) facts.push(["Masked", plural(status.masked_credential_count, "credential", "credentials")]);
  if (status.index_bytes !== null) facts.push(["On disk", bytes(status.index_bytes)]);
  const sharers = status.worker_shared_by;
  const shared = sharers > 1 ? `, shared by ${sharers} services` : "";
  const worker = status.worker_memory_bytes
    ? `, model ${bytes(status.worker_memory_bytes)}${shared}`
    : "";
  facts.push(["Memory", `${bytes(status.memory_bytes)}${worker}`]);
  return facts;
}

function runOf(run) {
  if (!run.files_to_do) return "comparing the project with the index";
  const left = run.seconds_left === null ? "" : `, about ${duration(run.seconds_left)} left`;
  return `${number(run.files_done)} of ${plural(run.files_to_do, "file", "files")}${left}`;
}

function duration(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

// -- queries -------------------------------------------------------------------------------------

export function onRecent(news) {
  queries = news;
  showRecent();
}

function showRecent() {
  const list = byId("recent");
  if (!queries.length) {
    list.replaceChildren(el("li", { class: "muted" }, "None yet. What your agent asks appears here, with what it found."));
    return;
  }
  const open = new Set([...list.querySelectorAll("details[open]")].map((details) => details.dataset.asked));
  list.replaceChildren(...queries.map((asked) => queryOf(asked, open)));
}

const WHO = { client: "client", page: "here" };

function queryOf(asked, open) {
  const filters = [asked.path && `in ${asked.path}`, asked.language].filter(Boolean).join(", ");
  const address = `#/search?${new URLSearchParams({ query: asked.query, path: asked.path, language: asked.language })}`;
  const way = asked.mode === "hybrid" ? "" : ", by words only";
  const who = Object.entries(asked.times).map(([asker, times]) => (times > 1 ? `${WHO[asker]} ${number(times)} times` : WHO[asker]));
  const isRepeated = Object.values(asked.times).reduce((sum, times) => sum + times) > 1;
  const facts = `${who.join(", ")}, ${isRepeated ? "last " : ""}${ago(asked.at)}, ${number(Math.ceil(asked.seconds * 1000))} ms${way}`;
  const places = asked.best.map((place) => el("li", {},
    el("a", { href: addressOfFile(place.path, place.start_line, place.end_line) }, el("bdi", {}, place.path), `:${place.start_line}–${place.end_line}`)));
  return el("li", {},
    el("a", { href: address, title: "Ask again" }, asked.query),
    filters && el("span", { class: "muted" }, ` ${filters}`),
    el("details", { "data-asked": address, open: open.has(address) },
      el("summary", { class: "muted" }, `${plural(asked.found, "result", "results")}, ${facts}`),
      el("ol", { class: "places" }, places)));
}

function ago(at) {
  const seconds = Math.max(0, (Date.now() - new Date(at)) / 1000);
  if (seconds < 60) return "just now";
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min ago` : `${Math.floor(seconds / 3600)} h ago`;
}
