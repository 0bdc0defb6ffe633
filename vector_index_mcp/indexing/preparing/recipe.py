"""Turns a text into the rows of an index. Pure."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from vector_index_mcp.engine import chunk, prose
from vector_index_mcp.engine.text import fields
from vector_index_mcp.engine.types import Chunk, Document, Entry, StoredChunk
from vector_index_mcp.files import secrets
from vector_index_mcp.files.conversion import CONVERTED
from vector_index_mcp.files.folder import Folders
from vector_index_mcp.files.language import VERSION as LANGUAGE_VERSION
from vector_index_mcp.files.language import language_of
from vector_index_mcp.files.read import Text


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows of a text."""

    document: Document
    details: str
    """Properties of the text as a whole, such as its title, as JSON; empty for code."""
    problem: str
    """Why the text was cut by its lines; empty if it was cut along its syntax."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a text is turned into chunks."""

    chunk_max_chars: int
    is_prose: bool = False
    """Whether texts are prose and not code; see `engine.prose`."""

    @property
    def version(self) -> str:
        """Changes whenever the same text would become other chunks."""
        kind = f" {prose.VERSION}" if self.is_prose else ""
        cut = f"{chunk.VERSION} {fields.VERSION} {LANGUAGE_VERSION}"
        return f"{cut} {secrets.VERSION}{kind} chars={self.chunk_max_chars}"

    def cut(self, key: str, text: Text, by_lines: str = "") -> Cut:
        """Cut a file's text into rows.

        Args:
            key: The file's key.
            text: The file's text.
            by_lines: Why to cut it by its lines; empty to cut it along its syntax.
        """
        language = language_of(key, text.text)
        if self.is_prose:
            # Converted files are Markdown by now; without conversion they were skipped.
            language = "markdown" if language in CONVERTED else language
            entries, details = self._prose(key, text.text, language)
            return Cut(_document(key, text, entries), details, "")
        chunks, problem = chunk.cut_text(
            text.text, "" if by_lines else language, self.chunk_max_chars
        )
        return Cut(_document(key, text, fields.entries(key, chunks)), "", by_lines or problem)

    def _prose(self, key: str, text: str, language: str) -> tuple[tuple[Entry, ...], str]:
        properties, first = prose.properties_of(key, text, language)
        chunks = prose.chunks_of(text, language, properties.title, first, self.chunk_max_chars)
        return prose.entries(key, chunks, properties), properties.dumped()

    def recut(self, key: str, stored: Sequence[StoredChunk], details: str) -> Document:
        """Make the document of a file under another key from its stored chunks.

        Args:
            key: The new key.
            stored: All chunks of the file in order, at least one.
            details: Properties of its text as a whole, see `Cut.details`.
        """
        chunks = [Chunk(c.text, c.start_line, c.end_line, c.scope, c.symbols) for c in stored]
        if self.is_prose:
            entries = prose.entries(key, chunks, prose.Properties.loaded(details, key))
        else:
            entries = fields.entries(key, chunks)
        first = stored[0]
        return Document(
            key=key,
            original_path=_original(key),
            content_hash=first.content_hash,
            modified=first.modified,
            language=first.language,
            entries=entries,
        )


def without_rows(key: str, content_hash: str, modified: float) -> Document:
    """The document of a file without text, so that rows of an earlier text go."""
    return Document(key, _original(key), content_hash, modified, language_of(key), ())


def _document(key: str, text: Text, entries: tuple[Entry, ...]) -> Document:
    return Document(
        key=key,
        original_path=_original(key),
        content_hash=text.content_hash,
        modified=text.stamp[1] / 1e9,
        language=language_of(key, text.text),
        entries=entries,
    )


def _original(key: str) -> str:
    return key.replace("/", os.sep)


def chunker_of(recipe: Recipe, folders: Folders) -> str:
    """The version of the chunker for the manifest: another version would make other chunks.

    It includes how a nameless folder is read. The manifest notes that of named folders one by one,
    since they come and go.
    """
    nameless = folders.of("")
    return f"{recipe.version} {nameless.reading.version}" if nameless else recipe.version
