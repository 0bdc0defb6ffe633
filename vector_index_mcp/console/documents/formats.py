"""Formats hits and documents for the command line. Pure.

It makes text that others wrote safe for a terminal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Any
from xml.sax.saxutils import escape

from vector_index_mcp.console.colours import PLAIN, Colours
from vector_index_mcp.documents.uris import SCHEME
from vector_index_mcp.foreign import as_json, visible

_XML = {'"': "&quot;", "'": "&apos;"}
_HIGH, _MIDDLE = 0.7, 0.4  # from these scores on, a score is green or yellow


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that a search found."""

    docid: str
    key: str
    title: str
    score: float
    context: str
    line: int
    """The number of the line that fits the query best."""
    has_words: bool
    """Whether the snippet has any word of the query."""
    header: str
    """The position of the snippet in the document, as in a diff; empty if it is unknown."""
    start: int
    """The number of the snippet's first line."""
    lines: tuple[str, ...]
    """The lines of the snippet."""
    body: str | None = None
    """The whole document; None to show the snippet."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Hit":
        """Return the hit that the answer to a call describes."""
        return cls(**{**values, "lines": tuple(values["lines"])})

    @property
    def file(self) -> str:
        """The virtual path of the document, not yet safe for a terminal."""
        return f"{SCHEME}{self.key}"

    def shown(self, *, is_numbered: bool) -> str:
        """Return the snippet or the whole document, with line numbers if `is_numbered`."""
        if self.body is not None:
            lines, start, header = self.body.split("\n"), 1, ""
        else:
            lines, start, header = [*self.lines], self.start, self.header
        if is_numbered:
            lines = [f"{number}: {line}" for number, line in enumerate(lines, start)]
        text = "\n".join(lines)
        # An empty line under the header is the snippet's own first line.
        return f"{header}\n{text}" if header else text


def of_hits(
    hits: Sequence[Hit], kind: str, *, is_numbered: bool = False, colours: Colours = PLAIN
) -> str:
    """Return the hits of a search in one of the formats.

    Args:
        hits: The hits, best first; at least one.
        kind: `cli`, `json`, `csv`, `md`, `xml` or `files`.
        is_numbered: Whether to print line numbers.
        colours: The colours of the terminal.
    """
    if kind == "json":
        return _json([_json_of(hit, is_numbered) for hit in hits])
    if kind == "csv":
        columns = ["docid", "score", "file", "title", "context", "line", "snippet"]
        return _csv([columns, *(_row(hit, is_numbered) for hit in hits)])
    if kind == "files":
        return "".join(f"{hit.docid},{_decimals(hit.score, 2)},{_file(hit)}\n" for hit in hits)
    if kind == "md":
        return "".join(_md(hit, is_numbered) for hit in hits)
    if kind == "xml":
        return "".join(_xml(hit, is_numbered) for hit in hits)
    return "\n\n".join(_readable(hit, is_numbered, colours) for hit in hits)


def of_documents(documents: Sequence["Document"], kind: str, colours: Colours = PLAIN) -> str:
    """Return several documents in one of the formats; `kind` as in `of_hits`."""
    if kind == "json":
        return _json([each.values for each in documents])
    if kind == "csv":
        rows = [_document_row(each) for each in documents]
        return _csv([["file", "title", "context", "skipped", "body"], *rows])
    if kind == "files":
        return "".join(_document_file(each) for each in documents)
    if kind == "md":
        return "".join(_document_md(each) for each in documents)
    if kind == "xml":
        parts = "".join(_document_xml(each) for each in documents)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<documents>\n{parts}</documents>\n'
    return "".join(_document_readable(each, colours) for each in documents)


@dataclass(frozen=True, slots=True)
class Document:
    """One of several documents that were asked for."""

    file: str
    """The document's name in the answer."""
    title: str
    context: str
    body: str
    skipped: str = ""
    """Why the document is left out, in brackets; empty if it is not."""

    @property
    def values(self) -> dict[str, Any]:
        """The document for JSON."""
        values: dict[str, Any] = {"file": self.file, "title": self.title}
        if self.context:
            values["context"] = self.context
        return values | self._content

    @property
    def _content(self) -> dict[str, Any]:
        if not self.skipped:
            return {"body": self.body}
        return {"skipped": True, "reason": self.reason}

    @property
    def reason(self) -> str:
        """Why the document is left out, without brackets."""
        return self.skipped.removeprefix("[SKIPPED: ").removesuffix("]")


def readable(text: str) -> str:
    """Return a text of several lines, safe for a terminal."""
    return visible(text, keep="\n\t")


def _json(values: Any) -> str:
    return f"{as_json(values, indent=2)}\n"


def _json_of(hit: Hit, is_numbered: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "docid": hit.docid,
        "score": floor(hit.score * 100 + 0.5) / 100,
        "file": hit.file,
        "title": hit.title,
    }
    if hit.context:
        values["context"] = hit.context
    kind = "snippet" if hit.body is None else "body"
    return values | {kind: hit.shown(is_numbered=is_numbered)}


def _row(hit: Hit, is_numbered: bool) -> list[str]:
    text = hit.shown(is_numbered=is_numbered)
    score = _decimals(hit.score, 4)
    return [hit.docid, score, hit.file, hit.title, hit.context, str(hit.line), text]


def _csv(rows: Sequence[Sequence[str]]) -> str:
    return "".join(",".join(map(_field, row)) + "\n" for row in rows)


def _field(value: str) -> str:
    value = readable(value)
    return _quoted(value) if any(sign in value for sign in ',"\n') else value


def _quoted(value: str) -> str:
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def _file(hit: Hit) -> str:
    context = f",{_quoted(readable(hit.context))}" if hit.context else ""
    return f"{visible(hit.file)}{context}"


def _md(hit: Hit, is_numbered: bool) -> str:
    context = f"**context:** {readable(hit.context)}\n" if hit.context else ""
    text = readable(hit.shown(is_numbered=is_numbered))
    return f"---\n# {visible(hit.title)}\n**docid:** `{hit.docid}`\n{context}\n{text}\n\n"


def _xml(hit: Hit, is_numbered: bool) -> str:
    title = f' title="{_escaped(hit.title)}"' if hit.title else ""
    context = f' context="{_escaped(hit.context)}"' if hit.context else ""
    text = _escaped(hit.shown(is_numbered=is_numbered))
    name = _escaped(hit.file)
    return f'<file docid="{hit.docid}" name="{name}"{title}{context}>\n{text}\n</file>\n\n'


def _escaped(text: str) -> str:
    return escape(readable(text), _XML)


def _readable(hit: Hit, is_numbered: bool, c: Colours) -> str:
    line = f":{hit.line}" if hit.has_words else ""
    parts = [f"{c.cyan}{visible(hit.file)}{c.dim}{line}{c.reset} {c.dim}{hit.docid}{c.reset}"]
    if hit.title:
        parts.append(f"{c.bold}Title: {visible(hit.title)}{c.reset}")
    if hit.context:
        parts.append(f"{c.dim}Context: {readable(hit.context)}{c.reset}")
    tint = c.green if hit.score >= _HIGH else c.yellow if hit.score >= _MIDDLE else c.dim
    percent = f"{floor(hit.score * 100 + 0.5):>3}%"
    parts += [f"Score: {tint}{percent}{c.reset}", "", readable(hit.shown(is_numbered=is_numbered))]
    return "\n".join(parts) + "\n"


def _decimals(score: float, places: int) -> str:
    return f"{floor(score * 10**places + 0.5) / 10**places:.{places}f}"


def _document_row(each: Document) -> list[str]:
    is_skipped = "true" if each.skipped else "false"
    return [each.file, each.title, each.context, is_skipped, each.reason or each.body]


def _document_file(each: Document) -> str:
    context = f",{_quoted(readable(each.context))}" if each.context else ""
    return f"{visible(each.file)}{context}{',[SKIPPED]' if each.skipped else ''}\n"


def _document_md(each: Document) -> str:
    parts = [f"## {visible(each.file)}\n"]
    if each.title and each.title != each.file:
        parts.append(f"**Title:** {visible(each.title)}\n")
    if each.context:
        parts.append(f"**Context:** {readable(each.context)}\n")
    body = readable(each.body)
    parts.append(f"> {visible(each.reason)}\n" if each.skipped else f"```\n{body}\n```\n")
    return "\n".join(parts) + "\n"


def _document_xml(each: Document) -> str:
    tags = [("file", each.file), ("title", each.title)]
    if each.context:
        tags.append(("context", each.context))
    if each.skipped:
        tags += [("skipped", "true"), ("reason", each.reason)]
    else:
        tags.append(("body", each.body))
    inside = "".join(f"    <{tag}>{_escaped(text)}</{tag}>\n" for tag, text in tags)
    return f"  <document>\n{inside}  </document>\n"


def _document_readable(each: Document, c: Colours) -> str:
    rule = "=" * 60
    head = f"\n{rule}\nFile: {visible(each.file)}\n{rule}\n\n"
    if each.skipped:
        return f"{head}{visible(each.skipped)}\n"
    return head + with_context(each.context, each.body, c)


def with_context(context: str, body: str, c: Colours = PLAIN) -> str:
    """Return a document's lines below its context, if it has one."""
    head = f"{c.dim}Folder Context: {readable(context)}{c.reset}\n---\n\n" if context else ""
    return f"{head}{readable(body)}\n"
