"""Formats what the commands of the notes print. Pure. Makes text of others safe for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from vector_index_mcp.console.colours import PLAIN, Colours
from vector_index_mcp.errors import counted
from vector_index_mcp.foreign import visible
from vector_index_mcp.notes.doctor.findings import Finding, Verdict
from vector_index_mcp.notes.overview import Contents, Document, Row
from vector_index_mcp.notes.past.comparing import Comparison
from vector_index_mcp.notes.past.differences import unified
from vector_index_mcp.notes.past.history import Entry
from vector_index_mcp.notes.past.restoring import Fate, Restoring
from vector_index_mcp.notes.texts.todos import Todo

_BETWEEN = "  "
_COMMIT_CHARS = 10
_MOST_WIDE = 50  # characters of a column; a longer name shifts only the rest of its own line
_MARK_COLUMNS = 9
_CONTENT_INDENT = " " * 10
_UNREADABLE = "(cannot be read; `notes doctor` says why)"


def readable(text: str) -> str:
    """Return a text of several lines, safe for a terminal; it ends with a line feed."""
    shown = visible(text, keep="\n\t")
    return shown if shown.endswith("\n") or not shown else f"{shown}\n"


def moment(seconds: int) -> str:
    """Return a time in the form that `--at` takes; "-" if it is 0 or cannot be shown."""
    if not seconds:
        return "-"
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "-"


def _table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """Yield the rows as lines with aligned columns.

    Args:
        rows: The cells of each row; all rows have the same number.
        right: The columns to align on the right, counted from 0.
    """
    widths = [min(_MOST_WIDE, max(map(len, column))) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield _BETWEEN.join(cells).rstrip()


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# -- what there is ---------------------------------------------------------------------------


def of_projects(rows: Sequence[Row], c: Colours = PLAIN) -> str:
    """Return a table of the projects with their counts and last changes."""
    if not rows:
        return "There are no projects\n"
    head = ("PROJECT", "DOCUMENTS", "TO-DOS", "OPEN TASKS", "LAST CHANGE")
    cells = [
        (
            visible(row.project),
            str(row.documents),
            str(row.todos),
            f"{row.open} of {row.tasks}" if row.tasks else "-",
            moment(row.changed),
        )
        for row in rows
    ]
    first, *others = _table([head, *cells], right=(1, 2, 3))
    return _lines([f"{c.bold}{first}{c.reset}", *others])


def of_contents(project: str, contents: Contents, c: Colours = PLAIN) -> str:
    """Return a list of what a project contains."""
    lines = [f"{c.bold}{visible(project)}{c.reset}"]
    if contents.main_chars is None:
        lines.append("  no main text")
    else:
        changed = moment(contents.changed.get("main.md", 0))
        lines.append(f"  main.md, {counted(contents.main_chars, 'character')}, {changed}")
    lines += ["", f"{c.bold}Documents{c.reset}"]
    rows = [_of_document(each) for each in contents.documents]
    lines += [f"  {line}" for line in _table(rows)] if rows else ["  none"]
    lines += ["", f"{c.bold}To-do lists{c.reset}"]
    rows = [_of_todo(todo, contents.changed) for todo in contents.todos]
    lines += [f"  {line}" for line in _table(rows)] if rows else ["  none"]
    return _lines(lines)


def _of_document(document: Document) -> tuple[str, ...]:
    title = visible(document.title) if not document.problem else _UNREADABLE
    chapters = counted(document.chapters, "chapter")
    return visible(document.name), title, chapters, moment(document.changed)


def _of_todo(todo: Todo, changed: Mapping[str, int]) -> tuple[str, ...]:
    words = visible(todo.description) if not todo.problem else _UNREADABLE
    return f"todo {todo.number}", words, _open(todo), moment(changed.get(f"TODO/{todo.number}", 0))


def of_todo(todo: Todo, c: Colours = PLAIN) -> str:
    """Return a to-do list with its tasks."""
    head = f"{c.bold}todo {todo.number}: {visible(todo.description)}{c.reset}"
    lines = [f"{head} ({_open(todo)})", ""]
    for task in todo.tasks:
        mark = "x" if task.completed else " "
        title = visible(task.title) if not task.problem else _UNREADABLE
        lines.append(f"- [{mark}] {task.number:>2}  {title}")
        if task.content:
            held = readable(task.content).rstrip("\n").split("\n")
            lines += [f"{_CONTENT_INDENT}{c.dim}{line}{c.reset}".rstrip() for line in held]
    lines += [f"{c.yellow}{visible(problem)}{c.reset}" for problem in todo.problems]
    return _lines(lines)


def _open(todo: Todo) -> str:
    return f"{len(todo.tasks) - todo.completed_count} of {len(todo.tasks)} open"


# -- what happened ---------------------------------------------------------------------------


def of_entries(entries: Sequence[Entry], project: str, c: Colours = PLAIN) -> str:
    """Return one line for each commit.

    Args:
        entries: The commits.
        project: The project that all of them are about; empty for any project.
        c: The colours.
    """
    if not entries:
        return "There is no history yet\n"
    rows = [(moment(e.when), e.commit[:_COMMIT_CHARS], visible(e.who)) for e in entries]
    heads = _table(rows)
    return _lines(
        [
            f"{c.dim}{head}{c.reset}{_BETWEEN}{visible(entry.what_of(project))}"
            for head, entry in zip(heads, entries, strict=True)
        ]
    )


def of_comparison(found: Comparison, project: str, c: Colours = PLAIN) -> str:
    """Return what changed, as a unified diff."""
    lines = []
    if found.is_edit:
        lines.append(f"{c.bold}Not committed yet{c.reset}")
    elif found.entry is not None:
        lines.append(f"{c.bold}{_of_entry(found.entry, project)}{c.reset}")
    tints = {"+": c.green, "-": c.red, "@": c.cyan}
    differences = list(unified(found.old, found.new))
    for line in differences:
        tint = c.bold if line.startswith(("--- ", "+++ ")) else tints.get(line[:1], "")
        shown = visible(line, keep="\t")
        lines.append(f"{tint}{shown}{c.reset}" if tint else shown)
    return _lines(lines if differences else [*lines, "Nothing is different"])


def _of_entry(entry: Entry, project: str) -> str:
    words = (moment(entry.when), entry.commit[:_COMMIT_CHARS], entry.who, entry.what_of(project))
    return visible(_BETWEEN.join(words))


# -- what would happen -----------------------------------------------------------------------


def of_restoring(found: Restoring, about: str, c: Colours = PLAIN) -> str:
    """Return what restoring would do to each file.

    Args:
        found: The planned changes.
        about: The time and commit of the state to restore.
        c: The colours.
    """
    project = visible(found.project.id)
    lines = [f"{c.bold}{project}, as of {visible(about)}{c.reset}"]
    if found.comes:
        lines.append(f"  the project comes back, in {visible(found.project.folder)}")
    if found.goes:
        lines.append("  the project did not exist then: it goes away")
    tints = {Fate.COMES_BACK: c.green, Fate.CHANGES: c.yellow, Fate.GOES_AWAY: c.red}
    lines += [f"  {tints[fate]}{fate:<11}{c.reset} {visible(path)}" for path, fate in found.fates]
    return _lines(lines)


def of_finding(finding: Finding, c: Colours = PLAIN) -> str:
    """Return the lines that report the finding of a check."""
    tints = {Verdict.OK: c.green, Verdict.WARNING: c.yellow, Verdict.FAILURE: c.red}
    mark = f"{tints[finding.verdict]}{finding.verdict:<{_MARK_COLUMNS}}{c.reset}"
    lines = [f"{mark}{finding.name}: {visible(finding.words)}"]
    if finding.remedy:
        lines.append(f"{'':{_MARK_COLUMNS}}do: {visible(finding.remedy)}")
    return _lines(lines)


def of_counts(findings: Sequence[Finding]) -> str:
    """Return a line that counts the findings by verdict."""
    verdicts = [finding.verdict for finding in findings]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts]
    return f"{len(findings)} checks: {', '.join(counts)}\n"


def of_status(found: Mapping[str, Any]) -> str:
    """Return the state of the store, from the answer of the MCP tool."""
    rows = [
        ("Folder:", found["storage_path"]),
        ("Branch:", found["current_branch"] or "-"),
        ("Last commit:", found["last_commit"] or "-"),
        ("Not committed:", counted(found["uncommitted_files"], "file")),
        ("Remote:", found["remote_status"]),
    ]
    lines = [f"{name:<15}{visible(str(value))}" for name, value in rows]
    return _lines(lines) + "\n" + readable(found["status_details"])
