"""The dialogue of `install` and `uninstall`: prints changes and messages, and asks questions."""

import difflib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from vector_index_mcp.clients.client import Client
from vector_index_mcp.clients.configs import Change, decoded
from vector_index_mcp.console.terminal import prepared, write
from vector_index_mcp.errors import counted
from vector_index_mcp.foreign import visible

_MOST_CHARS_OF_A_LINE = 200  # some clients keep a whole file on one line
_CONTEXT_LINES = 3
_MOST_COMPARED_LINES = 10_000  # difflib needs a second for them in the worst case
_POSITION = re.compile(r"( [-+])(\d+)")  # the position of a hunk, in its heading
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_NO_FILE = "/dev/null"


def say(text: str) -> None:
    """Print a line on stdout."""
    _stdout().print(Text(_lines_of(text)), soft_wrap=True)


def complain(text: str) -> None:
    """Print a line on stderr."""
    write(f"vector-index-mcp: {_lines_of(text)}", sys.stderr)


def show(title: str, change: Change, warning: str = "") -> None:
    """Print a change as a unified diff, with its title above and its warning below."""
    console = _stdout()
    where = visible(f" (a link to {change.target.real})") if change.target.is_link else ""
    console.print(Text(f"\n{title}{where}", style="bold"), soft_wrap=True)
    for line in _diff(change):
        console.print(Text(line, style=_COLOURS.get(line[:1], "")), soft_wrap=True)
    if warning:
        console.print(Text(f"warning: {visible(warning)}", style="yellow"), soft_wrap=True)


@contextmanager
def unread(*, is_fine: bool = True) -> Iterator[None]:
    """Ignore that the reader of standard output has gone (`| head`), if that `is_fine`.

    Raises:
        BrokenPipeError: If the reader has gone and that is not fine.
    """
    try:
        yield
    except BrokenPipeError:
        if not is_fine:
            raise
        with suppress(OSError):  # from here on, all output is dropped
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def confirms(question: str) -> bool:
    """Ask; return whether the person says yes. Enter means yes, the end of input means no."""
    while True:
        answer = _asked(f"\n{question} [Y/n] ")
        if answer is None or answer.lower() in {"n", "no"}:
            return False
        if answer.lower() in {"", "y", "yes"}:
            return True


def choice(clients: Sequence[Client]) -> list[Client]:
    """Ask which of the clients to use; returns none at the end of input."""
    say("Found on this machine:")
    for number, client in enumerate(clients, start=1):
        say(f"  {number}  {client.title} ({client.name})")
    known = {str(number): client for number, client in enumerate(clients, start=1)}
    known |= {client.name: client for client in clients}
    while True:
        answer = _asked("Which of them? Numbers or names, Enter for all: ")
        if answer is None:
            return []
        wanted = answer.replace(",", " ").split() or [client.name for client in clients]
        if all(word in known for word in wanted):
            return [client for client in clients if client in [known[word] for word in wanted]]


def _asked(question: str) -> str | None:
    try:
        return input(question).strip()
    except EOFError:
        say("")
        return None


def _diff(change: Change) -> list[str]:
    before, after = (_lines(change.path, data) for data in (change.before, change.after))
    old = _NO_FILE if change.before is None else str(change.path)
    new = _NO_FILE if change.after is None else str(change.path)
    lines = _unified(before, after)
    lines = [f"--- {old}", f"+++ {new}", *lines] if lines else [f"--- {old}", f"+++ {new} (empty)"]
    return [_short(visible(line, keep="\t")) for line in lines]


def _unified(before: list[str], after: list[str]) -> list[str]:
    """Return the lines of a unified diff, without its heading.

    This first cuts off the lines that are equal at the beginning and at the end: difflib takes
    minutes for a file of a megabyte, and an edit changes only a few lines.
    """
    shorter = min(len(before), len(after))
    same = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    first = max(0, same - _CONTEXT_LINES)
    rest = range(1, shorter - same + 1)
    same_at_end = next((n for n in rest if before[-n] != after[-n]), len(rest) + 1) - 1
    left_out = max(0, same_at_end - _CONTEXT_LINES)
    old, new = (lines[first : len(lines) - left_out] for lines in (before, after))
    if max(len(old), len(new)) > _MOST_COMPARED_LINES:
        return [f"@@ lines {first + 1} to {first + len(old)} become {counted(len(new), 'line')} @@"]
    hunks = list(difflib.unified_diff(old, new, lineterm="", n=_CONTEXT_LINES))[2:]
    return [
        _POSITION.sub(lambda at: f"{at[1]}{int(at[2]) + first}", line)
        if line.startswith("@@ ")
        else line
        for line in hunks
    ]


def _lines(path: Path, data: bytes | None) -> list[str]:
    lines = decoded(path, data).splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += " (no newline at the end)"
    return [line.rstrip("\r\n") for line in lines]


def _short(line: str) -> str:
    return line if len(line) <= _MOST_CHARS_OF_A_LINE else line[:_MOST_CHARS_OF_A_LINE] + "…"


def _lines_of(text: str) -> str:
    """Return a text of several lines, safe for a terminal: it may quote files that are not ours."""
    return visible(text, keep="\n\t")


class _Console(Console):
    """A console that raises when nobody reads its output; by itself, rich ends the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _stdout() -> Console:
    return _Console(file=prepared(sys.stdout), highlight=False)
