"""Runs the commands of the documents: each asks the index and prints the answer.

The exit status is 0 for success, 1 for failure. Errors go to standard error.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from vector_index_mcp import __version__
from vector_index_mcp.console.documents import formats, masks, reports, usage
from vector_index_mcp.console.documents.arguments import (
    RELAYS,
    SERVER,
    Line,
    UsageError,
    is_relay,
    parse,
)
from vector_index_mcp.console.documents.desk import Desk
from vector_index_mcp.console.terminal import write
from vector_index_mcp.documents.lines import skipped_on_terminal
from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.documents.uris import SCHEME
from vector_index_mcp.errors import VectorIndexError
from vector_index_mcp.foreign import visible

_Run: TypeAlias = Callable[[Line, Desk], int]

_FEW, _MORE = 5, 20
"""How many documents a search prints for people, and for programs."""
_LEAST_MEANING = 0.3
"""The lowest score that `vsearch` prints by default."""
_LARGEST_BYTES = 10_240
"""The size of the largest document that `multi-get` prints by default."""


def run(arguments: Sequence[str], desk_of: Callable[[str], Desk]) -> int:
    """Run a command; returns the exit status.

    Args:
        arguments: The arguments after `documents`.
        desk_of: Makes the desk that answers, from the name of the set of collections.

    Raises:
        VectorIndexError: If an MCP client cannot be served.
    """
    try:
        line = parse(arguments)
        if line.flags & {"help", "version"} or not line.command:
            return _introduce(line)
        if line.command not in _COMMANDS:
            raise UsageError(usage.UNKNOWN_COMMAND.format(command=visible(line.command)))
        return _COMMANDS[line.command](line, desk_of(line.index))
    except UsageError as error:
        return _fail(str(error))
    except VectorIndexError as error:
        if is_relay(arguments):  # our caller also reports the error to the MCP client
            raise
        return _fail(f"{REMEDIES.message(error)}\n")


def _introduce(line: Line) -> int:
    if "help" not in line.flags and "version" in line.flags:
        _say(f"qmd (vector-index-mcp {__version__})\n")
        return 0
    _say(usage.HELP + usage.OURS)
    return 0 if "help" in line.flags else 1


def _say(text: str) -> None:
    write(text, end="")


def _fail(text: str) -> int:
    _warn(text)
    return 1


def _warn(text: str) -> None:
    write(visible(text, keep="\n\t"), sys.stderr, end="")


# -- finding ------------------------------------------------------------------------------------


def _search(line: Line, desk: Desk) -> int:
    query = " ".join(line.words)
    if not query.strip():
        raise UsageError(usage.SEARCH.format(command=line.command))
    wanted = _wanted(line, query)
    if line.text("mode") == "server":
        from vector_index_mcp.console.documents import rest

        port, token = line.whole("port"), desk.load_settings().http_token
        answer: Mapping[str, Any] = rest.search(line.command, wanted, port, token)
    else:
        answer = desk.ask(line.command, **wanted)
    if answer["lack"]:
        _warn(f"{answer['lack']}\n")
        return 0
    if note := answer.get("note"):
        _warn(f"{note}\n")
    hits = [formats.Hit.of(each) for each in answer["results"]]
    if not hits:
        _say("No results found.\n")
        return 0
    is_numbered = "line-numbers" in line.flags
    _say(formats.of_hits(hits, line.format, is_numbered=is_numbered, colours=desk.colours))
    return 0


def _wanted(line: Line, query: str) -> dict[str, Any]:
    if line.text("mode", "local") not in {"local", "server"}:
        raise UsageError(f"--mode is server or local, not {line.text('mode')!r}\n")
    usual = _MORE if line.format in {"json", "files"} else _FEW
    least = line.number("min-score")
    if least is None:
        least = _LEAST_MEANING if line.command == "vsearch" else 0.0
    return {
        "query": query,
        "limit": None if "all" in line.flags else line.whole("n") or usual,
        "min_score": least,
        "collection": line.text("collection"),
        "full": "full" in line.flags,
    }


# -- reading ------------------------------------------------------------------------------------


def _get(line: Line, desk: Desk) -> int:
    if not line.words:
        raise UsageError(usage.GET)
    found = desk.ask("get", file=line.words[0], here=str(desk.here), **_lines(line))
    if "missing" in found:
        reason = found.get("reason")  # a service of another version gives none
        lines = [f"Document not found: {found['missing']}", *filter(None, [reason])]
        return _fail("".join(f"{each}\n" for each in lines))
    if note := found.get("note"):  # a service of another version has none
        _warn(f"{note}\n")
    _say(formats.with_context(found["context"], found["body"], desk.colours))
    return 0


def _lines(line: Line) -> dict[str, Any]:
    return {
        "from": line.whole("from"),
        "lines": line.whole("l"),
        "numbered": "line-numbers" in line.flags,
    }


def _multi_get(line: Line, desk: Desk) -> int:
    if not line.words:
        raise UsageError(usage.MULTI_GET)
    pattern = ",".join(line.words)  # a shell may have expanded a glob to several names
    most = line.whole("max-bytes") or _LARGEST_BYTES
    found = desk.ask(
        "multi_get", pattern=pattern, here=str(desk.here), max_bytes=most, **_lines(line)
    )
    is_list = "," in pattern and not set("*?{") & set(pattern)
    documents = [_document(each, most, is_list=is_list) for each in found["documents"]]
    _say(formats.of_documents(documents, line.format, desk.colours) if documents else "")
    for error in found["errors"]:
        _warn(f"{error}\n")
    return 0 if documents else 1


def _document(each: Mapping[str, Any], most: int, *, is_list: bool) -> formats.Document:
    name = f"{SCHEME}{each['key']}" if is_list else each["key"].partition("/")[2]
    title, context = each["title"], each["context"]
    if "size" in each:
        skipped = skipped_on_terminal(name, each["size"], most)
        return formats.Document(name, title, context, "", skipped)
    return formats.Document(name, title, context, each["body"])


def _ls(line: Line, desk: Desk) -> int:
    if not line.words:
        _say(reports.of_names(desk.ask("status")["collections"], desk.colours))
    else:
        _say(reports.of_files(desk.ask("ls", path=line.words[0]), time.time(), desk.colours))
    return 0


def _status(line: Line, desk: Desk) -> int:
    if "watch" in line.flags:
        from vector_index_mcp.console.documents import watching

        return watching.run(desk.endpoint, desk.colours)
    state = desk.ask("status")
    if desk.endpoint.keeper is None and (lack := desk.endpoint.lack_of_space):
        _warn(f"{lack}\n")
    _say(reports.of_status(state, time.time(), desk.colours))
    return 0


# -- collections --------------------------------------------------------------------------------


def _collection(line: Line, desk: Desk) -> int:
    command, *words = line.words or ("undefined",)  # the original program prints this word
    if command == "list":
        collections = desk.ask("status")["collections"]
        _say(reports.of_collections(collections, time.time(), desk.colours))
    elif command == "add":
        _add(line, desk, words)
    elif command in {"remove", "rm"}:
        if not words:
            raise UsageError(usage.COLLECTION_REMOVE)
        count = desk.ask("remove", name=words[0])["documents"]
        _say(f"✓ Removed collection '{visible(words[0])}'\n  Deleted {count} documents\n")
    elif command in {"rename", "mv"}:
        if len(words) < 2:
            raise UsageError(usage.COLLECTION_RENAME)
        desk.ask("rename", name=words[0], new=words[1])
        old, new = map(visible, words[:2])
        _say(f"✓ Renamed collection '{old}' to '{new}'\n")
        _say(f"  Virtual paths updated: qmd://{old}/ → qmd://{new}/\n")
    else:
        raise UsageError(usage.UNKNOWN_SUBCOMMAND.format(command=visible(command)))
    return 0


def _add(line: Line, desk: Desk, words: Sequence[str]) -> None:
    path = _path(desk, words[0] if words else ".")
    name = line.text("name") or path.name
    added = desk.ask("add", name=name, path=str(path), pattern=line.text("mask") or None)
    counts = {"new": added["documents"], "updated": 0, "unchanged": 0, "removed": 0}
    _say(f"Creating collection '{visible(name)}'...\n")
    _say(f"Collection: {visible(str(path))} ({visible(added['pattern'])})\n\n")
    _say(f"{reports.of_counts(counts)}\n\n")
    _say(f"✓ Collection '{visible(name)}' created successfully\n")
    if not added["documents"]:
        _warn(f"{masks.hint(path, added['pattern'])}\n")


def _path(desk: Desk, written: str) -> Path:
    return Path(os.path.normpath(desk.here / written))


# -- contexts -----------------------------------------------------------------------------------


def _context(line: Line, desk: Desk) -> int:
    command, *words = line.words or ("",)
    if command == "add":
        _add_context(desk, words)
    elif command == "list":
        _say(reports.of_contexts(desk.ask("contexts")["contexts"], desk.colours))
    elif command == "check":
        _say(reports.of_lacking(desk.ask("check_contexts"), desk.colours))
    elif command in {"rm", "remove"}:
        if not words:
            raise UsageError(usage.CONTEXT_REMOVE)
        target = desk.ask("remove_context", path=words[0], here=str(desk.here))
        removed = f"context for: {_about(target)}" if target["collection"] else "global context"
        _say(f"✓ Removed {removed}\n")
    elif not command:
        raise UsageError(usage.CONTEXT)
    else:
        raise UsageError(usage.CONTEXT_SUBCOMMAND.format(command=visible(command)))
    return 0


def _add_context(desk: Desk, words: Sequence[str]) -> None:
    path, text = _path_and_text(desk, words)
    if not text.strip():
        raise UsageError(usage.CONTEXT_ADD)
    target = desk.ask("add_context", path=path, text=text, here=str(desk.here))
    done = f"Added context for: {_about(target)}" if target["collection"] else "Set global context"
    _say(f"✓ {done}\nContext: {formats.readable(text)}\n")


def _path_and_text(desk: Desk, words: Sequence[str]) -> tuple[str, str]:
    """Return the path and the text of a context; people write them in either order."""
    if len(words) < 2:
        return ".", " ".join(words)
    if len(words) == 2 and _is_path(desk, words[1]) and not _is_path(desk, words[0]):
        return words[1], words[0]
    return words[0], " ".join(words[1:])


def _is_path(desk: Desk, word: str) -> bool:
    return word.startswith((SCHEME, "/")) or os.path.exists(desk.here / word)


def _about(target: Mapping[str, Any]) -> str:
    return visible(f"{SCHEME}{target['collection']}/{target['prefix']}")


# -- indexing -----------------------------------------------------------------------------------


def _update(line: Line, desk: Desk) -> int:
    done = desk.ask("update", pull="pull" in line.flags)
    _say(reports.of_update(done, desk.colours))
    return 1 if any(each["problem"] for each in done["collections"]) else 0


def _embed(line: Line, desk: Desk) -> int:
    done = desk.ask("embed", anew="force" in line.flags)
    if not done["new"]:
        _say("✓ All content hashes already have embeddings.\n")
        return 0
    took = f"{done['seconds']:.0f}s"
    _say(f"✓ Done! Embedded {done['new']} chunks from {done['documents']} documents in {took}\n")
    return 0


def _cleanup(_: Line, desk: Desk) -> int:
    # We cache no answers of a language model, and a vector is removed with its chunk. The printed
    # lines are those of the original program.
    desk.ask("cleanup")
    _say("✓ Cleared 0 cached API responses\nNo orphaned embeddings to remove\n")
    _say("✓ Database vacuumed\n")
    return 0


# -- services -----------------------------------------------------------------------------------


def _relay(desk: Desk) -> int:
    from vector_index_mcp.background import relay

    return relay.run(desk.endpoint, desk.host_arguments)


def _stop(_: Line, desk: Desk) -> int:
    from vector_index_mcp.console import services

    return services.stop_at(desk.endpoint)


def _ui(line: Line, desk: Desk) -> int:
    from vector_index_mcp.console import ui

    return ui.run(desk.endpoint, desk.host_arguments, opens_browser="no-open" not in line.flags)


def _logs(line: Line, desk: Desk) -> int:
    from vector_index_mcp.console import services

    return services.logs_at(desk.endpoint, follow="follow" in line.flags)


def _doctor(line: Line, desk: Desk) -> int:
    return desk.examine(line.format == "json")


def _server(line: Line, desk: Desk) -> int:
    from vector_index_mcp.console.documents import server

    return server.run(line.rest, desk.home, desk.host_arguments)


_COMMANDS: Mapping[str, _Run] = {
    "search": _search,
    "vsearch": _search,
    "query": _search,
    "get": _get,
    "multi-get": _multi_get,
    "ls": _ls,
    "status": _status,
    "collection": _collection,
    "context": _context,
    "update": _update,
    "index": _update,
    "embed": _embed,
    "cleanup": _cleanup,
    "stop": _stop,
    "logs": _logs,
    "ui": _ui,
    "doctor": _doctor,
    SERVER: _server,
    **dict.fromkeys(RELAYS, lambda _, desk: _relay(desk)),
}
