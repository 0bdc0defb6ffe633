// The page of the notes: shows what the address names, and updates with every commit.

import { Refused, ask, byId, el, number, plural, visible } from "./dom.js";
import { listenForKeys } from "./keys.js";
import { goTo } from "./markup.js";
import { listen } from "./news.js";
import { addressOf, addressOfSearch, ago, documentOf, historyOf, projectOf, resultOf, rowOf, start, timeOf, todoOf } from "./notes_parts.js";

const TYPING_MS = 150; // after this pause, somebody may want to see results
const TIMES_MS = 30_000;
const ROOM = matchMedia("(min-width: 700px)"); // wide enough to show the projects beside the content

const fields = { query: byId("query"), project: byId("project"), meaning: byId("meaning") };
const [shown, summary, note] = ["shown", "summary", "note"].map(byId);

let status = null;
let projects = { projects: [], total: 0 };
let pending = null; // aborts the request under way
let timer = 0;
let last = { address: "", answer: "" }; // what is shown

// -- the address ---------------------------------------------------------------------------------

function place() {
  const [path, parameters = ""] = location.hash.slice(2).split("?");
  return { parts: path.split("/"), path, values: Object.fromEntries(new URLSearchParams(parameters)) };
}

// Returns the view at an address: how to ask the service for it, and how to build it.
function viewOf({ parts, path, values }) {
  const [room, project, kind, which, rest] = parts;
  if (room === "search" && values.query?.trim()) return searchView(values);
  if (room === "history") return historyView({}, "#/history", "All changes", [["#/", "Notes"]], values);
  if (room !== "project") return { ask: startAnswer, build: (found) => start(...found), title: "" };
  const way = [[addressOf("project", project), nameOf(project)]];
  const history = (wanted, title) => historyView({ project, ...wanted }, `#/${path}`, title, way, values);
  if (kind === "history") return history({}, `History of ${nameOf(project)}`);
  if (kind === "main") return history({ part: "main" }, `History of the main text of ${nameOf(project)}`);
  if (kind === "document") {
    if (rest === "history") return history({ document: which }, `History of ${plain(which)}`);
    return { ...simple("document", { project, document: which }, documentOf), history: `#/${path}/history` };
  }
  if (kind === "todo") {
    if (rest === "history") return history({ todo: which }, `History of to-do list ${plain(which)}`);
    return { ...simple("todo", { project, todo: which }, todoOf), history: `#/${path}/history` };
  }
  return { ...simple("project", { project }, projectOf), history: `#/${path}/history` };
}

const nameOf = (key) => projects.projects.find((each) => each.key === key)?.name || plain(key);

function plain(key) {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

const simple = (what, wanted, build) => ({
  ask: (signal) => ask(what, wanted, signal), build, title: (found) => found.title || found.description || found.name,
});

async function startAnswer(signal) {
  const [listed, changes] = await Promise.all([ask("projects", {}, signal), ask("history", {}, signal)]);
  return [listed, changes];
}

function historyView(wanted, here, title, way, values) {
  const answer = async (signal) => {
    const asked = [ask("history", { ...wanted, skipped: values.skipped || "" }, signal)];
    if (values.commit) asked.push(ask("difference", { ...wanted, commit: values.commit }, signal));
    const [found, difference] = await Promise.all(asked);
    return { found, difference };
  };
  const build = ({ found, difference }) => historyOf(found, here, title, way, { commit: values.commit, difference });
  return { ask: answer, build, title, isHistory: true };
}

function searchView(values) {
  const wanted = { query: values.query, project: values.project || "", mode: values.mode || "" };
  return {
    ask: (signal) => ask("search", wanted, signal),
    build: (found) => [el("ol", { class: "results", "aria-label": "Results" }, found.results.map(resultOf)),
      found.results.length ? null : el("div", { class: "empty" }, el("h2", {}, "Nothing found"), el("p", {}, wanted.mode ? "Try other words." : "Try other or fewer words, or switch to “by meaning, too”."))],
    summary: (found) => plural(found.total, "document", "documents"),
    note: (found) => found.note,
    title: `${values.query} – search`,
    isSearch: true,
  };
}

// -- what is shown -------------------------------------------------------------------------------

async function show({ isFollowing = false } = {}) {
  if (pending) pending.abort();
  const mine = (pending = new AbortController());
  const here = place();
  const view = viewOf(here);
  if (!isFollowing) takeOver(here, view);
  byId("content").setAttribute("aria-busy", "true");
  try {
    const found = await view.ask(mine.signal);
    if (!mine.signal.aborted) put(here, view, found, isFollowing);
  } catch (error) {
    if (!mine.signal.aborted) putError(here, view, error);
  } finally {
    if (pending === mine) byId("content").removeAttribute("aria-busy");
  }
}

function takeOver({ values }, view) {
  if (view.isSearch || !fields.query.matches(":focus")) fields.query.value = view.isSearch ? values.query : "";
  if (view.isSearch) {
    fields.meaning.checked = values.mode === "both";
    chooseProject(values.project || "");
  }
}

function put(here, view, found, isFollowing) {
  const answer = JSON.stringify(found);
  if (isFollowing && last.address === location.hash && last.answer === answer) return;
  const isSame = last.address.split("?")[0] === location.hash.split("?")[0];
  const position = scrollY;
  const focused = document.activeElement?.closest("#shown") ? document.activeElement.getAttribute("href") : null;
  last = { address: location.hash, answer };
  shown.replaceChildren(...view.build(found).flat().filter(Boolean));
  summary.textContent = view.summary ? view.summary(found) : "";
  note.textContent = visible(view.note?.(found) || "");
  note.hidden = !note.textContent;
  const title = typeof view.title === "function" ? view.title(found) : view.title;
  document.title = title ? `${visible(title)} – notes` : "Notes";
  markProject();
  if (isFollowing) return stay(position, focused);
  return arrive(here, view, isSame);
}

// Keeps the scroll position and the focus when the content was updated.
function stay(position, focused) {
  scrollTo(0, position);
  if (focused) [...shown.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

function arrive({ values }, view, isSame) {
  if (view.isSearch) return;
  if (!ROOM.matches) byId("projects-box").open = location.hash.length < 3;
  const body = shown.querySelector(".body");
  const chosen = view.isHistory && values.commit ? shown.querySelector(`[data-commit="${CSS.escape(values.commit)}"] > a`) : null;
  if (chosen) {
    chosen.focus({ preventScroll: true });
    chosen.scrollIntoView({ block: "nearest" });
    return;
  }
  if (!fields.query.matches(":focus")) shown.querySelector("h2")?.focus({ preventScroll: true });
  if (values.line || values.heading) {
    if (body) goTo(body, values);
  } else if (!isSame || !view.isHistory) {
    scrollTo(0, 0);
  }
}

function putError(here, view, error) {
  last = { address: location.hash, answer: "" };
  summary.textContent = "";
  note.hidden = true;
  const words = error instanceof Refused ? error.message : "The service did not answer.";
  if (!(error instanceof Refused)) console.debug(error);
  shown.replaceChildren(el("div", { class: "empty", role: "alert" },
    el("h2", { tabindex: "-1" }, "This cannot be shown"), el("p", {}, words),
    view.history ? el("p", {}, el("a", { href: view.history }, "The history shows what was there before.")) : null));
}

// -- projects ------------------------------------------------------------------------------------

async function listProjects() {
  try {
    projects = await ask("projects", {});
  } catch (error) {
    byId("projects-note").textContent = error instanceof Refused ? visible(error.message) : "The service did not answer.";
    byId("projects-note").hidden = false;
    return;
  }
  const left = projects.total - projects.projects.length;
  const problem = projects.problem || (left ? `${number(left)} more are not listed; search finds them.` : "");
  byId("projects-note").textContent = visible(problem);
  byId("projects-note").hidden = !problem;
  byId("projects-count").textContent = projects.total ? number(projects.total) : "";
  const focused = document.activeElement?.closest("#projects") ? document.activeElement.getAttribute("href") : null;
  byId("projects").replaceChildren(...projects.projects.map((each) => rowOf(each, false)));
  if (focused) byId("projects").querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  chooseProject(fields.project.value);
  markProject();
}

function markProject() {
  const { parts } = place();
  const here = parts[0] === "project" ? addressOf("project", parts[1]) : "";
  for (const link of byId("projects").querySelectorAll("a")) {
    if (link.getAttribute("href") === here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function chooseProject(key) {
  const known = projects.projects.map((each) => [each.key, each.name]).filter(([each]) => each);
  if (key && !known.some(([each]) => each === key)) known.push([key, plain(key)]);
  fields.project.replaceChildren(el("option", { value: "" }, "all projects"),
    ...known.map(([each, name]) => el("option", { value: each }, name)));
  fields.project.value = key;
}

// -- the store -----------------------------------------------------------------------------------

function onStatus(news) {
  const isNew = status === null || news.commit !== status.commit;
  const isFirst = status === null;
  status = news;
  showStatus();
  if (isFirst) return;
  if (isNew) {
    listProjects();
    if (!place().path.startsWith("search")) show({ isFollowing: true });
  }
}

function showStatus() {
  const news = status;
  const hasTroubles = Boolean(news.problem || news.details);
  byId("location").textContent = visible(news.home);
  byId("state").dataset.state = hasTroubles ? "ERROR" : "READY";
  byId("state-words").textContent = hasTroubles ? "needs attention" : "up to date";
  const uncommitted = news.uncommitted ? `${plural(news.uncommitted, "file", "files")} not committed` : "all committed";
  const last = `${news.short} ${news.what} (${ago(news.when)})`;
  byId("store").replaceChildren(...(news.problem ? [] : [el("span", {}, news.branch), el("span", { class: "last", title: last }, last),
    el("span", {}, news.remote), el("span", {}, uncommitted)]));
  const troubles = [...(news.problem ? [news.problem] : []), ...(news.details || "").split("\n")].filter(Boolean);
  byId("details").hidden = !troubles.length;
  byId("troubles").replaceChildren(...troubles.map((each) => el("li", {}, each)));
}

function refreshTimes() {
  if (status) showStatus();
  for (const time of document.querySelectorAll("main time")) {
    time.replaceWith(timeOf(Date.parse(time.getAttribute("datetime")) / 1000));
  }
}

// -- keys and fields -----------------------------------------------------------------------------

function run() {
  const wanted = { query: fields.query.value, project: fields.project.value, mode: fields.meaning.checked ? "both" : "" };
  history.replaceState(null, "", wanted.query.trim() ? addressOfSearch(wanted) : "#/");
  show();
}

for (const field of Object.values(fields)) {
  field.addEventListener("input", () => {
    clearTimeout(timer);
    if (field !== fields.query && !fields.query.value.trim()) return;
    timer = setTimeout(run, TYPING_MS);
  });
}
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  run();
});
listenForKeys(fields.query, () => shown.querySelector(".result"));
addEventListener("hashchange", () => {
  if (location.hash === "#content") history.replaceState(null, "", last.address || "#/");
  else show();
});
setInterval(refreshTimes, TIMES_MS);
listen({ status: onStatus }, () => "vector-index-mcp notes ui");
listProjects();
show();
