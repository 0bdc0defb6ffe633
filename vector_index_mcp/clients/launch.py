"""The command lines that start this program: writes them, and recognises them."""

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
"""The program's name on the PATH."""
_MODULE = "vector_index_mcp"
# `vector-index-mcp`, also with its extension on Windows, or with extras and version as for uvx.
_OUR_WORD = re.compile(r"vector[-_]index[-_]mcp(\.exe|\.cmd)?(\[[\w,-]*\])?([=@<>~!].*)?")
# Programs that run others, their options with a value, and what else may stand before the program
# that they run: other options (/c is one of cmd), commands, and variables for env.
_RUNNER = re.compile(r"(python[\d.]*|pythonw|py|uv|uvx|pipx|env|cmd|wsl)(\.exe)?")
_WITH_A_VALUE = frozenset(
    "--from --with --with-editable --with-requirements --directory --project --python -p --index "
    "--default-index --index-url -i --extra-index-url --cache-dir --config-file --env-file --spec "
    "--pip-args --refresh-package --torch-backend --package --extra --group -W -X -d "
    "-C --chdir --cd --constraints --find-links --python-platform --python-version "
    "--index-strategy".split()
)
_OF_RUNNERS = re.compile(r"-.*|/[A-Za-z]|run|tool|x|\w+=.*")
# A tool's full name, "mcp__NAME__trigger_index", may have 64 characters, in Cursor 60.
_LONGEST_NAME_CHARS = 40
# Claude Code reserves these names.
_RESERVED_NAMES = frozenset({"workspace", "computer-use", "claude-in-chrome"})


@dataclass(frozen=True, slots=True)
class Launch:
    """The command line that serves something."""

    served: Served
    program: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """The command line."""
        return [*self.program, *self.options, *self.served.words]

    @property
    def lies_in_a_cache(self) -> bool:
        """Whether the program may be deleted any day: `uvx` and `pipx run` install into a cache."""
        parts = {part.lower() for part in Path(self.program[0]).parts}
        return bool(parts & {".cache", "cache", "caches"})


def this_program(started_as: str) -> tuple[str, ...]:
    """Return the words that start the running program, whatever the PATH.

    The path is absolute, since a desktop client does not have the shell's PATH. Links are not
    resolved: when pipx and uv move the program, they keep the link where it is.

    Args:
        started_as: `sys.argv[0]`.
    """
    candidates = [Path(started_as)] if Path(started_as).stem == PROGRAM else []
    candidates.append(Path(sysconfig.get_path("scripts")) / PROGRAM)
    for candidate in candidates:
        if found := shutil.which(candidate.absolute()):
            return (str(found),)
    # -P: clients start it in the project, whose json.py must not be imported.
    return (sys.executable, "-P", "-m", _MODULE)


def words_of(entry: Any) -> list[str]:
    """Return the command line of an entry in any client's format; empty if it has none."""
    if not isinstance(entry, Mapping):
        return []
    words: list[Any] = []
    for value in (entry.get("command"), entry.get("args")):
        words += value if isinstance(value, list) else [value]
    return [word for word in words if word and isinstance(word, str)]


def serves(words: Sequence[str], served: Served, project: Path | None) -> bool:
    """Whether a command line starts this program to serve `served`.

    Args:
        words: The command line.
        served: What it should serve.
        project: The folder that relative paths start from, if the command line is in a file of a
            project; otherwise None.
    """
    program = _program_length(words)
    return program > 0 and served.is_served_by(words[program:], project)


def lacking(words: Sequence[str], served: Served, project: Path | None) -> tuple[str, ...]:
    """Return the words that are missing in a command line to serve all of `served`.

    Args:
        words: A command line for which `serves` is true.
        served: What it should serve completely.
        project: As for `serves`.
    """
    return served.lacking(words[_program_length(words) :], project)


def can_start(words: Sequence[str]) -> bool:
    """Whether the program of a command line exists."""
    return bool(words) and shutil.which(words[0]) is not None


def with_program(words: Sequence[str], program: Sequence[str]) -> list[str]:
    """Return a command line of ours with another program and the same options."""
    return [*program, *words[_program_length(words) :]]


def for_everyone(words: Sequence[str], project: Path, folder: str) -> list[str]:
    """Return a command line of ours without paths of this machine, as far as possible.

    Args:
        words: The command line.
        project: The project in whose file it will be.
        folder: How the client names that project's folder; empty if it has no name for it.
    """
    length = _program_length(words)
    program = [PROGRAM] if is_on_the_path() else words[:length]
    rest = words[length:]
    return [*program, *([_below(word, project, folder) for word in rest] if folder else rest)]


def of_this_machine(words: Sequence[str]) -> list[str]:
    """Return the absolute paths in a command line, which may not exist on other machines."""
    values = [word.partition("=")[2] if word.startswith("-") else word for word in words]
    return [value for value in values if Path(value).is_absolute()]


def is_on_the_path() -> bool:
    """Whether every shell of this user finds the program by its name, not just this one."""
    return shutil.which(PROGRAM, path=lasting_path()) is not None


def is_by_name(words: Sequence[str]) -> bool:
    """Whether a command line starts our program by its name, without a path."""
    return list(words[:1]) == [PROGRAM]


def name_for(wanted: str, taken: Collection[str]) -> str:
    """Return a name like `wanted` that every client allows and that is not in `taken`.

    It has only letters, digits and hyphens. Claude Code also allows underscores, but Gemini CLI
    advises against them.
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
    """Return how many of the first words are the program; 0 if it is not ours.

    Either the first word is ours, or it is a program that runs others, and ours is what it runs: a
    folder that is called like our program, among the arguments of another one, is none.
    """
    if not words:
        return 0
    if _is_our_word(words[0]):
        return 1
    if not _RUNNER.fullmatch(_last_part(words[0]).lower()):
        return 0
    is_value = False
    for position, word in enumerate(words[1:], start=1):
        if is_value:
            is_value = False
        elif word in _WITH_A_VALUE:
            is_value = True
        elif not _OF_RUNNERS.fullmatch(word):
            return position + 1 if _is_our_word(word) else 0
    return 0


def _is_our_word(word: str) -> bool:
    return _OUR_WORD.fullmatch(_last_part(word)) is not None


def _last_part(word: str) -> str:
    return re.split(r"[\\/]", word)[-1]


def _below(word: str, project: Path, folder: str) -> str:
    """Return a path in the project in the client's form; return any other word unchanged."""
    if word == str(project):
        return folder
    inside = word.removeprefix(str(project) + os.sep)
    return word if inside == word else f"{folder}/{inside}".replace(os.sep, "/")
