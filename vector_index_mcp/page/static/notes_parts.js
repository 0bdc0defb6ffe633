// Builds the elements of the page of the notes; each function takes an answer of the service.

import { bytes, el, lines, number, plural, visible } from "./dom.js";
import { asParameters, built, marked, withoutTitle } from "./markup.js";

const STEPS = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3_600], ["minute", 60]];
const KINDS = { "+": "added", "-": "removed", "@": "hunk", "\\": "hunk" };

// -- addresses: keys are encoded already, and are used as they are -------------------------------

export const addressOf = (...parts) => `#/${parts.join("/")}`;
export const addressOfSearch = (wanted) => `#/search${asParameters(wanted)}`;
const addressIn = (here) => (key, heading) => (key ? `#/${key}${asParameters({ heading })}` : `${here}${asParameters({ heading })}`);

// -- small things --------------------------------------------------------------------------------

export function ago(seconds) {
  if (!seconds) return "";
  const past = Math.max(0, Date.now() / 1000 - seconds);
  const [unit, size] = STEPS.find(([, step]) => past >= step) || ["minute", 60];
  const count = Math.floor(past / size);
  return count ? new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-count, unit) : "just now";
}

export function timeOf(seconds) {
  if (!seconds) return null;
  const moment = new Date(seconds * 1000);
  return el("time", { datetime: moment.toISOString(), title: moment.toLocaleString("en") }, ago(seconds));
}

const linkOrText = (key, address, words) => (key ? el("a", { href: address }, words) : el("span", {}, words));
const keywordsOf = (each) => (each.keywords?.length ? el("p", { class: "tags" }, each.keywords.map((word) => el("span", {}, word))) : null);
const problemOf = (each) => (each.problem ? el("p", { class: "bad" }, each.problem) : null);
const leftOut = (count) => (count ? el("p", { class: "muted" }, `${bytes(count)} more are not shown; open the file.`) : null);
const conflictBadge = () => el("span", { class: "badge" }, "changed on two machines");

function heading(words, ...rest) {
  return el("header", { class: "document-head" }, el("h2", { tabindex: "-1" }, words), ...rest);
}

const facts = (...parts) => el("p", { class: "said muted facts-line" }, parts.filter(Boolean).map((part) => el("span", {}, part)));
const crumbs = (...links) => el("nav", { class: "back", "aria-label": "Where this is" }, links.map(([href, words]) => el("a", { href }, words)));
const toHistory = (address) => el("a", { href: `${address}/history` }, "History");

// -- the beginning -------------------------------------------------------------------------------

export function start(projects, changes) {
  if (!projects.total && !projects.problem) return [empty(changes)];
  return [
    el("h2", { class: "view-title", tabindex: "-1" }, "Latest changes"),
    ...entriesOf(changes, "#/history", 12),
    changes.total > 12 ? el("p", { class: "more" }, el("a", { href: "#/history" }, `All ${number(changes.total)} changes`)) : null,
  ];
}

function empty(changes) {
  return el("div", { class: "empty" },
    el("h2", { tabindex: "-1" }, "There are no notes yet"),
    el("p", {}, "An agent writes them: ask it to keep notes about a project, and they appear here."),
    el("p", {}, "Give an agent the tools with ", el("code", {}, "vector-index-mcp install --set notes"), ", or import a folder of Markdown:"),
    el("p", {}, el("code", {}, "vector-index-mcp notes import FOLDER")),
    changes.total > 1 ? el("p", {}, el("a", { href: "#/history" }, "The history shows the earlier notes.")) : null);
}

// -- projects ------------------------------------------------------------------------------------

export function rowOf(project, isHere) {
  const open = project.open ? `, ${number(project.open)} open` : "";
  return el("li", {},
    el("a", { href: addressOf("project", project.key), "aria-current": isHere ? "page" : null },
      el("bdi", {}, project.name)),
    el("span", { class: "muted" }, plural(project.documents, "document", "documents"), open, project.changed ? ", " : "", timeOf(project.changed)),
    problemOf(project));
}

export function projectOf(found) {
  const here = addressOf("project", found.key);
  return [
    heading(found.name, facts(toHistory(here), el("a", { href: addressOf("project", found.key, "main", "history") }, "History of the main text"))),
    el("section", { class: "part", "aria-label": "Main text" }, mainOf(found, here)),
    el("section", { class: "part", "aria-labelledby": "documents-title" },
      el("h3", { id: "documents-title" }, `Documents (${number(found.total_documents)})`),
      found.documents.length ? el("ul", { class: "listed" }, found.documents.map((each) => lineOf(found, each))) : el("p", { class: "muted" }, "There are none yet."),
      found.total_documents > found.documents.length ? el("p", { class: "muted" }, "The others are not listed; search for them.") : null),
    el("section", { class: "part", "aria-labelledby": "todos-title" },
      el("h3", { id: "todos-title" }, `To-do lists (${number(found.total_todos)})`),
      found.todos.length ? found.todos.map((each) => listOf(found.key, each)) : el("p", { class: "muted" }, "There are none yet."),
      found.total_todos > found.todos.length ? el("p", { class: "muted" }, "The others are not listed.") : null),
  ];
}

function mainOf(found, here) {
  const main = found.main;
  if (!main.exists) return el("p", { class: "muted" }, "This project has no main text yet: instructions that agents read first.");
  const facts_ = facts("Main text", timeOf(main.changed), main.revision);
  return [facts_, problemOf(main), ...textOf(main, found.name, here)];
}

function lineOf(found, each) {
  return el("li", {},
    el("div", { class: "result-head" },
      el("h4", { class: "title" }, linkOrText(each.key, addressOf("project", found.key, "document", each.key), each.title)),
      each.conflict ? conflictBadge() : null,
      el("span", { class: "meta muted" }, timeOf(each.changed) || each.updated || "")),
    el("p", { class: "key muted" }, el("bdi", {}, each.file)),
    keywordsOf(each), problemOf(each));
}

// -- a text and its chapters ---------------------------------------------------------------------

function textOf(found, title, here) {
  const conflicts = found.chapters.filter((chapter) => chapter.conflict);
  const body = el("div", { class: "body" }, built(withoutTitle(found.nodes, title), addressIn(here)));
  for (const chapter of conflicts) body.querySelector(`[data-line="${chapter.line}"]`)?.classList.add("conflict");
  return [
    conflicts.length ? el("p", { class: "note" }, `${plural(conflicts.length, "chapter was", "chapters were")} changed on two machines: keep what is right, and remove the other version.`) : null,
    found.chapters.length > 1 ? el("nav", { class: "chapters", "aria-label": "Chapters" },
      el("h3", {}, "Chapters"),
      el("ol", {}, found.chapters.map((chapter) => el("li", {},
        el("a", { href: `${here}${asParameters({ line: chapter.line })}` }, chapter.title),
        chapter.conflict ? conflictBadge() : null)))) : null,
    body, leftOut(found.left_out),
  ];
}

export function documentOf(found) {
  const here = addressOf("project", found.project_key, "document", found.key);
  return [
    crumbs([addressOf("project", found.project_key), found.project]),
    heading(found.title,
      el("p", { class: "key muted" }, el("bdi", {}, found.file)),
      keywordsOf(found),
      facts(found.created && `written ${dayOf(found.created)}`, found.updated && `changed ${dayOf(found.updated)}`, `revision ${found.revision}`, toHistory(here))),
    ...textOf(found, found.title, here),
  ];
}

function dayOf(written) {
  const moment = new Date(written);
  return Number.isNaN(moment.getTime()) ? written : moment.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

// -- to-do lists ---------------------------------------------------------------------------------

function listOf(project, todo) {
  const here = addressOf("project", project, "todo", todo.number);
  return el("section", { class: "todo", "aria-label": `To-do list ${todo.number}` },
    el("h4", {}, el("a", { href: here }, `${todo.number}. ${todo.description || "(without a description)"}`), " ",
      el("span", { class: "meta muted" }, countsOf(todo))),
    problemOf(todo),
    el("ul", { class: "tasks" }, todo.tasks.map((task) => taskOf(task))),
    todo.total > todo.tasks.length ? el("p", { class: "muted" }, `${number(todo.total - todo.tasks.length)} more are not shown.`) : null);
}

const countsOf = (todo) => (todo.total ? `${number(todo.done)} of ${number(todo.total)} done` : "no tasks");

function taskOf(task, content = null) {
  const mark = task.problem ? ["!", "cannot be read"] : task.done ? ["✓", "done"] : ["", "open"];
  return el("li", { class: task.done ? "task done" : "task" },
    el("span", { class: "box", role: "img", "aria-label": mark[1] }, mark[0]),
    el("div", {}, el("span", { class: "muted" }, `#${task.number} `), el("span", { class: "task-title" }, task.title || "(without a title)"), problemOf(task), content));
}

export function todoOf(found) {
  const here = addressOf("project", found.project_key, "todo", found.number);
  return [
    crumbs([addressOf("project", found.project_key), found.project]),
    heading(found.description || `To-do list ${found.number}`,
      facts(`to-do list ${found.number}`, countsOf(found), found.created && `written ${dayOf(found.created)}`, toHistory(here)), problemOf(found)),
    el("ul", { class: "tasks" }, found.tasks.map((task) => taskOf(task,
      task.nodes.length ? el("div", { class: "body" }, built(task.nodes, addressIn(here)), leftOut(task.left_out)) : null))),
    found.total > found.tasks.length ? el("p", { class: "muted" }, `${number(found.total - found.tasks.length)} more are not shown.`) : null,
  ];
}

// -- search --------------------------------------------------------------------------------------

export function resultOf(hit) {
  const here = `#/${hit.address}`;
  return el("li", { class: "result", tabindex: "-1" },
    el("div", { class: "result-head" },
      el("h3", { class: "title" }, el("a", { href: here }, marked(hit.title))),
      el("span", { class: "meta muted" }, el("bdi", {}, hit.project), "  ", el("bdi", {}, hit.name))),
    keywordsOf(hit),
    hit.matches.map((match) => el("div", { class: "match" },
      match.fragment ? el("p", { class: "chapter" }, el("a", { href: `${here}${asParameters({ heading: match.fragment })}` }, marked(match.chapter))) : null,
      el("p", { class: "snippet" }, match.lines.flatMap((pieces, at) => [at ? el("br") : null, ...marked(pieces)])))),
    hit.more ? el("p", { class: "muted" }, plural(hit.more, "more chapter", "more chapters")) : null);
}

// -- history -------------------------------------------------------------------------------------

export function historyOf(found, here, title, way, chosen) {
  const last = found.skipped + found.entries.length;
  return [
    way.length ? crumbs(...way) : null,
    heading(title, facts(plural(found.total, "change", "changes"))),
    found.entries.length ? null : el("p", { class: "muted" }, "There are no changes here yet."),
    ...entriesOf(found, here, Infinity, chosen),
    el("p", { class: "more" },
      found.skipped ? el("a", { href: `${here}${asParameters({ skipped: Math.max(0, found.skipped - 100) })}` }, "Newer changes") : null,
      last < found.total ? el("a", { href: `${here}${asParameters({ skipped: last })}` }, `${number(found.total - last)} older changes`) : null),
  ];
}

function entriesOf(found, here, most, chosen = {}) {
  if (!found.entries.length) return [];
  return [el("ol", { class: "entries" }, found.entries.slice(0, most).map((entry) => {
    const isChosen = entry.commit === chosen.commit;
    const values = { commit: isChosen ? "" : entry.commit, skipped: found.skipped };
    return el("li", { class: "entry", "data-commit": entry.commit },
      el("a", { href: `${here}${asParameters({ ...values, skipped: found.skipped || "" })}`, "aria-expanded": String(isChosen) }, entry.what || "(no message)"),
      el("span", { class: "meta muted" }, timeOf(entry.when), "  ", el("bdi", {}, entry.who)),
      isChosen && chosen.difference ? differenceOf(chosen.difference) : null);
  }))];
}

function differenceOf(found) {
  if (!found.files.length) return el("p", { class: "muted" }, "This commit changed nothing here.");
  return el("div", { class: "difference" },
    found.files.map((file) => el("section", { "aria-label": visible(file.path) },
      el("h4", {}, el("bdi", {}, file.path), " ", el("span", { class: `badge ${file.state}` }, file.state)),
      file.lines.length ? el("pre", { class: "diff", tabindex: "0" }, file.lines.map(([kind, text]) => lineOfDiff(kind, text))) : null)),
    found.total_files > found.files.length ? el("p", { class: "note" }, `${number(found.total_files - found.files.length)} more files are not shown.`) : null,
    found.left_out ? el("p", { class: "note" }, `${number(found.left_out)} more lines are not shown; git shows them.`) : null);
}

function lineOfDiff(kind, text) {
  const tag = kind === "+" ? "ins" : kind === "-" ? "del" : "span";
  const words = kind === "@" || kind === "\\" ? text : `${kind}${text}`;
  return el(tag, { class: `line ${KINDS[kind] || ""}` }, lines(`${words}\n`));
}
