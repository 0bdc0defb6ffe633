"""Converts to-do lists into Markdown task lists, and back. Pure.

    ---
    created: '2026-11-17T13:00:00.000Z'
    ---
    # What the list is about

    - [x] A task that is done
    - [ ] Another one
      Its details, in indented lines.

A comment with JSON at the end of a line holds what Markdown cannot express: the number of a task
that does not have the next number (`<!-- {"number": 7} -->`), and a title that is not a plain line.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.errors import encodable
from vector_index_mcp.notes.texts import matter
from vector_index_mcp.notes.texts.todos import Todo

_NAME = re.compile(r"todo-([1-9][0-9]{0,4})\.md")
_LARGEST_NUMBER = 99_999  # that the contract allows
_INDENT = "  "
_ITEM = re.compile(r"[-*+] \[([ xX])\](?: (.*))?", re.DOTALL)
_MOMENT = re.compile(r"[0-9TZ:.+-]+")
_NOTE, _END = "<!-- ", " -->"
_HEADING = "# "


@dataclass(frozen=True, slots=True)
class Item:
    """A task."""

    number: int
    title: str
    content: str
    completed: bool


@dataclass(frozen=True, slots=True)
class Checklist:
    """A to-do list."""

    description: str
    created: str
    """The time as JavaScript's `toISOString` writes it; empty if it is not known."""
    items: tuple[Item, ...]


def name_of(number: int) -> str:
    """Return the name of a to-do list's file."""
    return f"todo-{number}.md"


def number_of(name: str) -> int | None:
    """Return the number of the to-do list in the file `name`; None for any other file."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def checklist_of(todo: Todo) -> Checklist:
    """Return a to-do list without the tasks that cannot be read."""
    readable = [task for task in todo.tasks if not task.problem]
    items = (Item(task.number, task.title, task.content, task.completed) for task in readable)
    return Checklist(todo.description, todo.created, tuple(items))


# -- written ---------------------------------------------------------------------------------


def written(checklist: Checklist) -> str:
    """Return a to-do list as Markdown."""
    lines = [
        *_front(checklist.created),
        _noted(_HEADING, checklist.description, "description", {}),
        "",
    ]
    last = 0
    for item in checklist.items:
        lines += _lines_of(item, last + 1)
        last = item.number
    return "\n".join([*lines, ""])


def _front(created: str) -> list[str]:
    return ["---", f"created: '{created}'", "---"] if _MOMENT.fullmatch(created) else []


def _lines_of(item: Item, expected: int) -> Iterator[str]:
    number = {} if item.number == expected else {"number": item.number}
    yield _noted(f"- [{'x' if item.completed else ' '}] ", item.title, "title", number)
    lines = item.content.split("\n") if item.content else []
    inner = [number for number, line in enumerate(lines) if line]
    for number_of_line, line in enumerate(lines):
        # An empty line inside a text stays empty; at its ends it is indented, or it would
        # read as the gap between two tasks.
        is_amid = bool(inner) and inner[0] < number_of_line < inner[-1]
        yield f"{_INDENT}{line}" if line or not is_amid else ""


def _noted(mark: str, text: str, key: str, values: Mapping[str, Any]) -> str:
    """Return a line with `text`, and a comment if the line alone does not preserve it exactly."""
    shown = encodable(" ".join(text.split()))
    if not shown or _without_note(shown) != (text, {}):
        values = {**values, key: text}
    if not values:
        return f"{mark}{shown}"
    # In JSON, < and > occur in strings only, where they can be escaped: no comment ends early.
    note = json.dumps(values).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"{mark}{shown} {_NOTE}{note}{_END}" if shown else f"{mark}{_NOTE}{note}{_END}"


# -- read ------------------------------------------------------------------------------------


def read(text: str) -> Checklist | None:
    """Parse a to-do list; None if the text contains anything else."""
    if text.count("\r\n") == text.count("\n"):
        text = text.replace("\r\n", "\n")
    front, body = matter.parted(text)
    created = matter.metadata(front).created
    if front.split("\n")[:-1] != _front(created):
        return None
    lines = body.split("\n")
    start = next((n for n, line in enumerate(lines) if line), 0)
    if not lines[start].startswith(_HEADING):
        return None
    description, notes = _without_note(lines[start].removeprefix(_HEADING))
    items = _items(lines[start + 1 :])
    if items is None:
        return None
    return Checklist(_text(notes, "description", description), created, tuple(items))


def _items(lines: Sequence[str]) -> list[Item] | None:
    """Parse the tasks below a heading; None if there is anything else."""
    found: list[Item] = []
    below: list[str] = []
    for line in [*lines, "- [ ] the end"]:
        match = _ITEM.fullmatch(line)
        if match is None:
            below.append(line)
            continue
        content = _content(below)
        if content is None or (content and not found):
            return None
        if found:
            last = found[-1]
            found[-1] = Item(last.number, last.title, content, last.completed)
        below = []
        found.append(_item(match, found))
    return found[:-1]


def _item(match: re.Match[str], before: Sequence[Item]) -> Item:
    title, notes = _without_note(match[2] or "")
    number = notes.get("number")
    taken = [item.number for item in before]
    if not isinstance(number, int) or number in taken or not 0 < number <= _LARGEST_NUMBER:
        number = max(taken, default=0) + 1
    return Item(number, _text(notes, "title", title), "", match[1] != " ")


def _content(lines: Sequence[str]) -> str | None:
    """Return the text of indented lines; None if one of them is not indented."""
    inner = [number for number, line in enumerate(lines) if line]
    held = lines[inner[0] : inner[-1] + 1] if inner else []
    if any(line and not line.startswith(_INDENT) for line in held):
        return None
    return "\n".join(line.removeprefix(_INDENT) for line in held)


def _without_note(line: str) -> tuple[str, Mapping[str, Any]]:
    """Return a line's text, and the JSON in the comment at its end; an empty mapping if none."""
    start = line.rfind(_NOTE + "{")
    if start >= 0 and line.endswith(f"}}{_END}"):
        try:
            notes = json.loads(line[start + len(_NOTE) : -len(_END)])
            return line[:start].strip(), notes
        except (ValueError, RecursionError):
            pass
    return line.strip(), {}


def _text(notes: Mapping[str, Any], key: str, shown: str) -> str:
    exact = notes.get(key, shown)
    return exact if isinstance(exact, str) else shown
