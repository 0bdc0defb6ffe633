// What somebody types is asked when they pause, and only what was asked last is waited for.

import { Refused, byId, visible } from "./dom.js";

const PAUSE_MS = 120; // after which somebody may want to see results

// `run` after a pause in one of `fields`, and at once when the form is sent. Gives a function that
// does some work as the newest: what was on its way is broken off, by the signal that it was given.
// Of an error, what the service says is told to `refused`.
export function whileTyping(fields, run, refused, pauseMs = PAUSE_MS) {
  const results = byId("results");
  let timer = 0;
  let pending = null;
  for (const field of fields) {
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(run, pauseMs);
    });
  }
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    run();
  });
  return async function newest(work) {
    pending?.abort();
    const mine = (pending = new AbortController());
    results.setAttribute("aria-busy", "true");
    try {
      await work(mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof Refused) refused(visible(error.message));
      else byId("summary").textContent = "The service did not answer.";
    } finally {
      if (pending === mine) results.removeAttribute("aria-busy");
    }
  };
}
