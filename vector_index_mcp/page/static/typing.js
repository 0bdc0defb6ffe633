// Searches when somebody pauses in typing; only the answer to the last search is shown.

import { Refused, byId, visible } from "./dom.js";

const PAUSE_MS = 120; // after this pause, somebody may want to see results

// Calls `run` after a pause in one of `fields`, and at once when the form is sent. Returns a function
// that runs some work and aborts the work before it, through the signal that work gets. If the
// service refuses, `refused` gets its message.
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
