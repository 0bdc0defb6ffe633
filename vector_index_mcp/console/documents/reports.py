"""Formats lists, states and changes for the command line. Pure.

It makes text that others wrote safe for a terminal.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from vector_index_mcp.console.colours import PLAIN, Colours
from vector_index_mcp.console.documents.formats import readable
from vector_index_mcp.documents.uris import SCHEME
from vector_index_mcp.foreign import visible

Values: TypeAlias = Mapping[str, Any]

_KILOBYTE = 1024
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_HALF_A_YEAR, _YEAR = 183 * _DAY, 365 * _DAY
_LONGEST_CONTEXT_CHARS = 60
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
NO_COLLECTIONS = "No collections found. Run 'qmd collection add .' to create one.\n"


def of_status(state: Values, now: float, c: Colours = PLAIN) -> str:
    """Return the state of the index, and example commands."""
    shown = of_state(state, now, c)
    if not state["collections"]:
        return shown
    examples = _examples(state["collections"][0]["name"], c)
    return "\n".join([shown, f"{c.bold}Examples{c.reset}", *examples]) + "\n"


def of_state(state: Values, now: float, c: Colours = PLAIN) -> str:
    """Return the state of the index."""
    parts = [f"{c.bold}QMD Status{c.reset}", "", f"Index: {visible(state['index'])}"]
    parts.append(f"Size:  {size(state['size'])}")
    if state["problem"]:
        parts.append(f"{c.yellow}Problem: {visible(state['problem'])}{c.reset}")
    parts += ["", f"{c.bold}Documents{c.reset}"]
    parts.append(f"  Total:    {state['documents']} files indexed")
    parts.append(f"  Vectors:  {state['embedded']} embedded")
    if server := state.get("model", {}).get("server"):
        parts.append(f"  Server:   {visible(server)}")
    if state["unembedded"]:
        needed = f"{state['unembedded']} need embedding (run 'qmd embed')"
        parts.append(f"  {c.yellow}Pending:{c.reset}  {needed}")
    if state["skipped"]:
        reasons = ", ".join(
            f"{count} {visible(reason)}" for reason, count in state["skipped"].items()
        )
        count = sum(state["skipped"].values())
        named = state.get("skipped_files", [])  # a service of another version names none
        parts.append(f"  Skipped:  {count} ({reasons})")
        parts += [f"    {visible(each)}" for each in named]
        if named and count > len(named):
            parts.append(f"    … {count} in all")
    parts += [f"  {c.yellow}Failed:{c.reset}   {visible(each)}" for each in state["failed"]]
    updated = [each["updated"] for each in state["collections"] if each["updated"] is not None]
    if updated:
        parts.append(f"  Updated:  {since(max(updated), now)}")
    if not state["collections"]:
        parts += ["", "No collections. Run 'qmd collection add .' to index markdown files."]
        return "\n".join(parts) + "\n"
    parts += ["", f"{c.bold}Collections{c.reset}"]
    for collection in state["collections"]:
        parts += _in_status(collection, now, c)
    return "\n".join(parts) + "\n"


def of_work(state: Values) -> str:
    """Return lines about the work in progress; empty if there is none."""
    parts = [f"Doing:    {visible(name)}" for name in state["operations"]]
    if work := state["work"]:
        parts.append(f"Working:  {work['what']} {work['done']}/{work['total']}")
    return "".join(f"{part}\n" for part in parts)


def _in_status(collection: Values, now: float, c: Colours) -> Iterator[str]:
    name = visible(collection["name"])
    moment = collection["updated"]
    updated = f" (updated {since(moment, now)})" if moment is not None else ""
    yield f"  {c.cyan}{name}{c.reset} {c.dim}(qmd://{name}/){c.reset}"
    if collection["problem"]:
        yield f"    {c.yellow}Problem:  {visible(collection['problem'])}{c.reset}"
    yield f"    {c.dim}Pattern:{c.reset}  {visible(collection['pattern'])}"
    yield f"    {c.dim}Files:{c.reset}    {collection['documents']}{updated}"
    if collection["contexts"]:
        yield f"    {c.dim}Contexts:{c.reset} {len(collection['contexts'])}"
    for prefix, text in collection["contexts"]:
        short = text
        if len(text) > _LONGEST_CONTEXT_CHARS:
            short = f"{text[: _LONGEST_CONTEXT_CHARS - 3]}..."
        yield f"      {c.dim}/{visible(prefix)}:{c.reset} {visible(short)}"


def _examples(name: str, c: Colours) -> Iterator[str]:
    name = visible(name)
    yield f"  {c.dim}# List files in a collection{c.reset}"
    yield f"  qmd ls {name}"
    yield f"  {c.dim}# Get a document{c.reset}"
    yield f"  qmd get qmd://{name}/path/to/file.md"
    yield f"  {c.dim}# Search within a collection{c.reset}"
    yield f'  qmd search "query" -c {name}'


def of_collections(collections: Sequence[Values], now: float, c: Colours = PLAIN) -> str:
    """Return the collections with details."""
    if not collections:
        return NO_COLLECTIONS
    parts = [f"{c.bold}Collections ({len(collections)}):{c.reset}", ""]
    for each in collections:
        name = visible(each["name"])
        parts.append(f"{c.cyan}{name}{c.reset} {c.dim}(qmd://{name}/){c.reset}")
        parts.append(f"  {c.dim}Pattern:{c.reset}  {visible(each['pattern'])}")
        parts.append(f"  {c.dim}Files:{c.reset}    {each['documents']}")
        if each["updated"] is not None:
            parts.append(f"  {c.dim}Updated:{c.reset}  {since(each['updated'], now)}")
        parts.append("")
    return "\n".join(parts) + "\n"


def of_names(collections: Sequence[Values], c: Colours = PLAIN) -> str:
    """Return the names of the collections with the number of their files."""
    if not collections:
        return NO_COLLECTIONS
    lines = [
        f"  {c.dim}qmd://{c.reset}{c.cyan}{visible(each['name'])}/{c.reset}  "
        f"{c.dim}({each['documents']} files){c.reset}\n"
        for each in collections
    ]
    return f"{c.bold}Collections:{c.reset}\n\n{''.join(lines)}"


def of_files(listed: Values, now: float, c: Colours = PLAIN) -> str:
    """Return a list of the documents of a collection."""
    if not listed["documents"]:
        folder = visible(f"{listed['collection']}/{listed['folder']}")
        return f"No files found under qmd://{folder}\n"
    sizes = [size(each["size"]) for each in listed["documents"]]
    width = max(map(len, sizes))
    lines = []
    for written, each in zip(sizes, listed["documents"], strict=True):
        when = date(each["modified"], now)
        name = f"{c.dim}{SCHEME}{c.reset}{visible(each['key'])}"
        lines.append(f"{written:>{width}}  {when}  {name}\n")
    return "".join(lines)


def of_contexts(listed: Sequence[Sequence[str]], c: Colours = PLAIN) -> str:
    """Return all contexts, by collection."""
    if not listed:
        return "No contexts configured. Use 'qmd context add' to add one.\n"
    parts = ["", f"{c.bold}Configured Contexts{c.reset}", ""]
    shown = ""
    for collection, path, text in listed:
        if collection != shown:
            parts.append(f"{c.cyan}{visible(collection)}{c.reset}")
            shown = collection
        indented = readable(text).replace("\n", "\n    ")
        parts += [f"  {visible(path)}", f"    {c.dim}{indented}{c.reset}"]
    return "\n".join(parts) + "\n"


def of_lacking(lacking: Values, c: Colours = PLAIN) -> str:
    """Return the collections and folders that have no context."""
    if not lacking["collections"] and not lacking["folders"]:
        return f"\n{c.green}✓{c.reset} All collections and folders have context.\n\n"
    parts = [""]
    if lacking["collections"]:
        parts += [f"{c.yellow}Collections without any context:{c.reset}", ""]
    for collection, count in lacking["collections"]:
        name = visible(collection)
        suggestion = f'qmd context add qmd://{name}/ "Description of {name}"'
        parts.append(f"{c.cyan}{name}{c.reset} {c.dim}({count} documents){c.reset}")
        parts += [f"  {c.dim}Suggestion: {suggestion}{c.reset}", ""]
    if lacking["folders"]:
        parts += [f"{c.yellow}Top-level directories without context:{c.reset}", ""]
    for collection, folders in lacking["folders"]:
        name = visible(collection)
        parts.append(f"{c.cyan}{name}{c.reset}")
        for folder in map(visible, folders):
            suggestion = f'qmd context add qmd://{name}/{folder} "Description of {folder}"'
            parts += [f"  {folder}", f"    {c.dim}Suggestion: {suggestion}{c.reset}"]
        parts.append("")
    return "\n".join(parts) + "\n"


def of_update(done: Values, c: Colours = PLAIN) -> str:
    """Return what an update has changed."""
    collections = done["collections"]
    if not collections:
        return "No collections found. Run 'qmd collection add .' to index markdown files.\n"
    parts = [f"{c.bold}Updating {len(collections)} collection(s)...{c.reset}", ""]
    for number, each in enumerate(collections, 1):
        name, pattern = visible(each["name"]), visible(each["pattern"])
        place = f"{c.cyan}[{number}/{len(collections)}]{c.reset}"
        parts.append(f"{place} {c.bold}{name}{c.reset} {c.dim}({pattern}){c.reset}")
        if each["pulled"]:
            parts += [f"    {line}" for line in readable(each["pulled"]).split("\n")]
        parts += [f"Collection: {visible(each['path'])} ({pattern})", ""]
        if each["problem"]:
            parts += [f"{c.yellow}Problem: {visible(each['problem'])}{c.reset}", ""]
        else:
            parts += [of_counts(each), ""]
    if any(each["problem"] for each in collections):
        parts.append(f"{c.yellow}Not all collections could be updated.{c.reset}")
    else:
        parts.append(f"{c.green}✓ All collections updated.{c.reset}")
    if done["unembedded"]:
        count = done["unembedded"]
        parts += ["", f"Run 'qmd embed' to update embeddings ({count} unique hashes need vectors)"]
    return "\n".join(parts) + "\n"


def of_counts(each: Values) -> str:
    """Return how many documents of a collection an update has changed."""
    return (
        f"Indexed: {each['new']} new, {each['updated']} updated, {each['unchanged']} unchanged, "
        f"{each['removed']} removed"
    )


def size(count: int) -> str:
    """Return a number of bytes with its unit, such as "1.5 MB"."""
    if count < _KILOBYTE:
        return f"{count} B"
    for unit, times in (("KB", _KILOBYTE), ("MB", _KILOBYTE**2)):
        if count / times < _KILOBYTE:
            return f"{count / times:.1f} {unit}"
    return f"{count / _KILOBYTE**3:.1f} GB"


def since(moment: float, now: float) -> str:
    """Return how long ago something was; if it is more than a year, its day instead.

    Programs that pack files give them a time of their own, such as npm a day of 1985.
    """
    return ago(now - moment) if now - moment < _YEAR else f"{_local(moment):%Y-%m-%d}"


def ago(seconds: float) -> str:
    """Return how long ago something was, such as "5m ago"."""
    passed = max(int(seconds), 0)
    if passed < _MINUTE:
        return f"{passed}s ago"
    if passed < _HOUR:
        return f"{passed // _MINUTE}m ago"
    return f"{passed // _HOUR}h ago" if passed < _DAY else f"{passed // _DAY}d ago"


def date(moment: float, now: float) -> str:
    """Return a day with its time; if it is more than half a year ago, with its year instead."""
    at = _local(moment)
    day = f"{_MONTHS[at.month - 1]} {at.day:>2}"
    if now - moment > _HALF_A_YEAR:
        return f"{day}  {at.year}"
    return f"{day} {at:%H:%M}"


def _local(moment: float) -> datetime:
    """Return a moment by the clock on the wall, without a time zone."""
    # Windows knows no time zone before 1970.
    offset = time.localtime(max(moment, 0)).tm_gmtoff
    return datetime(1970, 1, 1) + timedelta(seconds=moment + offset)
