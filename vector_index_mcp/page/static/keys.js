// The keys of a page with a search: / goes to the search field, arrows go through the results.

export function listenForKeys(query, firstResult) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const current = event.target.closest(".result");
    const isWriting = event.target.closest("input, select") !== null;
    if (event.key === "/" && !isWriting) {
      query.focus();
      query.select();
    } else if (event.key === "ArrowDown" && (event.target === query || current)) {
      (current ? current.nextElementSibling : firstResult())?.focus();
    } else if (event.key === "ArrowUp" && current) {
      (current.previousElementSibling || query).focus();
    } else if (event.key === "Enter" && event.target === current && current) {
      current.querySelector("a")?.click();
    } else {
      return;
    }
    event.preventDefault();
  });
}
