// The news of the service, and what a page says while there is none.

import { byId, el } from "./dom.js";

const AGAIN_MS = 2000;

// Listen for ever: `handlers` take the values of an event, by its name; `command` is that which makes
// a new link.
export function listen(handlers, command) {
  const news = new EventSource("api/news");
  news.addEventListener("open", () => { byId("gone").hidden = true; });
  for (const [name, handle] of Object.entries(handlers)) {
    news.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  }
  news.addEventListener("error", () => {
    showGone(command());
    if (news.readyState === EventSource.CLOSED) setTimeout(() => listen(handlers, command), AGAIN_MS); // it was refused
  });
}

function showGone(command) {
  const gone = byId("gone");
  byId("state-words").textContent = "not connected";
  byId("state").dataset.state = "GONE";
  if (!gone.hidden) return;
  gone.replaceChildren(
    "The service does not answer. This page goes on trying; if the service has ended, run ",
    el("code", {}, command), " and open its link.");
  gone.hidden = false;
}
