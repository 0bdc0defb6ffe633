"""The arguments of the tools, as the contract defines them, and their validation. Pure."""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from vector_index_mcp.checks import (
    BLANKS,
    Boolean,
    Check,
    Choice,
    Field,
    Issues,
    ListOf,
    Object,
    Pattern,
    Schema,
    Text,
    TextOr,
    WholeNumber,
    shown,
)

_PREFIX = "MCP error -32602:"
_MOST_TERMS = 20
_MOST_KEYWORDS = 50
_MOST_CHAPTERS = 50
_MOST_TASKS = 100

_HEADING = re.compile(f"##[{BLANKS}]")
_NAME = re.compile("[a-zA-Z0-9._-]+")
_DIGITS = re.compile("[0-9a-f]+")
_TERM = re.compile(f"[^{BLANKS}]+")


class WrongArguments(Exception):
    """Raised for a call with an unknown tool or wrong arguments; its message goes to the client."""


def checked(name: str, given: object, ignored: list[str] | None = None) -> dict[str, Any]:
    """Check the arguments of a call.

    Args:
        name: The tool's name.
        given: The arguments as the client sent them; None if it sent none.
        ignored: Receives the names of those that the tool does not know, such as `tasks.0.due`.

    Returns:
        The arguments by name, without those that the tool does not know. An argument that was left
        out is there if it has a default, and missing otherwise.

    Raises:
        WrongArguments: If there is no such tool, or the arguments do not fit its schema.
    """
    if name not in TOOLS:
        raise WrongArguments(_encodable(f"{_PREFIX} Tool {shown(name)} not found"))
    issues = Issues()
    cleaned: dict[str, Any] = TOOLS[name].check({} if given is None else given, (), issues)
    if issues.found:
        listed = json.dumps(issues.found, indent=2, ensure_ascii=False)
        raise WrongArguments(_encodable(f"{_PREFIX} Invalid arguments for tool {name}: {listed}"))
    if ignored is not None:
        ignored += [".".join(map(str, path)) for path in issues.dropped]
    return cleaned


def schema_of(name: str) -> Schema:
    """Return the JSON schema of a tool's arguments."""
    return {**TOOLS[name].schema(), "$schema": "http://json-schema.org/draft-07/schema#"}


def _encodable(text: str) -> str:
    """Return `text` with backslash escapes for characters that UTF-8 cannot encode."""
    return text.encode(errors="backslashreplace").decode()


def _stays_inside(text: str) -> bool:
    return ".." not in text and not text.startswith(".") and not text.endswith(".")


def _is_trimmed(text: str) -> bool:
    return text == text.strip(BLANKS)


def _is_trimmed_and_inside(text: str) -> bool:
    return ".." not in text and _is_trimmed(text)


def _is_without_null(text: str) -> bool:
    return "\0" not in text


def _has_few_terms(text: str) -> bool:
    terms = islice(_TERM.finditer(text), _MOST_TERMS + 1)
    return sum(1 for _ in terms) <= _MOST_TERMS


def _optional(check: Check, description: str, default: Any = None) -> Field:
    return Field(check, description, is_required=False, default=default)


_PROJECT_ID = Text(
    1,
    100,
    "Project ID cannot be empty",
    "Project ID too long",
    refinements=(
        (_stays_inside, "Project ID cannot contain path traversal patterns"),
        (
            frozenset('/\\:*?"<>|\0').isdisjoint,
            "Project ID cannot contain filesystem reserved characters or null bytes",
        ),
        (_is_trimmed, "Project ID cannot have leading/trailing spaces"),
    ),
)
_FILENAME = Text(
    1,
    255,
    refinements=(
        (frozenset("/\\\0").isdisjoint, "Filename contains invalid path characters"),
        (
            _is_trimmed_and_inside,
            "Filename cannot contain path traversal or leading/trailing spaces",
        ),
    ),
)
_NO_NULL = ((_is_without_null, "Content cannot contain null bytes"),)
_CONTENT = Text(0, 10 * 1024 * 1024, refinements=_NO_NULL)
_CHAPTER_CONTENT = Text(1, 1024 * 1024, refinements=_NO_NULL)
_HEADER = Text(
    1,
    200,
    pattern=Pattern(r"^##\s+", _HEADING.match, 'Section header must start with "## "'),
    is_trimmed=True,
)
_CHAPTER_TITLE = Text(1, 200, "Chapter title cannot be empty")
_KEYWORD = Text(
    1,
    50,
    pattern=Pattern("^[a-zA-Z0-9._-]+$", _NAME.fullmatch, "Keyword contains invalid characters"),
)
_QUERY = Text(
    1,
    200,
    "Search query cannot be empty",
    refinements=((_has_few_terms, "Search query contains too many terms"),),
)
_REVISION = Text(
    4,
    40,
    pattern=Pattern("^[0-9a-f]+$", _DIGITS.fullmatch, "Revision must be hexadecimal"),
)
_TASK_TITLE = Text(1, 200)
_TASK_CONTENT = Text(0, 100 * 1024)
_TODO_DESCRIPTION = Text(1, 500)
_NUMBER = WholeNumber(0, 99_999, is_inclusive=False)
_INDEX = WholeNumber(0)
_POSITION = Choice(("before", "after", "end"))
_CHAPTER = Object(
    {
        "title": Field(_CHAPTER_TITLE, "Title of the chapter"),
        "content": Field(_CHAPTER_CONTENT, "Markdown text of the chapter, without its title"),
    }
)
_TASK = Object(
    {
        "title": Field(_TASK_TITLE, "Brief title of the task"),
        "content": _optional(_TASK_CONTENT, "Details of the task, in Markdown"),
    }
)

_OF_PROJECT = {"project_id": Field(_PROJECT_ID, "The project identifier")}
_OF_FILE = {
    **_OF_PROJECT,
    "filename": Field(_FILENAME, "Knowledge file name (must include .md extension)"),
}
_OF_TODO = {**_OF_PROJECT, "todo_number": Field(_NUMBER, "The TODO list number")}
_OF_CHANGE = {
    "revision": _optional(
        _REVISION,
        "The revision of the text that this change was made from; "
        "the change is refused if the text has changed since",
    )
}

TOOLS: Mapping[str, Object] = {
    "get_project_main": Object(_OF_PROJECT),
    "update_project_main": Object(
        {
            **_OF_PROJECT,
            "content": Field(_CONTENT, "The new markdown content for main.md"),
            **_OF_CHANGE,
        }
    ),
    "update_project_section": Object(
        {
            **_OF_PROJECT,
            "section_header": Field(
                _HEADER, 'The exact section header to update (e.g., "## Installation")'
            ),
            "new_content": Field(_CONTENT, "The new content of the section, without its header"),
            **_OF_CHANGE,
        }
    ),
    "remove_project_section": Object(
        {
            **_OF_PROJECT,
            "section_header": Field(
                _HEADER, 'The exact section header to remove (e.g., "## Deprecated")'
            ),
            **_OF_CHANGE,
        }
    ),
    "add_project_section": Object(
        {
            **_OF_PROJECT,
            "section_header": Field(_HEADER, 'The new section header (e.g., "## Configuration")'),
            "content": Field(_CONTENT, "The content for the new section"),
            "position": _optional(_POSITION, "Where to insert the new section", "end"),
            "reference_header": _optional(
                _HEADER,
                "Header of the section that the new one goes before or after; "
                "required unless position is end",
            ),
            **_OF_CHANGE,
        }
    ),
    "delete_project": Object(
        {"project_id": Field(_PROJECT_ID, "The project identifier to delete")}
    ),
    "create_knowledge_file": Object(
        {
            **_OF_PROJECT,
            "filename": Field(
                _FILENAME, "Desired filename (will be slugified, .md extension optional)"
            ),
            "title": Field(Text(1, 200), "Human-readable document title"),
            "introduction": Field(Text(1, 2000), "What the document is about"),
            "keywords": Field(
                ListOf(_KEYWORD, 1, _MOST_KEYWORDS),
                "Words that help to find the document, in the modes meaning and both",
            ),
            "chapters": Field(
                ListOf(_CHAPTER, 0, _MOST_CHAPTERS, "Too many chapters (max 50)"),
                "The document's chapters, in order",
            ),
        }
    ),
    "get_knowledge_file": Object(_OF_FILE),
    "delete_knowledge_file": Object(
        {
            **_OF_PROJECT,
            "filename": Field(_FILENAME, "Full filename including .md extension"),
            **_OF_CHANGE,
        }
    ),
    "search_knowledge": Object(
        {
            **_OF_PROJECT,
            "query": Field(_QUERY, "Space-separated keywords to search for"),
            "mode": _optional(
                Choice(("keywords", "meaning", "both")),
                "Whether to search by the query's words, by its meaning, or by both",
                "keywords",
            ),
            "all_projects": _optional(
                Boolean(), "Whether to search all projects instead of this one", False
            ),
        }
    ),
    "update_chapter": Object(
        {
            **_OF_FILE,
            "chapter_title": Field(_CHAPTER_TITLE, "Exact title of the chapter to update"),
            "new_content": Field(_CHAPTER_CONTENT, "The new content, without the chapter's title"),
            "new_summary": _optional(Text(0, 500), "Ignored; a summary is a chapter's first lines"),
            **_OF_CHANGE,
        }
    ),
    "remove_chapter": Object(
        {
            **_OF_FILE,
            "chapter_title": Field(_CHAPTER_TITLE, "Exact title of the chapter to remove"),
            **_OF_CHANGE,
        }
    ),
    "add_chapter": Object(
        {
            **_OF_FILE,
            "chapter_title": Field(_CHAPTER_TITLE, "Title for the new chapter"),
            "content": Field(_CHAPTER_CONTENT, "The content of the new chapter"),
            "position": _optional(_POSITION, "Where to insert the new chapter", "end"),
            "reference_chapter": _optional(
                _CHAPTER_TITLE,
                "Title of the chapter that the new one goes before or after; "
                "required unless position is end",
            ),
            **_OF_CHANGE,
        }
    ),
    "list_chapters": Object(_OF_FILE),
    "get_chapter": Object(
        {
            **_OF_FILE,
            "chapter_title": _optional(_CHAPTER_TITLE, "Title of the chapter to retrieve"),
            "chapter_index": _optional(_INDEX, "Index of the chapter from 0, instead of its title"),
        }
    ),
    "get_next_chapter": Object(
        {
            **_OF_FILE,
            "current_chapter_title": _optional(_CHAPTER_TITLE, "Title of the current chapter"),
            "current_index": _optional(_INDEX, "Its index from 0, instead of its title"),
        }
    ),
    "get_server_info": Object({}),
    "get_storage_status": Object({}),
    "sync_storage": Object({}),
    "list_todos": Object(_OF_PROJECT),
    "create_todo": Object(
        {
            **_OF_PROJECT,
            "description": Field(_TODO_DESCRIPTION, "Description of the TODO list"),
            "tasks": _optional(
                ListOf(TextOr("title", _TASK_TITLE, _TASK), 0, _MOST_TASKS),
                "The list's first tasks: titles, or objects with title and content",
            ),
        }
    ),
    "add_todo_task": Object(
        {
            **_OF_TODO,
            "title": Field(
                _TASK_TITLE,
                "Brief task title (max 200 chars, used in filename)",
                stand_in="description",
            ),
            "content": _optional(_TASK_CONTENT, "Details of the task, in Markdown"),
            "description": _optional(_TODO_DESCRIPTION, "Another name for `title`"),
        }
    ),
    "remove_todo_task": Object(
        {**_OF_TODO, "task_number": Field(_NUMBER, "The task number to remove")}
    ),
    "complete_todo_task": Object(
        {**_OF_TODO, "task_number": Field(_NUMBER, "The task number to complete")}
    ),
    "get_next_todo_task": Object(_OF_TODO),
    "get_todo_tasks": Object(_OF_TODO),
    "delete_todo": Object(
        {**_OF_PROJECT, "todo_number": Field(_NUMBER, "The TODO list number to delete")}
    ),
}
"""The arguments of each tool."""
