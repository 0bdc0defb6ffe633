"""No pattern of the package takes much longer for a text than the text is long.

`re` holds the interpreter's lock while it matches: a pattern that tries every length at every place
stops the whole service for minutes. What looks at whole files is RE2 (`files/secrets`); every other
pattern is met here by texts made against it. A pattern that is added is found by itself.
"""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hostile_patterns import Use, attacks, compiled_elsewhere, uses

from vector_index_mcp.codebase import colours

# Patterns that are made while the service runs, and what holds them.
COMPILED_IN_FUNCTIONS = {
    ("codebase/colours.py", "_pattern"),  # below
    ("engine/text/scripts.py", "_patterns"),  # one set of characters each
    (
        "engine/ranking/signals.py",
        "_as_words",
    ),  # names, letter for letter, their parts perhaps separated
    ("engine/ranking/signals.py", "_has"),  # a release's number, letter for letter
    ("codebase/rendering.py", "_has_word"),  # a name, letter for letter
    ("documents/absent.py", "names_outside"),  # a query's name of 100 characters, with short gaps
    ("engine/prose/fragments.py", "_fragments_of"),  # letters and digits of a query
    ("page/handover.py", "remove_left"),  # names in a folder of the user's own
    ("files/wildmatch.py", "compiled"),  # unit/files/test_patterns.py
    ("files/glob.py", "_regex_of_one"),  # only compiled: the store matches with it, in linear time
}
# Why what is slow in `re` does no harm.
EXCUSED = {
    "vector_index_mcp.clients.toml:_TOKEN": "tomllib has refused whatever is left open",
}
MOST_ATTACKS = 20  # on a pattern, evenly from all
FEW, MANY = 2_000, 16_000  # characters
MOST_TIMES_LONGER = 24  # 8 would be linear, 64 is quadratic
LEAST_SECONDS = 0.02  # what takes less is noise, and harmless
TRIES = 3


def cost(use: Use, method: str, text: str) -> float:
    subject: Any = (
        text if isinstance(use.pattern.pattern, str) else text.encode("latin-1", "replace")
    )
    apply = getattr(use.pattern, method)
    arguments = (subject[:0], subject) if method in {"sub", "subn"} else (subject,)
    start = time.thread_time()
    result = apply(*arguments)
    if isinstance(result, Iterator):
        for _ in result:
            pass
    return time.thread_time() - start


def is_slow(use: Use, method: str, beginning: str, body: str, end: str) -> bool:
    def seconds(length: int) -> float:
        return cost(use, method, beginning + body * (length // len(body) + 1) + end)

    return all(
        (many := seconds(MANY)) > LEAST_SECONDS and many > MOST_TIMES_LONGER * seconds(FEW)
        for _ in range(TRIES)
    )


def slow_texts(use: Use, most: int = MOST_ATTACKS) -> Iterator[tuple[str, str, str, str]]:
    found = attacks(use.pattern)
    for attack in found[:: len(found) // most + 1]:
        for method in sorted(use.methods):
            if is_slow(use, method, *attack):
                yield (method, *attack)


@pytest.mark.long
def test_no_text_keeps_a_pattern_busy() -> None:
    """One test for all: collecting one for each would import the whole package in every tester."""
    found = {use.where: list(slow_texts(use)) for use in uses() if use.where not in EXCUSED}
    assert {where: texts for where, texts in found.items() if texts} == {}


@pytest.mark.slow
def test_no_text_keeps_the_colours_busy() -> None:
    patterns = {language: colours._pattern(language) for language in colours._LANGUAGES}
    assert None not in patterns.values()
    finding = frozenset({"finditer"})
    found = {name: list(slow_texts(Use("", p, finding))) for name, p in patterns.items()}
    assert {language: texts for language, texts in found.items() if texts} == {}


@pytest.mark.long
@pytest.mark.parametrize(
    "pattern",
    [
        r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{16,}",
        r"//\*.*?\*/",
    ],
)
def test_a_slow_pattern_would_be_found(pattern: str) -> None:
    assert any(slow_texts(Use("", re.compile(pattern), frozenset({"search"})), most=1_000))


@pytest.mark.slow  # as all that import the whole package
def test_patterns_are_made_at_run_time_in_the_listed_places_only() -> None:
    assert compiled_elsewhere() == COMPILED_IN_FUNCTIONS


@pytest.mark.slow
def test_every_excuse_is_needed() -> None:
    assert set(EXCUSED) <= {use.where for use in uses()}
