"""Makes the structured answer of a search from what the service has found."""

import json
import re
from collections.abc import Collection, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING

from vector_index_mcp.codebase import budget
from vector_index_mcp.codebase.cited import line_meant, places_in
from vector_index_mcp.codebase.hits import Detail, FileMetadata, Reasons, SearchHit, SearchResult
from vector_index_mcp.codebase.lines import best_lines
from vector_index_mcp.codebase.places import Place
from vector_index_mcp.engine.ranking.signals import prefix_of, prefixes_of
from vector_index_mcp.engine.text.words import last_name
from vector_index_mcp.engine.types import SCOPE_SEPARATOR
from vector_index_mcp.errors import counted
from vector_index_mcp.files.language import is_prose

if TYPE_CHECKING:  # imports LanceDB, for which `tools` must not wait
    from vector_index_mcp.codebase.answer import Answer
    from vector_index_mcp.engine.types import Hit, StoredChunk, Why

_MASKED = re.compile(r"\*{4}")
"""How a masked credential begins. Other texts may contain it, too: use it only for files in which
credentials were masked."""
_MOST_OTHERS, _NAMES_OF_OTHER, _LONGEST_HEADING = 3, 2, 60
_AROUND_CHARS = 120  # of an answer without its hits, for the names of its fields


def search_result(
    answer: "Answer",
    max_tokens: int,
    detail: Detail = "full",
    *,
    of_a_miss: Detail | None = None,
    explain: bool = False,
) -> SearchResult:
    """The result of a search, as the tool returns it.

    Args:
        answer: The answer of the search.
        max_tokens: About how long the result may be.
        detail: How much of each hit is shown.
        of_a_miss: How much instead if no hit is likely to be right, but for the first one unless
            an identifier stands nowhere; None for no difference.
        explain: Whether to explain the rank of each hit.
    """
    details = [detail] * len(answer.hits)
    if of_a_miss is not None and answer.is_miss:
        # A doubt about a question is a guess: the first hit has the answer now and then.
        spared = 0 if answer.absent else 1
        details[spared:] = [of_a_miss] * (len(details) - spared)
    shown_ids = {hit.chunk.document_id for hit in answer.hits}
    first_of = {hit.chunk.key: hit for hit in reversed(answer.hits)}
    asked = frozenset(map(prefix_of, answer.searched.subject))
    places = places_in(answer.searched.text) if "snippets" in details else []
    made = partial(_hit, answer=answer, places=places, explain=explain)
    result = SearchResult(
        results=[
            made(
                hit,
                detail=each,
                also=_also(hit, shown_ids, asked) if hit is first_of[hit.chunk.key] else [],
            )
            for hit, each in zip(answer.hits, details, strict=True)
        ],
        mode="hybrid" if answer.is_hybrid else "lexical",
        is_pattern=answer.is_pattern,
        absent=list(answer.absent),
        missing=list(answer.missing),
        no_file=answer.no_file,
        meant=dict(answer.meant),
        respelled=answer.respelled,
        is_unlikely=answer.is_unlikely,
        why_none=answer.why_none or None,
        note=answer.note or None,
    )
    return fitted(result, max_tokens)


def fitted(result: SearchResult, max_tokens: int) -> SearchResult:
    """Shorten a result to fit: texts are shortened before hits are left out.

    Args:
        result: The whole result.
        max_tokens: About how long it may be.
    """
    hits, notes = result.results, [result.note] if result.note else []
    texts = [hit.extracted_text_chunk for hit in hits]
    taken = sum(map(len, (result.remarks, result.miss, *result.absent))) + _AROUND_CHARS
    most = max_tokens * budget.CHARS_PER_TOKEN - taken
    shown = budget.fit(texts, [_frame(hit) for hit in hits], most)
    kept = [
        hit
        if text == whole
        else hit.model_copy(update={"is_cut": True, "extracted_text_chunk": text})
        for hit, text, whole in zip(hits, shown, texts, strict=False)
    ]
    if any(text != whole for text, whole in zip(shown, texts, strict=False)):
        notes.append("Texts were shortened to fit max_tokens; the files have the rest.")
    if len(kept) < len(hits):
        notes.append(f"{counted(len(hits) - len(kept), 'more result')} did not fit max_tokens.")
    return result.model_copy(update={"results": kept, "note": " ".join(notes) or None})


def _frame(hit: SearchHit) -> int:
    """The number of characters that a hit takes in JSON beside its text."""
    framed = {**hit.compact(), "is_cut": True, "extracted_text_chunk": ""}
    return len(json.dumps(framed, ensure_ascii=False)) + len(", ")


def _also(hit: "Hit", shown_ids: Collection[str], asked: Set[str]) -> list[str]:
    """The next best chunks of a hit's file: lines, and the names that they define."""
    others = [chunk for chunk in hit.also if chunk.document_id not in shown_ids]
    return [_place(chunk, asked) for chunk in others[:_MOST_OTHERS]]


def _place(chunk: "StoredChunk", asked: Set[str]) -> str:
    """The lines of a chunk, and what it defines, first what has one of the prefixes in `asked`."""
    inner = chunk.scope.rpartition(SCOPE_SEPARATOR)[2]
    # Of prose it is a heading, of code a kind and a name.
    around = inner[:_LONGEST_HEADING] if is_prose(chunk.language) else inner.rpartition(" ")[2]
    names = sorted(chunk.symbols, key=lambda name: asked.isdisjoint(prefixes_of(name)))
    name = ", ".join(names[:_NAMES_OF_OTHER]) or around
    return f"{chunk.start_line}-{chunk.end_line} {name}".rstrip()


def _hit(
    hit: "Hit",
    *,
    answer: "Answer",
    detail: Detail,
    also: list[str],
    places: Sequence[Place],
    explain: bool,
) -> SearchHit:
    chunk = hit.chunk
    start, end, text, symbols = chunk.start_line, chunk.end_line, chunk.text, chunk.symbols
    if detail == "locations":
        text = ""
    elif detail == "snippets":
        at = line_meant(places, chunk.key, start, end)
        first, text = best_lines(text, answer.searched, chunk.symbols, at)
        start += first
        end = start + text.rstrip("\n").count("\n")
        symbols = tuple(name for name in symbols if _may_show(text, chunk.text, last_name(name)))
    return SearchHit(
        file_path=chunk.key,
        start_line=start,
        end_line=end,
        score=round(hit.likelihood, 4),
        language=chunk.language,
        scope=chunk.scope,
        symbols=list(symbols),
        is_stale=chunk.key in answer.stale,
        is_cut=detail == "snippets" and text.rstrip("\n") != chunk.text.rstrip("\n"),
        is_masked=chunk.key in answer.masked and _MASKED.search(text) is not None,
        also=[] if chunk.key in answer.stale else also,
        extracted_text_chunk=text,
        document_id=chunk.document_id,
        content_hash=chunk.content_hash,
        last_modified_timestamp=chunk.modified,
        chunk_index=chunk.chunk_index,
        total_chunks=chunk.total_chunks,
        metadata=FileMetadata(original_path=chunk.original_path),
        why=_reasons(hit.why) if explain and hit.why else None,
    )


def _may_show(snippet: str, text: str, name: str) -> bool:
    """Whether a snippet has a name; also if not even the whole text does, as people write it."""
    return _has_word(snippet, name) or not _has_word(text, name)


def _has_word(text: str, name: str) -> bool:
    """Whether a name stands in a text, and not only as a part of another one."""
    alone = rf"(?<!\w){re.escape(name)}(?!\w)"
    return name in text and re.search(alone, text) is not None


def _reasons(why: "Why") -> Reasons:
    return Reasons(
        words=round(why.words, 3),
        meaning=None if why.meaning is None else round(why.meaning, 3),
        factors=_rounded(why.factors),
        chunk=round(why.chunk, 3),
        file=_rounded(why.file),
        in_file=_rounded(why.in_file),
        likelihood=_rounded(why.likelihood),
        judged=None if why.judged is None else round(why.judged, 3),
    )


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in values.items()}
