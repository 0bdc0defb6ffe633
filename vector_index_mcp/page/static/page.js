// The page of a project: shows the view that the address names, and the news of the service. The
// whole state is in the address, so reloading and going back work.

import * as activity from "./activity.js";
import { byId, decodedPath, visible } from "./dom.js";
import * as file from "./file.js";
import * as map from "./map.js";
import { listen } from "./news.js";
import * as search from "./search.js";

const VIEWS = ["search", "map", "activity", "file"];

function showView() {
  const [, view, rest] = location.hash.match(/^#\/(\w+)[/?]?(.*)$/) || [null, "search", ""];
  const wanted = VIEWS.includes(view) ? view : "search";
  const before = document.body.dataset.view;
  document.body.dataset.view = wanted;
  for (const name of ["search", "map", "file"]) byId(name).hidden = name !== (wanted === "activity" ? "search" : wanted);
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.dataset.view === wanted) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (wanted === "map") map.show(decodedPath(rest).split("/").filter(Boolean).join("/"));
  else map.hide();
  if (wanted === "file") file.show(rest);
  else file.hide();
  if (wanted === "search" && before === "file") search.resume();
  if (wanted === "search" && rest) search.take(Object.fromEntries(new URLSearchParams(rest)));
}

function keepInAddress(values) {
  const given = Object.entries(values).filter(([, value]) => value.trim());
  const address = given.length ? `#/search?${new URLSearchParams(given)}` : "#/search";
  history.replaceState(null, "", address);
  for (const link of document.querySelectorAll('.tabs a[data-view="search"]')) link.href = address;
}

function onStatus(status) {
  const name = status.project_path.split(/[\\/]/).filter(Boolean).at(-1) || status.project_path;
  byId("project").textContent = visible(name);
  byId("location").textContent = visible(status.project_path);
  document.title = `${visible(name)} – vector index`;
  activity.onStatus(status);
  search.onStatus(status);
  map.onStatus(status, name);
  byId("gone").dataset.project = status.project_path;
}

search.start(keepInAddress);
map.start();
file.start();
activity.start();
addEventListener("hashchange", showView);
showView();
listen({ status: onStatus, recent: activity.onRecent }, () => `vector-index-mcp ui ${byId("gone").dataset.project || "PATH"}`);
