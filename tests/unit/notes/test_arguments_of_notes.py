"""What the tools for notes take, and the exact words for what they do not take."""

import json
import string
import time
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from vector_index_mcp.notes.arguments import TOOLS, WrongArguments, checked, schema_of

MB = 1024 * 1024
P = {"project_id": "My Project"}
F = {**P, "filename": "x.md"}
FILE = {**F, "title": "t", "introduction": "i", "keywords": ["k"], "chapters": []}
TODO = {**P, "todo_number": 1}
SECTION = {**P, "section_header": "## A", "content": "c"}
CHAPTER = {**F, "chapter_title": "c", "content": "c"}

LEAST = {
    "get_project_main": P,
    "update_project_main": {**P, "content": ""},
    "update_project_section": {**P, "section_header": "## A", "new_content": ""},
    "remove_project_section": {**P, "section_header": "## A"},
    "add_project_section": SECTION,
    "delete_project": P,
    "create_knowledge_file": FILE,
    "get_knowledge_file": F,
    "delete_knowledge_file": F,
    "search_knowledge": {**P, "query": "q"},
    "update_chapter": {**F, "chapter_title": "c", "new_content": "c"},
    "remove_chapter": {**F, "chapter_title": "c"},
    "add_chapter": CHAPTER,
    "list_chapters": F,
    "get_chapter": F,
    "get_next_chapter": F,
    "get_server_info": {},
    "get_storage_status": {},
    "sync_storage": {},
    "list_todos": P,
    "create_todo": {**P, "description": "d"},
    "add_todo_task": {**TODO, "title": "t"},
    "remove_todo_task": {**TODO, "task_number": 1},
    "complete_todo_task": {**TODO, "task_number": 1},
    "get_next_todo_task": TODO,
    "get_todo_tasks": TODO,
    "delete_todo": TODO,
}
DEFAULTS = {
    "add_project_section": {"position": "end"},
    "add_chapter": {"position": "end"},
    "search_knowledge": {"mode": "keywords", "all_projects": False},
}


def refused(name, given):
    """The message for arguments that are refused."""
    with pytest.raises(WrongArguments) as error:
        checked(name, given)
    return str(error.value)


def issues(name, given):
    prefix = f"MCP error -32602: Invalid arguments for tool {name}: "
    message = refused(name, given)
    assert message.startswith(prefix)
    return json.loads(message.removeprefix(prefix))


def said(name, given):
    """(path, message) of each issue."""
    return [(*issue["path"], issue["message"]) for issue in issues(name, given)]


def is_taken(name, given):
    try:
        checked(name, given)
    except WrongArguments:
        return False
    return True


def test_the_tools_are_those_of_the_contract_in_its_order():
    assert list(TOOLS) == list(LEAST)
    assert len(TOOLS) == 27


@pytest.mark.parametrize("name", LEAST)
def test_what_is_required_is_enough_and_defaults_are_filled_in(name):
    assert checked(name, LEAST[name]) == {**LEAST[name], **DEFAULTS.get(name, {})}


@pytest.mark.parametrize("name", LEAST)
def test_whatever_is_required_is_missed(name):
    for key in LEAST[name]:
        rest = {k: v for k, v in LEAST[name].items() if k != key}
        [issue] = issues(name, rest)
        assert (issue["code"], issue["received"]) == ("invalid_type", "undefined")
        assert (issue["path"], issue["message"]) == ([key], "Required")


@pytest.mark.parametrize("name", LEAST)
def test_what_is_unknown_is_dropped(name):
    unknown = {"extra": 1, "": [], "project_id ": None, "__proto__": {}}
    assert checked(name, {**LEAST[name], **unknown}) == checked(name, LEAST[name])
    assert not is_taken(name, unknown) or not LEAST[name]


def test_what_is_dropped_is_named_wherever_it_stands():
    given = {**LEAST["create_todo"], "due": 1, "tasks": ["one", {"title": "two", "needs": [1]}]}
    ignored = []
    checked("create_todo", given, ignored)
    assert ignored == ["due", "tasks.1.needs"]


def test_nothing_is_no_arguments():
    assert checked("sync_storage", None) == {}
    assert said("get_project_main", None) == [("project_id", "Required")]


def test_an_issue_is_told_to_the_letter():
    assert refused("get_project_main", {"project_id": ""}) == (
        "MCP error -32602: Invalid arguments for tool get_project_main: [\n"
        "  {\n"
        '    "code": "too_small",\n'
        '    "minimum": 1,\n'
        '    "type": "string",\n'
        '    "inclusive": true,\n'
        '    "exact": false,\n'
        '    "message": "Project ID cannot be empty",\n'
        '    "path": [\n'
        '      "project_id"\n'
        "    ]\n"
        "  }\n"
        "]"
    )


def test_a_path_has_names_and_places():
    assert refused(
        "create_knowledge_file", {**FILE, "chapters": [{"title": "", "content": "c"}]}
    ) == (
        "MCP error -32602: Invalid arguments for tool create_knowledge_file: [\n"
        "  {\n"
        '    "code": "too_small",\n'
        '    "minimum": 1,\n'
        '    "type": "string",\n'
        '    "inclusive": true,\n'
        '    "exact": false,\n'
        '    "message": "Chapter title cannot be empty",\n'
        '    "path": [\n'
        '      "chapters",\n'
        "      0,\n"
        '      "title"\n'
        "    ]\n"
        "  }\n"
        "]"
    )


def custom(name, message):
    return {"code": "custom", "message": message, "path": [name]}


def wrong_type(path, expected, received, message):
    kinds = {"code": "invalid_type", "expected": expected, "received": received}
    return {**kinds, "path": path, "message": message}


def size(code, limit, kind, message, path, inclusive=True):
    bound = "minimum" if code == "too_small" else "maximum"
    rest = {"type": kind, "inclusive": inclusive, "exact": False, "message": message}
    return {"code": code, bound: limit, **rest, "path": path}


def missing(name, kind="string"):
    return wrong_type([name], kind, "undefined", "Required")


def fraction(name):
    kinds = {"code": "invalid_type", "expected": "integer", "received": "float"}
    return {**kinds, "message": "Expected integer, received float", "path": [name]}


def mismatch(path, message):
    return {"validation": "regex", "code": "invalid_string", "message": message, "path": path}


TRAVERSAL = custom("project_id", "Project ID cannot contain path traversal patterns")
RESERVED = custom(
    "project_id", "Project ID cannot contain filesystem reserved characters or null bytes"
)
SPACES = custom("project_id", "Project ID cannot have leading/trailing spaces")
PATHS = custom("filename", "Filename contains invalid path characters")
OUTSIDE = custom("filename", "Filename cannot contain path traversal or leading/trailing spaces")
NO_UNICODE = "Text is not valid Unicode"
HEADER = 'Section header must start with "## "'
NOT_POSITIVE = "Number must be greater than 0"
TOO_LARGE = "Number must be less than or equal to 99999"


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        # As they were recorded.
        ("get_project_main", {}, [missing("project_id")]),
        ("get_project_main", {"project_id": "../x"}, [TRAVERSAL, RESERVED]),
        ("get_project_main", {"project_id": "a/b"}, [RESERVED]),
        ("get_project_main", {"project_id": " x"}, [SPACES]),
        (
            "get_project_main",
            {"project_id": "x" * 101},
            [size("too_big", 100, "string", "Project ID too long", ["project_id"])],
        ),
        (
            "get_project_main",
            {"project_id": 5},
            [wrong_type(["project_id"], "string", "number", "Expected string, received number")],
        ),
        (
            "update_project_section",
            {**P, "section_header": "A", "new_content": "x"},
            [mismatch(["section_header"], HEADER)],
        ),
        (
            "add_project_section",
            {**P, "section_header": "## D", "content": "d", "position": "middle"},
            [
                {
                    "received": "middle",
                    "code": "invalid_enum_value",
                    "options": ["before", "after", "end"],
                    "path": ["position"],
                    "message": "Invalid enum value. Expected 'before' | 'after' | 'end', "
                    "received 'middle'",
                }
            ],
        ),
        (
            "create_knowledge_file",
            {**P, "filename": "x"},
            [
                missing("title"),
                missing("introduction"),
                missing("keywords", "array"),
                missing("chapters", "array"),
            ],
        ),
        (
            "create_knowledge_file",
            {**FILE, "keywords": []},
            [
                size(
                    "too_small",
                    1,
                    "array",
                    "Array must contain at least 1 element(s)",
                    ["keywords"],
                )
            ],
        ),
        (
            "create_knowledge_file",
            {**FILE, "keywords": ["bad kw"]},
            [mismatch(["keywords", 0], "Keyword contains invalid characters")],
        ),
        ("create_knowledge_file", {**FILE, "filename": "../x"}, [PATHS, OUTSIDE]),
        (
            "create_knowledge_file",
            {**FILE, "chapters": [{"title": f"c{n}", "content": "c"} for n in range(51)]},
            [size("too_big", 50, "array", "Too many chapters (max 50)", ["chapters"])],
        ),
        (
            "search_knowledge",
            {**P, "query": ""},
            [size("too_small", 1, "string", "Search query cannot be empty", ["query"])],
        ),
        (
            "search_knowledge",
            {**P, "query": "w w w w w w w w w w w w w w w w w w w w w"},
            [custom("query", "Search query contains too many terms")],
        ),
        ("create_todo", P, [missing("description")]),
        (
            "add_todo_task",
            {**P, "todo_number": "x", "title": "t"},
            [wrong_type(["todo_number"], "number", "string", "Expected number, received string")],
        ),
        ("add_todo_task", TODO, [missing("title")]),
        # As zod says it.
        ("delete_todo", {**P, "todo_number": 1.5}, [fraction("todo_number")]),
        (
            "delete_todo",
            {**P, "todo_number": -1.5},
            [
                fraction("todo_number"),
                size("too_small", 0, "number", NOT_POSITIVE, ["todo_number"], False),
            ],
        ),
        (
            "delete_todo",
            {**P, "todo_number": 10**400},
            [
                fraction("todo_number"),
                size("too_big", 99_999, "number", TOO_LARGE, ["todo_number"]),
            ],
        ),
        (
            "get_chapter",
            {**F, "chapter_index": -1},
            [
                size(
                    "too_small",
                    0,
                    "number",
                    "Number must be greater than or equal to 0",
                    ["chapter_index"],
                )
            ],
        ),
        (
            "add_chapter",
            {**CHAPTER, "position": None},
            [
                {
                    "expected": "'before' | 'after' | 'end'",
                    "received": "null",
                    "code": "invalid_type",
                    "path": ["position"],
                    "message": "Expected 'before' | 'after' | 'end', received null",
                }
            ],
        ),
        (
            "update_chapter",
            {**LEAST["update_chapter"], "new_summary": None},
            [wrong_type(["new_summary"], "string", "null", "Expected string, received null")],
        ),
        (
            "search_knowledge",
            {**P, "query": "q", "all_projects": 1},
            [
                wrong_type(
                    ["all_projects"], "boolean", "number", "Expected boolean, received number"
                )
            ],
        ),
        (
            "sync_storage",
            [],
            [wrong_type([], "object", "array", "Expected object, received array")],
        ),
        (
            "delete_knowledge_file",
            {**F, "revision": "xyz"},
            [
                size(
                    "too_small",
                    4,
                    "string",
                    "String must contain at least 4 character(s)",
                    ["revision"],
                ),
                mismatch(["revision"], "Revision must be hexadecimal"),
            ],
        ),
        (
            "create_knowledge_file",
            {**FILE, "keywords": [True, "a", "b c" * 20]},
            [
                wrong_type(
                    ["keywords", 0], "string", "boolean", "Expected string, received boolean"
                ),
                size(
                    "too_big",
                    50,
                    "string",
                    "String must contain at most 50 character(s)",
                    ["keywords", 2],
                ),
                mismatch(["keywords", 2], "Keyword contains invalid characters"),
            ],
        ),
    ],
)
def test_wrong_arguments_are_told_in_the_words_of_the_contract(name, given, expected):
    listed = json.dumps(expected, indent=2)
    assert refused(name, given) == f"MCP error -32602: Invalid arguments for tool {name}: {listed}"


@pytest.mark.parametrize(
    ("name", "shown"), [("no_such_tool", "no_such_tool"), ("", ""), ("\ud800", "\\ud800")]
)
def test_a_tool_that_there_is_not_is_told(name, shown):
    assert refused(name, {}) == f"MCP error -32602: Tool {shown} not found"


WRONG_IDS = {
    "..": [TRAVERSAL],
    ".": [TRAVERSAL],
    "a..b": [TRAVERSAL],
    ".a": [TRAVERSAL],
    "a.": [TRAVERSAL],
    "a ": [SPACES],
    "\ufeffa": [SPACES],
    "a\n": [SPACES],
    "\ud800": [custom("project_id", NO_UNICODE)],
    " ./..": [TRAVERSAL, RESERVED, SPACES],
    **{f"a{sign}b": [RESERVED] for sign in '/\\:*?"<>|\0'},
}


@pytest.mark.parametrize("name", WRONG_IDS)
def test_a_project_has_no_such_name(name):
    assert issues("get_project_main", {"project_id": name}) == WRONG_IDS[name]


@pytest.mark.parametrize(
    "name", ["a.b", "a b", "ä", "😀", "a\x85", "\x1ca", "-", "~", "a'b", "%2e"]
)
def test_a_project_may_have_such_a_name(name):
    assert checked("get_project_main", {"project_id": name}) == {"project_id": name}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/b", [PATHS]), ("a\\b", [PATHS]), ("a\0", [PATHS]), ("a..md", [OUTSIDE])]
    + [("a.md ", [OUTSIDE]), ("\ufeffa", [OUTSIDE]), ("..", [OUTSIDE])]
    + [("/ ", [PATHS, OUTSIDE]), ("\udfff", [custom("filename", NO_UNICODE)])],
)
def test_a_file_has_no_such_name(name, expected):
    assert issues("get_knowledge_file", {**P, "filename": name}) == expected


@pytest.mark.parametrize(
    ("header", "kept"),
    [("## A", "## A"), ("##  A ", "##  A"), ("##\ufeffA", "##\ufeffA"), ("##\tA\n", "##\tA")]
    + [("## A\x85", "## A\x85")],
)
def test_a_header_is_trimmed_as_javascript_does(header, kept):
    given = {**SECTION, "section_header": header, "reference_header": header}
    found = checked("add_project_section", given)
    assert (found["section_header"], found["reference_header"]) == (kept, kept)


@pytest.mark.parametrize(
    "header", ["A", "# A", "##A", " ## A", "\n## A", "###", "##\x85A", "### A"]
)
def test_something_else_is_no_header(header):
    for name in ("section_header", "reference_header"):
        assert said("add_project_section", {**SECTION, name: header}) == [(name, HEADER)]


@pytest.mark.parametrize("keyword", ["a b", "a\n", "ä", "a/b", "a\0", " a", "١"])
def test_something_else_is_no_keyword(keyword):
    message = "Keyword contains invalid characters"
    given = {**FILE, "keywords": ["k", keyword]}
    assert said("create_knowledge_file", given) == [("keywords", 1, message)]


def test_terms_are_split_where_javascript_sees_blanks():
    assert is_taken("search_knowledge", {**P, "query": "  " + "w\u3000" * 20})
    assert is_taken("search_knowledge", {**P, "query": "w\x85" * 21})
    assert not is_taken("search_knowledge", {**P, "query": "w\ufeff\n" * 21})


@pytest.mark.parametrize("revision", ["abcd\n", "ABCD", "0x12", "١٢٣٤", "abc "])
def test_something_else_is_no_revision(revision):
    given = {**P, "content": "", "revision": revision}
    assert said("update_project_main", given) == [("revision", "Revision must be hexadecimal")]


@pytest.mark.parametrize(
    ("name", "key"),
    [("update_project_main", "content"), ("update_project_section", "new_content")]
    + [("add_project_section", "content"), ("update_chapter", "new_content")]
    + [("add_chapter", "content")],
)
def test_content_has_no_null_bytes(name, key):
    given = {**LEAST[name], key: "a\0b"}
    assert said(name, given) == [(key, "Content cannot contain null bytes")]
    given = {**LEAST[name], key: "\r\n\x01\u2028\ufffe😀"}
    assert checked(name, given)[key] == given[key]


def texts_in(arguments, way=()):
    """The way to each text."""
    for key, value in arguments.items() if isinstance(arguments, dict) else enumerate(arguments):
        if isinstance(value, str):
            yield (*way, key)
        elif isinstance(value, dict | list):
            yield from texts_in(value, (*way, key))


def put(arguments, way, value):
    """`arguments` with another value at the end of `way`."""
    changed = arguments.copy()
    changed[way[0]] = put(arguments[way[0]], way[1:], value) if way[1:] else value
    return changed


FULL = {
    **LEAST,
    "create_knowledge_file": {**FILE, "chapters": [{"title": "t", "content": "c"}]},
    "update_chapter": {**LEAST["update_chapter"], "new_summary": "s", "revision": "abcd"},
    "add_chapter": {**CHAPTER, "position": "after", "reference_chapter": "r"},
    "add_project_section": {**SECTION, "position": "before", "reference_header": "## B"},
    "get_chapter": {**F, "chapter_title": "t", "chapter_index": 0},
    "get_next_chapter": {**F, "current_chapter_title": "t", "current_index": 0},
    "create_todo": {**P, "description": "d", "tasks": ["t", {"title": "t", "content": "c"}]},
    "add_todo_task": {**TODO, "title": "t", "content": "c", "description": "d"},
    "search_knowledge": {**P, "query": "q", "mode": "both", "all_projects": True},
}


@pytest.mark.parametrize("name", FULL)
def test_half_a_character_is_no_text(name):
    for way in texts_in(FULL[name]):
        found = issues(name, put(FULL[name], way, "## a\udc00"))
        assert NO_UNICODE in [i["message"] for i in found] or way[-1] in {"position", "mode"}
        assert all(issue["path"] == [*way] for issue in found)


def test_what_is_told_back_can_be_written_and_is_short():
    message = refused("add_chapter", {**CHAPTER, "position": "\ud800" + "é😀" * MB})
    assert len(message.encode()) < 3_000
    assert "received '\\ud800é😀" in message
    assert json.loads(message.partition("chapter: ")[2])[0]["received"].startswith("\ud800é")
    assert len(refused("x" * MB, {})) < 300


SIZES = [
    ("get_project_main", ["project_id"], "x", 1, 100),
    ("delete_project", ["project_id"], "😀", 1, 50),
    ("get_knowledge_file", ["filename"], "x", 1, 255),
    ("update_project_main", ["content"], "x", 0, 10 * MB),
    ("update_project_section", ["new_content"], "x", 0, 10 * MB),
    ("add_project_section", ["content"], "😀", 0, 5 * MB),
    ("add_project_section", ["section_header"], "## ", 1, 66),
    ("add_project_section", ["reference_header"], "## ", 1, 66),
    ("search_knowledge", ["query"], "x", 1, 200),
    ("search_knowledge", ["query"], "w ", 1, 20),
    ("create_knowledge_file", ["title"], "x", 1, 200),
    ("create_knowledge_file", ["introduction"], "😀", 1, 1000),
    ("create_knowledge_file", ["keywords", 0], "x", 1, 50),
    ("create_knowledge_file", ["chapters", 0, "title"], "x", 1, 200),
    ("create_knowledge_file", ["chapters", 0, "content"], "x", 1, MB),
    ("update_chapter", ["chapter_title"], "x", 1, 200),
    ("update_chapter", ["new_content"], "x", 1, MB),
    ("update_chapter", ["new_summary"], "x", 0, 500),
    ("update_chapter", ["revision"], "a", 4, 40),
    ("remove_chapter", ["chapter_title"], "😀", 1, 100),
    ("add_chapter", ["chapter_title"], "x", 1, 200),
    ("add_chapter", ["content"], "x", 1, MB),
    ("add_chapter", ["reference_chapter"], "x", 1, 200),
    ("get_chapter", ["chapter_title"], "x", 1, 200),
    ("get_next_chapter", ["current_chapter_title"], "x", 1, 200),
    ("create_todo", ["description"], "x", 1, 500),
    ("create_todo", ["tasks", 0], "x", 1, 200),
    ("create_todo", ["tasks", 1, "title"], "x", 1, 200),
    ("create_todo", ["tasks", 1, "content"], "x", 0, 100 * 1024),
    ("add_todo_task", ["title"], "x", 1, 200),
    ("add_todo_task", ["content"], "x", 0, 100 * 1024),
    ("add_todo_task", ["description"], "x", 1, 500),
    ("create_knowledge_file", ["keywords"], ["k"], 1, 50),
    ("create_knowledge_file", ["chapters"], [{"title": "t", "content": "c"}], 0, 50),
    ("create_todo", ["tasks"], ["t"], 0, 100),
]


@pytest.mark.parametrize(("name", "way", "part", "least", "most"), SIZES)
def test_a_size_may_be_as_large_as_this_and_no_larger(name, way, part, least, most):
    for times in {least, most}:
        assert is_taken(name, put(FULL[name], way, part * times))
    for times in {least - 1, most + 1} - {-1}:
        found = issues(name, put(FULL[name], way, part * times))
        assert {tuple(issue["path"]) for issue in found} == {tuple(way)}


NUMBERS = [
    (name, key)
    for name, given in FULL.items()
    for key in given
    if key in {"todo_number", "task_number"}
]


@pytest.mark.parametrize(("name", "key"), NUMBERS)
def test_a_number_is_from_1_to_99999(name, key):
    for number in (1, 99_999, 2.0):
        found = checked(name, {**FULL[name], key: number})[key]
        assert (found, type(found)) == (number, int)
    for number, message in [(0, NOT_POSITIVE), (-7, NOT_POSITIVE), (100_000, TOO_LARGE)]:
        assert said(name, {**FULL[name], key: number}) == [(key, message)]
    for value in (None, "1", [], True, 0.5, 1e400):
        assert not is_taken(name, {**FULL[name], key: value})


@pytest.mark.parametrize(
    ("name", "key"), [("get_chapter", "chapter_index"), ("get_next_chapter", "current_index")]
)
def test_a_place_is_0_or_more(name, key):
    for number in (0, 1, 3.0, -0.0, 10**300):
        found = checked(name, {**F, key: number})
        assert (found[key], type(found[key])) == (number, int)
    for number in (-1, 0.5, 10**400, float("inf"), float("nan"), True, None):
        assert not is_taken(name, {**F, key: number})


@pytest.mark.parametrize("position", ["before", "after", "end"])
def test_a_position_is_one_of_three(position):
    assert checked("add_chapter", {**CHAPTER, "position": position})["position"] == position
    assert not is_taken("add_chapter", {**CHAPTER, "position": position.upper()})


@pytest.mark.parametrize("mode", ["keywords", "meaning", "both"])
def test_a_mode_is_one_of_three(mode):
    assert checked("search_knowledge", {**P, "query": "q", "mode": mode})["mode"] == mode


def test_a_task_is_a_title_or_has_one():
    found = checked(
        "create_todo", {**P, "description": "d", "tasks": ["a", {"title": "b", "x": 1}]}
    )
    assert found["tasks"] == [{"title": "a"}, {"title": "b"}]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("", [("String must contain at least 1 character(s)",)]),
        (5, [("Expected object, received number",)]),
        (None, [("Expected object, received null",)]),
        (["t"], [("Expected object, received array",)]),
        ({}, [("title", "Required")]),
        ({"title": 1}, [("title", "Expected string, received number")]),
        ({"title": "t", "content": None}, [("content", "Expected string, received null")]),
    ],
)
def test_a_wrong_task_is_told_as_what_it_looks_like(task, expected):
    given = {**P, "description": "d", "tasks": ["t", task]}
    assert said("create_todo", given) == [("tasks", 1, *rest) for rest in expected]


def test_a_description_stands_in_for_a_title():
    found = checked("add_todo_task", {**TODO, "description": "d" * 500, "content": "c"})
    assert found == {**TODO, "title": "d" * 500, "content": "c"}
    found = checked("add_todo_task", {**TODO, "description": "d", "title": "t"})
    assert found == {**TODO, "title": "t"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"content": 5}, [("title", "Required"), ("content", "Expected string, received number")]),
        ({"description": None}, [("description", "Expected string, received null")]),
        ({"title": None, "description": "d"}, [("title", "Expected string, received null")]),
        ({"": "d"}, [("title", "Required")]),
    ],
)
def test_a_task_without_a_title_is_refused(given, expected):
    assert said("add_todo_task", {**TODO, **given}) == expected


def test_issues_are_in_the_order_of_the_schema():
    given = dict(reversed([*{**FILE, "project_id": "", "title": 1, "keywords": 2}.items()]))
    assert [way for way, _ in said("create_knowledge_file", given)] == [
        "project_id",
        "title",
        "keywords",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {**FILE, "keywords": ["/"] * 1_000_000},
        {**FILE, "chapters": [{}] * 1_000_000},
        {
            **FILE,
            "keywords": [[]] * 1_000_000,
            "chapters": [""] * 1_000_000,
            "title": "t" * 20 * MB,
        },
    ],
)
def test_no_arguments_make_a_long_answer(given):
    start = time.thread_time()
    tracemalloc.start()
    try:
        found = issues("create_knowledge_file", given)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 100
    assert time.thread_time() - start < 5
    assert most < 100 * MB


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
names = st.sampled_from([*TOOLS])


def at_random(name):
    """Arguments of a tool of which any may be anything, or missing."""
    fields = {key: anything | st.just(value) for key, value in FULL[name].items()}
    return st.fixed_dictionaries({}, optional=fields) | anything


ISSUE_KEYS = {
    "invalid_type": {"expected", "received"},
    "invalid_enum_value": {"received", "options"},
    "invalid_string": {"validation"},
    "too_small": {"minimum", "type", "inclusive", "exact"},
    "too_big": {"maximum", "type", "inclusive", "exact"},
    "custom": set(),
}


@pytest.mark.slow
@given(names.flatmap(lambda name: st.tuples(st.just(name), at_random(name))))
@example(("get_project_main", {"": 1}))
@example(("add_todo_task", {**TODO, "description": ""}))
def test_anything_is_taken_within_the_limits_or_refused_in_json(call):
    name, given = call
    try:
        found = checked(name, given)
    except WrongArguments as error:
        head, _, listed = str(error).partition(f" for tool {name}: ")
        assert head == "MCP error -32602: Invalid arguments"
        assert str(error).encode()
        assert (
            json.dumps(json.loads(listed), indent=2, ensure_ascii=False).encode(
                errors="backslashreplace"
            )
            == listed.encode()
        )
        for issue in json.loads(listed):
            assert issue.keys() == {"code", "path", "message", *ISSUE_KEYS[issue["code"]]}
            assert issue["message"]
            assert not issue["path"] or issue["path"][0] in TOOLS[name].fields
    else:
        assert_within_limits(name, found)


def assert_within_limits(name, found):
    json.dumps(found, ensure_ascii=False).encode()
    assert [*Draft7Validator(schema_of(name)).iter_errors(found)] == []


def texts(least, most, alphabet=None):
    """Of so many UTF-16 units."""
    wide = st.characters() if alphabet is None else alphabet
    drawn = st.text(wide, min_size=least, max_size=most)
    fits = drawn.filter(lambda text: len(text.encode("utf-16-le", "replace")) // 2 <= most)
    return st.sampled_from(["x" * most, "x" * max(least, 1)]) | fits


unicode = st.characters(codec="utf-8")
printable = st.sampled_from(string.ascii_letters + string.digits + "äß😀-_'&%$ ")
project_ids = texts(1, 100, printable).filter(lambda text: text == text.strip())
filenames = texts(1, 255, st.sampled_from(string.ascii_letters + "ä😀-:*?")).map(
    lambda name: name[:250] + ".md"
)
headers = texts(0, 197, unicode).map("## ".__add__)
long = texts(1, 300, st.characters(codec="utf-8", exclude_characters="\0"))
keywords = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=50)
numbers = st.integers(1, 99_999) | st.integers(1, 99_999).map(float)
title = texts(1, 200, unicode)
task = st.fixed_dictionaries({"title": title}, optional={"content": long})
VALUES = {
    "project_id": project_ids,
    "filename": filenames,
    "section_header": headers,
    "reference_header": headers,
    "content": long,
    "new_content": long,
    "new_summary": texts(0, 500, unicode),
    "title": title,
    "introduction": texts(1, 2000, unicode),
    "keywords": st.lists(keywords, min_size=1, max_size=50),
    "chapters": st.lists(st.fixed_dictionaries({"title": title, "content": long}), max_size=50),
    "query": st.lists(st.text(string.ascii_letters, max_size=9), min_size=2, max_size=20).map(
        " ".join
    ),
    "description": texts(1, 500, unicode),
    "tasks": st.lists(title | task, max_size=100),
    "position": st.sampled_from(["before", "after", "end"]),
    "mode": st.sampled_from(["keywords", "meaning", "both"]),
    "all_projects": st.booleans(),
    "revision": st.text("0123456789abcdef", min_size=4, max_size=40),
    **dict.fromkeys(("todo_number", "task_number"), numbers),
    **dict.fromkeys(("chapter_index", "current_index"), st.integers(0, 10**9)),
    **dict.fromkeys(("chapter_title", "current_chapter_title", "reference_chapter"), title),
}


def valid(name):
    required = {key: VALUES[key] for key in LEAST[name]}
    others = {key: VALUES[key] for key in TOOLS[name].fields if key not in required}
    return st.tuples(st.just(name), st.fixed_dictionaries(required, optional=others))


@pytest.mark.slow
@given(names.flatmap(valid))
def test_what_is_valid_is_taken_and_valid_by_the_schema(call):
    name, given = call
    schema = schema_of(name)
    assert [*Draft7Validator(schema).iter_errors(given)] == []
    found = checked(name, given)
    assert LEAST[name].keys() <= found.keys() <= TOOLS[name].fields.keys()
    for key, value in found.items():
        if key not in given:
            assert value == DEFAULTS.get(name, {}).get(key, given.get("description"))
        elif key in {"section_header", "reference_header"}:
            assert given[key].startswith(value)
        elif key == "tasks":
            titles = [task if isinstance(task, str) else task["title"] for task in given[key]]
            assert [task["title"] for task in value] == titles
        else:
            assert value == given[key]


@pytest.mark.parametrize("name", LEAST)
def test_a_schema_is_one(name):
    schema = schema_of(name)
    Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", [])) == LEAST[name].keys() - (
        {"title"} if name == "add_todo_task" else set()
    )
    assert ("required" in schema) == bool(LEAST[name])
    assert all(field["description"] for field in schema["properties"].values())
    assert "$schema" not in json.dumps(schema["properties"])


def test_a_schema_is_told_as_the_contract_has_it():
    project_id = {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "description": "The project identifier",
    }
    assert schema_of("remove_todo_task") == {
        "type": "object",
        "properties": {
            "project_id": project_id,
            "todo_number": {
                "type": "integer",
                "exclusiveMinimum": 0,
                "maximum": 99999,
                "description": "The TODO list number",
            },
            "task_number": {
                "type": "integer",
                "exclusiveMinimum": 0,
                "maximum": 99999,
                "description": "The task number to remove",
            },
        },
        "required": ["project_id", "todo_number", "task_number"],
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    added = schema_of("add_project_section")["properties"]
    assert added["section_header"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "pattern": "^##\\s+",
        "description": 'The new section header (e.g., "## Configuration")',
    }
    assert added["position"]["enum"] == ["before", "after", "end"]
    assert added["position"]["default"] == "end"
    assert schema_of("search_knowledge")["properties"]["all_projects"]["default"] is False
    tasks = schema_of("create_todo")["properties"]["tasks"]
    assert (tasks["type"], tasks["maxItems"]) == ("array", 100)
    assert tasks["items"]["anyOf"][0] == {"type": "string", "minLength": 1, "maxLength": 200}
    assert tasks["items"]["anyOf"][1]["required"] == ["title"]
    chapters = schema_of("create_knowledge_file")["properties"]["chapters"]
    assert chapters["items"]["additionalProperties"] is False
    assert (chapters["maxItems"], "minItems" in chapters) == (50, False)
    assert schema_of("sync_storage") == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
