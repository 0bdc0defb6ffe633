// Receives the news of the service, and shows a message while the service does not answer.

import { byId, el } from "./dom.js";

const AGAIN_MS = 2000;

// Listen for ever. `handlers` has a function for each event's name, which takes the event's values;
// `command` returns the command that makes a new link.
export function listen(handlers, command) {
  const news = new EventSource("api/news");
  news.addEventListener("open", () => { byId("gone").hidden = true; });
  for (const [name, handle] of Object.entries(handlers)) {
    news.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  }
  news.addEventListener("error", () => {
    showGone(command());
    if (news.readyState === EventSource.CLOSED) setTimeout(() => listen(handlers, command), AGAIN_MS); // the service refused the request
  });
}

function showGone(command) {
  const gone = byId("gone");
  byId("state-words").textContent = "not connected";
  byId("state").dataset.state = "GONE";
  if (!gone.hidden) return;
  gone.replaceChildren(
    "The service does not answer. This page keeps trying; if the service has ended, run ",
    el("code", {}, command), " and open its link.");
  gone.hidden = false;
}
