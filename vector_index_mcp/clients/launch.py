"""The command that starts this program: how to write it, and how to recognise it."""

import os
import re
import shutil
import sys
import sysconfig
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vector_index_mcp.clients.places import lasting_path
from vector_index_mcp.clients.served import Served

PROGRAM = "vector-index-mcp"
"""Its name on the PATH."""
_MODULE = "vector_index_mcp"
# `vector-index-mcp`, with its extension on Windows, or as uvx and pipx take it.
_OUR_WORD = re.compile(r"vector[-_]index[-_]mcp(\.exe|\.cmd)?(\[[\w,-]*\])?([=@<>~!].*)?")
# A tool's full name, "mcp__NAME__trigger_index", has at most 64 characters, in Cursor 60.
_LONGEST_NAME_CHARS = 40
# Claude Code keeps these for itself.
_RESERVED_NAMES = frozenset({"workspace", "computer-use", "claude-in-chrome"})


@dataclass(frozen=True, slots=True)
class Launch:
    """How to serve something."""

    served: Served
    program: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """The command line."""
        return [*self.program, *self.options, *self.served.words]

    @property
    def lies_in_a_cache(self) -> bool:
        """Whether the program may be deleted any day: `uvx` and `pipx run` install in a cache."""
        parts = {part.lower() for part in Path(self.program[0]).parts}
        return bool(parts & {".cache", "cache", "caches"})


def this_program(started_as: str) -> tuple[str, ...]:
    """The running program as words that work with any PATH.

    A desktop client does not have the shell's PATH, so the path is absolute. Links are not
    resolved: pipx and uv keep a link where it is when they move the program.

    Args:
        started_as: The first of `sys.argv`.
    """
    candidates = [Path(started_as)] if Path(started_as).stem == PROGRAM else []
    candidates.append(Path(sysconfig.get_path("scripts")) / PROGRAM)
    for candidate in candidates:
        if found := shutil.which(candidate.absolute()):
            return (str(found),)
    return (sys.executable, "-m", _MODULE)


def words_of(entry: Any) -> list[str]:
    """The command line of an entry in any client's shape; empty if it has none."""
    if not isinstance(entry, Mapping):
        return []
    words: list[Any] = []
    for value in (entry.get("command"), entry.get("args")):
        words += value if isinstance(value, list) else [value]
    return [word for word in words if word and isinstance(word, str)]


def serves(words: Sequence[str], served: Served, project: Path | None) -> bool:
    """Whether a command line serves `served`.

    Args:
        words: The command line.
        served: What is looked for.
        project: Where relative paths begin, if the command line stands in a file of a project.
    """
    program = _program_length(words)
    return program > 0 and served.is_served_by(words[program:], project)


def lacking(words: Sequence[str], served: Served, project: Path | None) -> tuple[str, ...]:
    """The words that a command line lacks which serves `served`, but not all that goes with it.

    Args:
        words: The command line.
        served: What it serves.
        project: As above.
    """
    return served.lacking(words[_program_length(words) :], project)


def can_start(words: Sequence[str]) -> bool:
    """Whether the program of a command line is there."""
    return bool(words) and shutil.which(words[0]) is not None


def with_program(words: Sequence[str], program: Sequence[str]) -> list[str]:
    """A command line that starts us, with another program and the same options."""
    return [*program, *words[_program_length(words) :]]


def for_everyone(words: Sequence[str], project: Path, folder: str) -> list[str]:
    """A command line of ours without paths of this machine, as far as that is possible.

    Args:
        words: The command line.
        project: The project whose file it is for.
        folder: What the file's client calls that project; empty if it has no word for it.
    """
    length = _program_length(words)
    program = [PROGRAM] if is_on_the_path() else words[:length]
    rest = words[length:]
    return [*program, *([_below(word, project, folder) for word in rest] if folder else rest)]


def of_this_machine(words: Sequence[str]) -> list[str]:
    """The paths in a command line that lead nowhere on another machine."""
    values = [word.partition("=")[2] if word.startswith("-") else word for word in words]
    return [value for value in values if Path(value).is_absolute()]


def is_on_the_path() -> bool:
    """Whether any shell of this user finds the program by its name, not just this one."""
    return shutil.which(PROGRAM, path=lasting_path()) is not None


def is_by_name(words: Sequence[str]) -> bool:
    """Whether a command line names our program and not where it is."""
    return list(words[:1]) == [PROGRAM]


def name_for(wanted: str, taken: Collection[str]) -> str:
    """A name that every client allows, as near to `wanted` as may be; not one of those `taken`.

    Letters, digits and hyphens: Claude Code allows no others but the underscore, which Gemini CLI
    advises against.
    """
    ascii_name = unicodedata.normalize("NFKD", wanted).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9]+", "-", ascii_name)[:_LONGEST_NAME_CHARS].strip("-") or "project"
    unwanted = {other.lower() for other in taken} | _RESERVED_NAMES
    number, candidate = 1, name
    while candidate.lower() in unwanted:
        number += 1
        suffix = f"-{number}"
        candidate = name[: _LONGEST_NAME_CHARS - len(suffix)] + suffix
    return candidate


def _program_length(words: Sequence[str]) -> int:
    """How many of the first words are the program; 0 if it is not ours."""
    for position, word in enumerate(words):
        if position and words[position - 1] == "--from":  # where uvx takes the program from
            continue
        if _OUR_WORD.fullmatch(re.split(r"[\\/]", word)[-1]):
            return position + 1
    return 0


def _below(word: str, project: Path, folder: str) -> str:
    """A path in the project as its client names it; any other word as it is."""
    if word == str(project):
        return folder
    inside = word.removeprefix(str(project) + os.sep)
    return word if inside == word else f"{folder}/{inside}".replace(os.sep, "/")
