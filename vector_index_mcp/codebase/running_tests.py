"""Answers how the project's tests are run, from where projects write it.

Each file of tests has the words of "how do I run the tests", and what says it may have none of them
but `pytest`. So the guide for contributors, the README, and the files of tools are looked at.
"""

import re
from collections.abc import Iterable, Sequence

from vector_index_mcp.codebase.lead import led
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import SCOPE_SEPARATOR, Hit, StoredChunk
from vector_index_mcp.indexing.ledger import Ledger

_TESTS = frozenset("test tests testing".split())
_RUNNING = frozenset("command commands execute how launch run running start".split())
_AROUND = frozenset(
    "a all an are can ci codebase could do does end every for full functional i in integration is "
    "it its library local locally my of on our package program project repo repository should "
    "single suite suites that the there these this to unit up us want we what which whole with you "
    "your".split()
)
"""Words of such questions that name no subject."""

_GUIDE = re.compile(
    r"(?:(?:\.github|docs?|\.?dev(?:elopment)?)/(?:[^/]+/)?)?"
    r"(?:contributing|developing|development|developers?|hacking)(?:\.\w+)?"
    r"|testing\.\w+|(?:agents|claude|gemini)\.md|tests?/(?:readme|testing)(?:\.\w+)?",
    re.IGNORECASE,
)
"""The texts for people and agents who work on the project."""
_README = re.compile(r"readme(?:\.\w+)?", re.IGNORECASE)
_COMMAND = re.compile(
    r"\b(?:pytest|tox|nox|rspec|ctest|phpunit|busted|jest|vitest|-m unittest)\b"
    r"|\b(?:make|npm|npm run|yarn|pnpm|bun|deno|cargo|go|mvn|rake|mix|dotnet|swift|just|task"
    r"|composer|gradlew?|lein|sbt|stack|cabal|zig build|dune|meson)(?: -\S{1,40})?"
    r" (?:tests?|check)\b"
    r"|\b[Rr]un(?:s|ning)? (?:(?:all|the|our|unit|these) ){1,3}tests\b"
)
"""What somebody types to run tests, or a sentence about it."""
_HEADING = re.compile(
    r"^(?:#{1,6}|={1,6}) .{0,80}\btest(?:s|ing)?\b"
    r"|^.{0,80}\btest(?:s|ing)?\b.{0,80}\n[=~^\"'*-]{3}",
    re.IGNORECASE | re.MULTILINE,
)
"""A heading of a section about tests, in Markdown, AsciiDoc or reStructuredText."""
_UNDERLINE = re.compile(r"[=~^\"'*-]{3}")
_TOOLS = {
    re.compile(r"(?:GNU)?[Mm]akefile"): re.compile(r"^(?:tests?|check)\s?:", re.MULTILINE),
    re.compile(r"\.?[Jj]ustfile|[Tt]askfile\.ya?ml"): re.compile(
        r"^\s{0,8}tests?\b[^=\n]*:", re.MULTILINE
    ),
    re.compile(r"package\.json|composer\.json"): re.compile(r'^\s{0,8}"tests?"\s?:', re.MULTILINE),
    re.compile(r"tox\.ini|setup\.cfg"): re.compile(r"^\[(?:testenv|tool:pytest)", re.MULTILINE),
    re.compile(r"noxfile\.py"): re.compile(r"^def \w{0,20}test", re.MULTILINE),
    re.compile(r"pyproject\.toml"): re.compile(r"^\[tool\.(?:tox|pytest)", re.MULTILINE),
}
"""By the files of tools, what stands in them where they run tests."""
_MOST_FILES = 40  # that are read
_LIKELY = 0.8  # looked at for 47 packages, not measured: no labelled question is of this kind
_NAME = "running tests"  # in explanations


_ASKS_WHETHER = frozenset({"is", "there"})


def asks_for_tests(query: Query) -> bool:
    """Return whether a query asks how the tests are run, and nothing else."""
    said = frozenset(token.lower() for token in query.tokens)
    asks = not (said.isdisjoint(_TESTS) or said.isdisjoint(_RUNNING) or said >= _ASKS_WHETHER)
    return asks and said <= _AROUND | _RUNNING | _TESTS


async def saying_how(
    hits: Sequence[Hit], limit: int, store: Store, ledger: Ledger
) -> list[Hit] | None:
    """Return `hits` behind the chunk that says best how the tests are run.

    Args:
        hits: What the search has found, best first.
        limit: How many hits at most.
        store: The store that was searched.
        ledger: What is known of the project's files.

    Returns:
        At most `limit` hits; None if no chunk says it.

    Raises:
        StoreError: If the index cannot be read.
    """
    keys = _where_written(ledger.keys())
    found = await store.rows(keys)
    chunks = [chunk for key in keys for chunk, _ in found.get(key, [])]
    first = max(chunks, key=_worth, default=None)  # the first one of several
    if first is None or not _worth(first):
        return None
    behind = [c for c in chunks if c.key == first.key and c.chunk_index > first.chunk_index]
    return led([(first, behind)], hits, limit, name=_NAME, likely=_LIKELY)


def _where_written(keys: Iterable[str]) -> list[str]:
    """Return the files that may say it, those nearest to the project's top first."""
    patterns = (_GUIDE, _README, *_TOOLS)
    found = [key for key in keys if any(each.fullmatch(key) for each in patterns)]
    return sorted(found, key=lambda key: (key.count("/"), len(key), key))[:_MOST_FILES]


def _worth(chunk: StoredChunk) -> int:
    """Return how well a chunk says how tests are run: 3 is best, and 0 not at all.

    Prose below a heading says it to a person; the file of a tool only does it.
    """
    for name, target in _TOOLS.items():
        if name.fullmatch(chunk.key):
            return int(target.search(chunk.text) is not None)
    if not _COMMAND.search(chunk.text):
        return 0
    if _HEADING.search(_below_title(chunk)):
        return 3
    return 2 if _GUIDE.fullmatch(chunk.key) else 0


def _below_title(chunk: StoredChunk) -> str:
    """Return a chunk's headings and text without the file's title, as in `# Test Data Factory`."""
    inner = chunk.scope.split(SCOPE_SEPARATOR)[1:]
    lines = chunk.text.lstrip().split("\n")
    text = lines if chunk.chunk_index else lines[1:]
    if not chunk.chunk_index and text and _UNDERLINE.match(text[0]):
        text = text[1:]
    return "\n".join([*(f"# {heading}" for heading in inner), *text])
