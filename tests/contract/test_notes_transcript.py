"""Every recorded request to the original program, and what ours answers instead, and why.

`notes_transcript.txt` has the requests in order, each with the original's answer. The lines `!!`
below an answer name in which ways ours differs; `DIFFERENCES` says once for each way why, and makes
our answer of the recorded one. `<time>`, `<trace>` and the like stand for what differs each time.
"""

import json
import re
from pathlib import Path

import pytest
from greeting import CLIENT
from stores import notes_of, spoken_to

from vector_index_mcp import __version__

pytestmark = pytest.mark.anyio

PATTERN = re.compile(r">> (.*)\n<< (.*)\n((?:!! .*\n)*)")
TRANSCRIPT = (Path(__file__).parent / "notes_transcript.txt").read_text(encoding="utf-8")
EXCHANGES = PATTERN.findall(TRANSCRIPT)
VARYING = (
    (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<time>"),
    (r'(?<="traceId": ")[0-9a-f]{32}(?=")', "<trace>"),
    (r'(?<=[Rr]evision": ")[0-9a-f]{12}(?=")', "<revision>"),
    (r'(?<="last_commit": ")[0-9a-f]{7,}(?= - )', "<commit>"),
    (r"(?<=\()\d+ seconds? ago(?=\))", "<age>"),
)


# -- the differences -------------------------------------------------------------------------


def with_revision(answer, _):
    for each in [answer.get("document", answer), *answer.get("results", ())]:
        each["revision"] = "<revision>"
    return answer if "results" not in answer else without(answer, "revision")


def without(answer, key):
    return {name: value for name, value in answer.items() if name != key}


def with_code(answer, code):
    return {**answer, "code": code}


def with_introduction(answer, _):
    document = answer["document"]
    document["introduction"] = document["full_content"].partition("\n## ")[0].strip()
    return answer


def with_whole_file(answer, _):
    document = answer["document"]
    data = document["metadata"]
    front = [
        f"title: {data['title']}",
        f"keywords: [{', '.join(data['keywords'])}]",
        f"created: '{data['created']}'",
        f"updated: '{data['updated']}'",
    ]
    document["full_content"] = "\n".join(["---", *front, "---", "", document["full_content"]])
    return answer


def with_single_blank_lines(answer, _):
    document = answer["document"]
    text = re.sub(r"\n{3,}", "\n\n", document["full_content"])
    document["full_content"] = re.sub(r"\n+\Z", "\n", text)
    return answer


def with_one_end(answer, _):
    return {**answer, "content": answer["content"].rstrip("\n") + "\n"}


def with_both_shapes(answer, chapters):
    for result in answer["results"]:
        result["file"] = result["document"]
        result["match_count"] = len(result["chapters"])
        result["metadata"] = chapters["metadata"]
        result["matching_chapters"] = chapters["matching_chapters"]
    return answer


def with_filename(answer, name):
    return {**answer, "context": {**answer["context"], "filename": name}}


def with_candidates(answer, candidates):
    return {**answer, "context": {**answer["context"], **candidates}}


def with_contents(answer, contents):
    for task in answer.get("tasks", [answer.get("task")]):
        if content := contents.get(str(task["number"])):
            task["content"] = content
    return answer


def with_resource(answer, ours):
    [content] = answer["contents"]
    return {"contents": [{"uri": content["uri"], **ours}]}


def with_words(answer, ours):
    """Sets what is named; what has a path of dots lies deeper."""
    for path, value in ours.items():
        *above, name = path.split(".")
        at = answer
        for step in above:
            at = at[int(step) if step.isdigit() else step]
        at[name] = value
    return answer


def with_revision_argument(answer, schema):
    for tool in answer["tools"]:
        if tool["name"] in {"update_project_main", "delete_knowledge_file"}:
            tool["inputSchema"]["properties"]["revision"] = schema
    return answer


def with_ways_to_search(answer, schemas):
    [search] = [tool for tool in answer["tools"] if tool["name"] == "search_knowledge"]
    search["inputSchema"]["properties"] |= schemas
    return answer


def instead(_, ours):
    return ours


DIFFERENCES = {
    "revision": (
        "what is read and written has a revision, by which a change is refused that was made from "
        "an older text",
        with_revision,
    ),
    "revision-argument": ("so a change may name one", with_revision_argument),
    "ways-to-search": ("one may search by meaning, and in all projects", with_ways_to_search),
    "both-shapes": (
        "a result has the keys of the specification and those of the program",
        with_both_shapes,
    ),
    "code": (
        "the specification has 22 codes: SECTION_ALREADY_EXISTS and TASK_NOT_FOUND are none of "
        "them",
        with_code,
    ),
    "introduction": ("the specification has it in a document", with_introduction),
    "whole-file": (
        "the specification has the raw file in full_content, so with its front matter",
        with_whole_file,
    ),
    "blank-lines": (
        "one blank line stands between chapters, however often they change",
        with_single_blank_lines,
    ),
    "one-end": ("a chapter's text ends with one line feed", with_one_end),
    "filename": ("the context of every error about a document names it", with_filename),
    "no-project": ("a search of a project that does not exist says so", with_words),
    "candidates": ("an error about a name or number says which there are", with_candidates),
    "resource": (
        "resources have the shapes of the specification, and their addresses are decoded",
        with_resource,
    ),
    "types": ("a template says what type its resources have, in other words", with_words),
    "tasks-as-text": (
        "the specification has tasks as texts and a description for a task, the program has "
        "titles: both are taken",
        instead,
    ),
    "later-numbers": ("so there are more tasks and lists from there on", instead),
    "task-content": ("the content of a task is given back", with_contents),
    "announced": (
        "what the server is and can do: it completes nothing, and its lists do not change",
        with_words,
    ),
    "version": ("it is another program", with_words),
    "branch": ("a new store is on main", with_words),
    "commit-message": ("commits say what the specification says", with_words),
}


def ours(answer, differences):
    """The answer that ours is to give, made of the recorded one."""
    for line in differences.splitlines():
        _, name, *rest = line.split(" ", 2)
        _, change = DIFFERENCES[name]
        answer = change(answer, json.loads(rest[0]) if rest else None)
    return answer


# -- asking ----------------------------------------------------------------------------------


async def asked(ask, request):
    """The answer to a line of the transcript, in its form."""
    method, _, rest = request.partition(" ")
    params = {}
    if method == "initialize":
        params = CLIENT
    elif method == "tools/call":
        name, _, arguments = rest.partition(" ")
        params = {"name": name, "arguments": json.loads(arguments)}
    elif method == "resources/read":
        params = {"uri": rest}
    answer = await ask(method, **params)
    if "error" in answer:
        return answer["error"]
    result = answer["result"]
    for content in result.get("contents", ()):
        if content["mimeType"] == "application/json":
            content["text"] = json.loads(content["text"])
    if method != "tools/call":
        return result
    assert result.keys() == {"content", "structuredContent"}
    [content] = result["content"]
    assert content["type"] == "text"
    assert json.dumps(result["structuredContent"], indent=2, ensure_ascii=False) == content["text"]
    return result["structuredContent"]


def settled(answer, store):
    """An answer with placeholders for what differs each time."""
    text = json.dumps(answer, ensure_ascii=False).replace(str(store), "<storage>")
    text = text.replace(f'"version": "{__version__}"', '"version": "<version>"')
    for pattern, placeholder in VARYING:
        text = re.sub(pattern, placeholder, text)
    return json.loads(text)


def as_recorded(answer, recorded):
    """A list of tools with what is recorded of each: no descriptions, and of long schemas a part.

    A schema that was recorded as a whole has a `$schema`.
    """
    assert [tool["name"] for tool in answer["tools"]] == [t["name"] for t in recorded["tools"]]
    found = []
    for tool, known in zip(answer["tools"], recorded["tools"], strict=True):
        schema = undescribed(tool["inputSchema"])
        if "$schema" not in known["inputSchema"]:
            names = known["inputSchema"]["properties"]
            properties = {name: schema["properties"][name] for name in names}
            schema = {"type": schema["type"], "properties": properties}
        found.append({"name": tool["name"], "title": tool["title"], "inputSchema": schema})
    return {"tools": found}


def undescribed(schema):
    if isinstance(schema, dict):
        return {
            key: undescribed(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [undescribed(each) for each in schema] if isinstance(schema, list) else schema


@pytest.fixture(scope="module")
async def answers(tmp_path_factory):
    """What ours says to each request, all of them asked in order."""
    folder = tmp_path_factory.mktemp("notes")
    async with spoken_to(notes_of(folder)) as ask:
        return [settled(await asked(ask, request), folder / "store") for request, _, _ in EXCHANGES]


# -- the tests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number", range(len(EXCHANGES)), ids=[f"{request:.60}" for request, _, _ in EXCHANGES]
)
async def test_every_recorded_request_is_answered_but_for_what_is_named(answers, number):
    request, recorded, differences = EXCHANGES[number]
    expected = ours(json.loads(recorded.removeprefix("ERROR ")), differences)
    answer = answers[number]
    if request == "tools/list":
        answer = as_recorded(answer, expected)
    if request == "initialize":
        assert answer.pop("instructions")
    assert answer == expected


def test_the_transcript_is_read_to_its_end():
    lines = "".join(
        f">> {request}\n<< {answer}\n{differences}" for request, answer, differences in EXCHANGES
    )
    assert lines == TRANSCRIPT
    assert len(EXCHANGES) == 112


def test_every_difference_that_is_explained_is_there():
    named = {line.split(" ")[1] for *_, lines in EXCHANGES for line in lines.splitlines()}
    assert named == set(DIFFERENCES)
    assert all(reason for reason, _ in DIFFERENCES.values())


def test_what_was_an_error_is_one_but_where_tasks_are_taken_as_text():
    taken = [
        request
        for request, recorded, differences in EXCHANGES
        if recorded.startswith("ERROR ") and differences
    ]
    assert [request.split(" ")[1] for request in taken] == ["create_todo", "add_todo_task"]
