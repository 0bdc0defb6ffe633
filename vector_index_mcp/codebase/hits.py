"""The models of the answer of `search_index`. They import little, since commands wait for that.

The tool sends a whole SearchResult only if `verbose`; `vector-index-mcp search --json` prints it.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from vector_index_mcp.codebase.behind import is_behind
from vector_index_mcp.errors import quoted

Mode: TypeAlias = Literal["hybrid", "lexical"]
"""hybrid: by words and by meaning; lexical: by words only."""
Detail: TypeAlias = Literal["full", "snippets", "locations"]
"""How much of a hit is shown: the whole chunk, its most relevant lines, or only its place."""
MOST_NAMES = 8
"""How many names that a hit defines are shown."""
_DOUBT = "No result is likely to be what you look for; other words may find more."


class FileMetadata(BaseModel):
    """The file a chunk comes from."""

    original_path: str = Field(description="Path relative to the project, as seen on disk")


class Reasons(BaseModel):
    """Where rank and score of a hit come from. The best chunk of an answer has 1 as `chunk`."""

    words: float = Field(description="BM25 score, relative to the best candidate's")
    meaning: float | None = Field(
        description="Cosine, 0 to 1 over the candidates; null if it was not found by meaning"
    )
    factors: dict[str, float] = Field(description="What raised or lowered both, by signal")
    chunk: float = Field(description="All of these together, relative to the best chunk")
    file: dict[str, float] = Field(
        description="What speaks for its file, in logits; empty if only chunks were ranked"
    )
    in_file: dict[str, float] = Field(
        {}, description="What speaks for it beside other chunks of its file; empty as `file` is"
    )
    likelihood: dict[str, float] = Field(description="The terms of the score, in logits")
    judged: float | None = Field(None, description="The cross-encoder's score, if it ranked it")


class SearchHit(BaseModel):
    """One chunk that answers the query."""

    file_path: str = Field(description="Path relative to the project, with forward slashes")
    start_line: int = Field(description="First line that is shown, 1-based")
    end_line: int = Field(description="Last line of the chunk, or of a snippet of it, inclusive")
    score: float = Field(description="0 to 1: about how often such a hit is the right one")
    language: str
    scope: str = Field(
        description="The definitions or sections it lies in: class Foo › function bar"
    )
    symbols: list[str] = Field(description="The names this chunk defines")
    is_stale: bool = Field(
        description="Whether the file changed since it was indexed; it is being indexed again"
    )
    is_cut: bool = Field(
        description="Whether lines of the chunk are left out, for detail or max_tokens"
    )
    is_masked: bool = Field(
        False, description="Whether something in the text looked like a credential and was masked"
    )
    also: list[str] = Field(
        [], description="Other lines of the file that answer the query, with what is defined there"
    )
    extracted_text_chunk: str = Field(
        description="The chunk as in the file, credentials masked; empty if only places are wanted"
    )
    document_id: str
    content_hash: str = Field(description="SHA-256 of the whole file when it was indexed")
    last_modified_timestamp: float = Field(description="The file's mtime, Unix seconds")
    chunk_index: int = Field(description="Zero-based position of the chunk in its file")
    total_chunks: int
    metadata: FileMetadata
    why: Reasons | None = Field(
        default=None,
        exclude_if=lambda why: why is None,
        description="Only where an explanation is wanted",
    )

    @property
    def defines(self) -> list[str]:
        """The names that the chunk defines, without those of the scope that it lies in."""
        around = self.scope.split()
        return [name for name in self.symbols if name not in around]

    def compact(self) -> dict[str, Any]:
        """The fields that an agent needs, without false flags and empty values."""
        seen: dict[str, Any] = {
            "file_path": self.file_path,
            "start_line": self.start_line,
            "end_line": self.end_line,
            "score": round(self.score, 2),
            "scope": self.scope,
            "symbols": self.defines[:MOST_NAMES],
            "is_stale": self.is_stale,
            "is_cut": self.is_cut,
            "is_masked": self.is_masked,
            "also": self.also,
            "extracted_text_chunk": self.extracted_text_chunk,
        }
        return {name: value for name, value in seen.items() if not _is_empty(value)}


def _is_empty(value: object) -> bool:
    return value is False or value in ("", [])  # not `== False`: 0.0 equals False, and is a score


class SearchResult(BaseModel):
    """The answer of `search_index`, best hit first."""

    results: list[SearchHit]
    mode: Mode = Field(description="hybrid: by words and by meaning; lexical: by words only")
    is_pattern: bool = Field(
        False, description="Whether these are what the query matches as a regular expression"
    )
    absent: list[str] = Field(
        [], description="The identifiers of the query that no searched file contains"
    )
    missing: list[str] = Field(
        [], description="Other words of the query that no searched file contains"
    )
    no_file: str = Field(
        "", description="The path that the query is and that no file has; empty for none"
    )
    meant: dict[str, str] = Field(
        {}, description="Names and paths of the project that are spelled like one of these"
    )
    respelled: str = Field(
        "", description="The name that was searched instead of the query; empty for none"
    )
    is_unlikely: bool = Field(
        False, description="Whether not even the best hit is likely to answer the question"
    )
    why_none: str | None = Field(
        None, description="Why nothing is found, such as a filter that no file matches"
    )
    note: str | None = Field(
        None, description="What limits this answer, such as vectors that are not ready yet"
    )

    @property
    def miss(self) -> str:
        """The beginning of a sentence that names the identifiers in `absent`; empty for none."""
        names = " or ".join(f"`{name}`" for name in self.absent)
        return f"{self._no_file_contains} {names}{self._guess(self.absent)}" if names else ""

    @property
    def _no_file_contains(self) -> str:
        """The beginning of that sentence; files that have changed may contain the words by now."""
        if is_behind(self.note or "") or any(hit.is_stale for hit in self.results):
            return "When last indexed, no searched file contained"
        return "No searched file contains"

    def _guess(self, words: Sequence[str]) -> str:
        """The part of a sentence that names what may be meant by `words`."""
        names = " or ".join(f"`{self.meant[word]}`" for word in words if word in self.meant)
        return f" (did you mean {names}?)" if names and not self.respelled else ""

    @property
    def shown_instead(self) -> str:
        """What the hits are if no file contains an identifier of the query."""
        return f"results for `{self.respelled}`" if self.respelled else "nearest"

    @property
    def remarks(self) -> str:
        """Sentences about the answer as a whole; empty if there is nothing to note."""
        words = " or ".join(map(repr, self.missing)) + self._guess(self.missing)
        nowhere = f"{self._no_file_contains} {words}." if words else ""
        doubt = _DOUBT if self.is_unlikely else ""
        said = (self.why_none, nowhere, doubt, self._way_back, self._no_file, self.note)
        return " ".join(filter(None, said))

    @property
    def _no_file(self) -> str:
        """That no file has the path that the query is, and which one may be meant."""
        file = self.meant.get(self.no_file)
        meant = f"; the first result is {quoted(file)}" if file else ""
        return f"No file is called {quoted(self.no_file)}{meant}." if self.no_file else ""

    @property
    def _way_back(self) -> str:
        """What to do if the only word of the query is no slip of the hand; empty for a name's."""
        word = next(iter(self.absent), "")
        is_plain = word.isalpha() and word.islower()
        return f"If {word!r} is meant, ask in more words." if self.respelled and is_plain else ""

    @property
    def told(self) -> str:
        """All that there is to say of the answer as a whole, in sentences; empty for nothing."""
        article = "" if self.respelled else "the "
        instead = f"; these are {article}{self.shown_instead}" if self.results else ""
        miss = self.miss and f"{self.miss}{instead}."
        return " ".join(filter(None, (miss, self.remarks)))

    def compact(self) -> dict[str, Any]:
        """The fields that an agent needs."""
        absent = {"absent": self.absent} if self.absent else {}
        hits = [hit.compact() for hit in self.results]
        # Many agents see this form alone, in which nothing else says what `absent` means.
        return {**absent, "results": hits, "mode": self.mode, "note": self.told or None}
