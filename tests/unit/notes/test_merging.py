"""What two machines have written apart from each other is merged, and nothing of it is lost."""

import json
from collections import Counter
from itertools import count

import pytest
from drawn import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vector_index_mcp.notes.merging import chapters, conflicts, merged
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.texts import knowledge, matter, slugs

LABEL = "origin/main, 2026-11-22"
NAMED = "(origin-main, 2026-11-22)"  # in names of files
MARK = "<!-- conflict: changed on both sides; keep what is right and remove this chapter -->"
API = "projects/my-app/knowledge/api.md"
TODO = "projects/my-app/TODO/"
BOTH_KEPT = "was changed on both sides; both versions are kept"
KEPT = "was removed on one side and changed on the other; it is kept"


def tree(files):
    """Files whose contents are written as texts, objects or bytes."""
    return {
        path: json.dumps(content).encode()
        if isinstance(content, dict)
        else content.encode()
        if isinstance(content, str)
        else content
        for path, content in files.items()
    }


def merge(base, ours, theirs, unchanged=()):
    return merged(tree(base), tree(ours), tree(theirs), LABEL, unchanged)


def after(ours, merge):
    """Our side after the merge."""
    found = {**ours, **merge.files}
    return {path: content for path, content in found.items() if content is not None}


def result(base, ours, theirs, unchanged=()):
    return after(tree(ours), merge(base, ours, theirs, unchanged))


def document(base, ours, theirs):
    """A document that both sides have, and the notes; None is where it is not there."""
    sides = [{} if text is None else {API: text} for text in (base, ours, theirs)]
    found = merge(*sides)
    assert found.files.keys() <= {API}
    return after(tree(sides[1]), found)[API].decode(), found.notes


def read(content):
    return json.loads(content)


# -- whole files -----------------------------------------------------------------------------

PATHS = [
    "index.json",
    "README.md",
    "projects/my-app/main.md",
    API,
    TODO + "1/index.json",
    TODO + "1/TASK-001-a.json",
    TODO + "1/TASK-001-a.md",
    "projects/my-app/picture.png",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("a", "b", "b", "b"),
        ("a", "b", "a", "b"),
        ("a", "a", "b", "b"),
        ("a", None, None, None),
        ("a", None, "a", None),
        ("a", "a", None, None),
        (None, "a", None, "a"),
        (None, None, "a", "a"),
        (None, "a", "a", "a"),
        ("a", "b", None, "b"),
        ("a", None, "b", "b"),
    ],
)
def test_what_one_side_has_changed_is_taken_over(path, base, ours, theirs, expected):
    content = {None: None, **{c: json.dumps({"projects": {}, "x": c}).encode() for c in "ab"}}
    sides = [{path: content[side]} for side in (base, ours, theirs)]
    found = merged(*sides, LABEL, ())
    is_rescued = base and expected == "b" and None in (ours, theirs)
    if path == "index.json" and expected is None and (ours or theirs):
        expected, is_rescued = "a", True  # a store is not left without it
    assert {**sides[1], **found.files}[path] == content[expected]
    assert (found.files == {}) == (ours == expected)
    assert len(found.notes) == bool(is_rescued)


def test_a_removed_file_that_was_changed_stays():
    found = merge({API: "a"}, {}, {API: "b"})
    assert found.files == {API: b"b"}
    assert found.notes == [f"my-app/knowledge/api.md {KEPT}"]


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("a.txt", f"a {NAMED}.txt"),
        (TODO + "1/TASK-003-x/y.json", TODO + f"1/TASK-003-x/y {NAMED}.json"),
        ("x/a.tar.gz", f"x/a.tar {NAMED}.gz"),
        (".gitignore", f".gitignore {NAMED}"),
        ("Makefile", f"Makefile {NAMED}"),
        ("é" * 120 + ".txt", "é" * 105 + f" {NAMED}.txt"),
    ],
)
def test_any_other_file_is_kept_twice(path, other):
    found = merge({path: "base"}, {path: "ours"}, {path: "theirs"})
    assert found.files == {other: b"theirs"}
    name = other.rpartition("/")[2]
    shown = path.removeprefix("projects/")
    assert found.notes == [f'{shown} has two versions; one is kept as "{name}"']
    assert len(name.encode()) <= 240


def test_the_name_of_another_version_is_not_taken():
    taken = {"a.txt": "ours", f"a {NAMED}.txt": "x"}
    found = merge({}, taken, {"a.txt": "theirs"}, [f"a {NAMED[:-1]}, 2).txt/inner"])
    assert found.files == {f"a {NAMED[:-1]}, 3).txt": b"theirs"}


def test_two_names_that_are_too_long_do_not_become_one():
    ours, theirs = ({"x" * 240 + end: side for end in "ab"} for side in ("ours", "theirs"))
    assert len(merge({}, ours, theirs).files) == 2


def test_a_label_may_say_anything():
    label = ' ../a\\b:"c"\n*\ud800 '
    found = merged({}, {"a.txt": b"1"}, {"a.txt": b"2"}, label, ())
    assert found.files == {"a (..-a-b-c- -).txt": b"2"}
    assert merged({}, {"a": b"1"}, {"a": b"2"}, " ", ()).files == {"a (other side)": b"2"}


def test_markdown_that_is_no_text_is_kept_twice():
    for sides in (["", b"\xff", "b"], ["", "a", b"\xff"], [b"\xff", "a", "b"]):
        found = result(*({API: side} for side in sides))
        contents = set(tree({"o": sides[1], "t": sides[2]}).values())
        assert {*found} == {API, API.replace(".md", f" {NAMED}.md")}
        assert {*found.values()} == contents


def test_a_file_and_a_folder_of_the_same_name_are_both_kept():
    file, folder = {"x/a.b": "file"}, {"x/a.b/c": "1", "x/a.b/d/e": "2"}
    found = merge({}, file, folder)
    assert found.files == {f"x/a {NAMED}.b/c": b"1", f"x/a {NAMED}.b/d/e": b"2"}
    assert found.notes == [f'x/a.b is a file on one side; theirs is kept as "a {NAMED}.b"']
    assert merge({}, folder, file).files == {f"x/a {NAMED}.b": b"file"}
    assert merge(file, {"x/a.b": "changed"}, folder).files == {
        f"x/a {NAMED}.b/c": b"1",
        f"x/a {NAMED}.b/d/e": b"2",
    }
    assert merge(file, file, folder).files == {"x/a.b": None, **tree(folder)}


# -- documents -------------------------------------------------------------------------------

BASE = "---\ntitle: API\n---\nIntro\n\n## Auth\n\nold\n\n## Errors\n\n404\n"
ON_CHAPTERS = {
    "another chapter on each side": (
        BASE,
        BASE.replace("old", "ours"),
        BASE.replace("404", "500"),
        BASE.replace("old", "ours").replace("404", "500"),
        [],
    ),
    "the introduction": (
        BASE,
        BASE.replace("old", "ours"),
        BASE.replace("Intro", "More"),
        BASE.replace("old", "ours").replace("Intro", "More"),
        [],
    ),
    "the same chapter": (
        BASE,
        BASE.replace("old", "ours"),
        BASE.replace("old", "theirs"),
        BASE.replace("old", f"ours\n\n## Auth ({LABEL})\n\n{MARK}\n\ntheirs"),
        [f'chapter "Auth" of my-app/knowledge/api.md {BOTH_KEPT}'],
    ),
    "the last chapter": (
        BASE,
        BASE.replace("404", "500"),
        BASE.replace("404", "403"),
        BASE.replace("404", f"500\n\n## Errors ({LABEL})\n\n{MARK}\n\n403"),
        [f'chapter "Errors" of my-app/knowledge/api.md {BOTH_KEPT}'],
    ),
    "the same introduction": (
        BASE,
        BASE.replace("Intro", "Ours"),
        BASE.replace("Intro", "Theirs"),
        BASE.replace("Intro", f"Ours\n\n## Introduction ({LABEL})\n\n{MARK}\n\nTheirs"),
        [f"the introduction of my-app/knowledge/api.md {BOTH_KEPT}"],
    ),
    "the same chapter in the same way": (
        BASE,
        BASE.replace("old", "new").replace("404", "500"),
        BASE.replace("old\n", "new  \n\n"),
        BASE.replace("old", "new").replace("404", "500"),
        [],
    ),
    "added on both sides": (
        BASE,
        BASE + "\n## O\n\no\n",
        BASE + "\n## T1\n\nt1\n\n## T2\n\nt2",
        BASE + "\n## T1\n\nt1\n\n## T2\n\nt2\n\n## O\n\no\n",
        [],
    ),
    "added in the middle and at the top": (
        BASE,
        BASE.replace("404", "500"),
        BASE.replace("## Auth", "## First\n\n1\n\n## Auth").replace("## Er", "## T\n\nt\n\n## Er"),
        BASE.replace("## Auth", "## First\n\n1\n\n## Auth")
        .replace("## Er", "## T\n\nt\n\n## Er")
        .replace("404", "500"),
        [],
    ),
    "the same title added on both sides": (
        BASE,
        BASE + "\n## New\n\no\n",
        BASE + "\n## New\n\nt",
        BASE + f"\n## New\n\no\n\n## New ({LABEL})\n\n{MARK}\n\nt",
        [f'chapter "New" of my-app/knowledge/api.md {BOTH_KEPT}'],
    ),
    "a document added on both sides": (
        None,
        "## A\n\n1\n\n## B\n\n2\n",
        "Intro\n\n## B\n\n2\n\n## C\n\n3\n",
        "Intro\n\n## A\n\n1\n\n## B\n\n2\n\n## C\n\n3\n",
        [],
    ),
    "removed, and changed elsewhere": (
        BASE,
        BASE.replace("## Errors\n\n404\n", ""),
        BASE.replace("old", "new"),
        BASE.replace("\n\n## Errors\n\n404", "").replace("old", "new"),
        [],
    ),
    "removed by us and changed by them": (
        BASE,
        BASE.replace("## Auth\n\nold\n\n", ""),
        BASE.replace("old", "new"),
        BASE.replace("old", "new"),
        [f'chapter "Auth" of my-app/knowledge/api.md {KEPT}'],
    ),
    "changed by us and removed by them": (
        BASE,
        BASE.replace("old", "new"),
        BASE.replace("## Auth\n\nold\n\n", ""),
        BASE.replace("old", "new"),
        [f'chapter "Auth" of my-app/knowledge/api.md {KEPT}'],
    ),
    "an introduction that was removed by them": (
        BASE,
        BASE.replace("Intro", "More"),
        BASE.replace("Intro\n", "").replace("old", "new"),
        BASE.replace("Intro", "More").replace("old", "new"),
        [f"the introduction of my-app/knowledge/api.md {KEPT}"],
    ),
    "an introduction that was removed by us": (
        BASE,
        BASE.replace("Intro\n", "").replace("old", "new"),
        BASE.replace("Intro", "More"),
        BASE.replace("Intro", "More").replace("old", "new"),
        [f"the introduction of my-app/knowledge/api.md {KEPT}"],
    ),
    "the title of the other version is taken": (
        f"## A\n\n1\n\n## A ({LABEL})\n\nx\n",
        f"## A\n\n2\n\n## A ({LABEL})\n\nx\n",
        f"## A\n\n3\n\n## A ({LABEL})\n\nx\n",
        f"## A\n\n2\n\n## A ({LABEL}, 2)\n\n{MARK}\n\n3\n\n## A ({LABEL})\n\nx\n",
        [f'chapter "A" of my-app/knowledge/api.md {BOTH_KEPT}'],
    ),
    "titles that are there twice": (
        "## A\n\n1\n\n## A\n\n2\n",
        "## A\n\n1\n\n## A\n\no\n",
        "## A\n\n1\n\n## A\n\nt\n\n## A\n\n3\n",
        f"## A\n\n1\n\n## A\n\no\n\n## A ({LABEL})\n\n{MARK}\n\nt\n\n## A\n\n3\n",
        [f'chapter "A" of my-app/knowledge/api.md {BOTH_KEPT}'],
    ),
    "titles that are there twice, changed twice": (
        "## A\n\n1\n\n## A\n\n2\n",
        "## A\n\no1\n\n## A\n\no2\n",
        "## A\n\nt1\n\n## A\n\nt2\n",
        f"## A\n\no1\n\n## A ({LABEL})\n\n{MARK}\n\nt1\n\n"
        f"## A\n\no2\n\n## A ({LABEL}, 2)\n\n{MARK}\n\nt2\n",
        [f'chapter "A" of my-app/knowledge/api.md {BOTH_KEPT}'] * 2,
    ),
    "a conflict that nobody has looked at": (
        f"## A\n\n1\n\n## A (x)\n\n{MARK}\n\n2\n",
        f"## A\n\n1\n\n## A (x)\n\n{MARK}\n\n3\n",
        f"## A\n\n1\n\n## A (x)\n\n{MARK}\n\n4\n",
        f"## A\n\n1\n\n## A (x)\n\n{MARK}\n\n3\n\n## A (x) ({LABEL})\n\n{MARK}\n\n4\n",
        [f'chapter "A (x)" of my-app/knowledge/api.md {BOTH_KEPT}'],
    ),
    "a conflict that one side has settled": (
        f"## A\n\n1\n\n## A (x)\n\n{MARK}\n\n2\n\n## B\n\nb\n",
        "## A\n\n12\n\n## B\n\nb\n",
        f"## A\n\n1\n\n## A (x)\n\n{MARK}\n\n2\n\n## B\n\nc\n",
        "## A\n\n12\n\n## B\n\nc\n",
        [],
    ),
    "line ends": (
        "a\r\n\r\n## A\r\n\r\n1\r\n\r\n## B\r\n\r\n2\r\n",
        "a\r\n\r\n## A\r\n\r\no\r\n\r\n## B\r\n\r\n2\r\n",
        "a\r\n\r\n## A\r\n\r\nt\r\n\r\n## B\r\n\r\n2\r\n\r\n## C\r\n\r\n3",
        f"a\r\n\r\n## A\r\n\r\no\r\n\r\n## A ({LABEL})\r\n\r\n{MARK}\r\n\r\nt\r\n\r\n"
        "## B\r\n\r\n2\r\n\r\n## C\r\n\r\n3",
        [f'chapter "A" of my-app/knowledge/api.md {BOTH_KEPT}'],
    ),
    "line ends that one side has changed": (
        "a\n\n## A\n\n1\n\n## B\n\n2\n",
        "a\r\n\r\n## A\r\n\r\n1\r\n\r\n## B\r\n\r\no\r\n",
        "a\n\n## A\n\nt\n\n## B\n\n2\n",
        "a\r\n\r\n## A\n\nt\n\n## B\r\n\r\no\r\n",
        [],
    ),
    "what is not ours is written in its own way": (
        "## A\n1\n##  B\n2\n###\tC\n",
        "## A\no\n##  B\n2\n###\tC\n",
        "## A\n1\n##  B\n2\n###\tC\nt",
        "## A\no\n\n##  B\n2\n###\tC\nt",
        [],
    ),
    "an indented line is another one": (
        "## A\n\ntext\n\n## B\n\nb\n",
        "## A\n\ntext\n\n## B\n\nc\n",
        "## A\n\n    text\n\n## B\n\nb\n",
        "## A\n\n    text\n\n## B\n\nc\n",
        [],
    ),
    "a heading without anything below, at the end": (
        "## A",
        "## A\n\no",
        "## A\n## B",
        "## A\n\no\n\n## B",
        [],
    ),
    "nothing but an introduction": (
        "old",
        "ours",
        "theirs",
        f"ours\n\n## Introduction ({LABEL})\n\n{MARK}\n\ntheirs",
        [f"the introduction of my-app/knowledge/api.md {BOTH_KEPT}"],
    ),
}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "text", "notes"), ON_CHAPTERS.values(), ids=ON_CHAPTERS
)
def test_documents_are_merged_by_chapter(base, ours, theirs, text, notes):
    assert document(base, ours, theirs) == (text, notes)


ON_FENCES = {
    "theirs is behind a fence that ours leaves open": (
        "## A\n\na\n",
        "## A\n\na\n\n```python\ncode",
        "## A\n\na\n\n## B\n\n```\nx\n```\n",
        "## A\n\na\n\n```python\ncode\n```\n\n## B\n\n```\nx\n```\n",
        ["A", "B"],
    ),
    "both leave the last fence open": (
        "## A\n\na\n",
        "## A\n\n~~~~\no",
        "## A\n\n~~~~\nt",
        f"## A\n\n~~~~\no\n~~~~\n\n## A ({LABEL})\n\n{MARK}\n\n~~~~\nt",
        ["A", f"A ({LABEL})"],
    ),
    "a fence that is no code opens nothing": (
        "## A\n\na\n\n## B\n\nb\n",
        "## A\n\n        ```\no\n\n## B\n\nb\n",
        "## A\n\na\n\n## B\n\nb\n\n## C\n\n```\nx\n```\n",
        "## A\n\n        ```\no\n\n## B\n\nb\n\n## C\n\n```\nx\n```\n",
        ["A", "B", "C"],
    ),
    "many fences that are no code": (
        "## A\n\na\n",
        "## A\n\n    ~~~\n\n    ```\no\n",
        "## A\n\na\n\n## B\n\n~~~\nx\n~~~\n\n## C\n\n```\ny\n```\n",
        "## A\n\n    ~~~\n\n    ```\no\n\n## B\n\n~~~\nx\n~~~\n\n## C\n\n```\ny\n```\n",
        ["A", "B", "C"],
    ),
    "the introduction leaves one open": (
        "Intro\n\n## A\n\na\n",
        "Intro\r\n\r\n```` x\r\n\r\n## A\r\n\r\na\r\n",
        "Intro\n\n## A\n\nt\n",
        "Intro\r\n\r\n```` x\r\n\r\n## A\r\n\r\na\r\n````\r\n\r\n## A\n\nt\n",
        ["A"],
    ),
    "what is open at the end stays so": (
        "## A\n\na\n\n## B\n\nb\n",
        "## A\n\no\n\n## B\n\nb\n",
        "## A\n\na\n\n## B\n\nb\n```",
        "## A\n\no\n\n## B\n\nb\n```",
        ["A", "B"],
    ),
}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "text", "titles"), ON_FENCES.values(), ids=ON_FENCES
)
def test_a_fence_that_is_left_open_swallows_nothing(base, ours, theirs, text, titles):
    found, _ = document(base, ours, theirs)
    assert found == text
    assert knowledge.document("", found).parts.titles == titles


def test_the_other_version_can_be_named_in_a_call():
    title = "é" * 150 + "😀" * 25
    found, _ = document("", f"## {title}\n\no", f"## {title}\n\nt")
    (other,) = conflicts(found)
    assert len(other.encode("utf-16-le")) // 2 in {199, 200}
    assert other.startswith("é" * 150 + "😀")
    assert other.endswith(f"😀 ({LABEL})")


def test_conflicts_are_the_chapters_with_the_mark():
    text = (
        f"---\ntitle: x\n---\n## A\n\n{MARK}\n\na\n\n## B\n\nb {MARK}\n\n## C\n\n```\n{MARK}\n```\n"
        f"\n## D\r\n\r\n\r\n  {MARK} \r\nd\n\n## E\n"
    )
    assert conflicts(text) == ["A", "D"]
    assert conflicts(f"{MARK}\n\n## A\n") == []


ON_FRONTS = {
    "a key on each side": (
        "title: a\ncreated: 'x'\n",
        "title: b\ncreated: 'x'\n",
        "title: a\ncreated: 'y'\n",
        "title: b\ncreated: 'y'\n",
        [],
    ),
    "the later moment": (
        "updated: '2026-01-01T00:00:00.000Z'\n",
        "updated: '2026-01-03T00:00:00.000Z'\n",
        "updated: 2026-01-03T01:00:00+00:30\n",
        "updated: 2026-01-03T01:00:00+00:30\n",
        [],
    ),
    "no moment at all": (
        "updated: '2026-01-01T00:00:00.000Z'\n",
        "updated: '2026-01-02'\n",
        "updated: soon\n",
        "updated: '2026-01-02'\n",
        [],
    ),
    "keywords": (
        "keywords: [a]\n",
        "keywords: [a, b, 'c, d']\n",
        "keywords:\n- e\n- a\n",
        'keywords: [a, b, "c, d", e]\n',
        [],
    ),
    "keywords of one side": (
        "keywords: [a]\nx: 1\n",
        "keywords: [b] # mine\nx: 1\n",
        "keywords: [a]\nx: 2\n",
        "keywords: [b] # mine\nx: 2\n",
        [],
    ),
    "keywords with comments": (
        "keywords: [a]\n",
        "keywords: [b] # mine\n",
        "keywords: [c]\n",
        f"keywords: [b] # mine\n# {LABEL}: keywords: [c]\n",
        ["keywords"],
    ),
    "any other key": (
        "title: a\nx: 1\n",
        "title: b\nx: 1\n",
        "title: 'c'\nx: 1\n",
        f"title: b\n# {LABEL}: title: 'c'\nx: 1\n",
        ["title"],
    ),
    "a value of many lines": (
        "x:\n  - 1\ny: 1\n",
        "x:\n  - 2\ny: 1\n",
        "x: |\n  3\n\n  4\ny: 2\n",
        f"x:\n  - 2\n# {LABEL}: x: |\n# {LABEL}:   3\n# {LABEL}:   4\ny: 2\n",
        ["x"],
    ),
    "a comment in a list": (
        "x:\n# one\n# two\n- 1\ny: 1\n",
        "x:\n# one\n# two\n- 1\ny: 2\n",
        "x:\n# one\n# two\n- 3\nz: 1\ny: 1\n",
        "x:\n# one\n# two\n- 3\nz: 1\ny: 2\n",
        [],
    ),
    "a new key, a removed one, and comments": (
        "title: a\n# one\nx: 1\n",
        "title: a\nx: 1\n# two\n",
        "title: a\ntags: [z]\n# one\n# three\n",
        "title: a\ntags: [z]\n# three\n# two\n",
        [],
    ),
}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "front", "changed"), ON_FRONTS.values(), ids=ON_FRONTS
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_front_matter_is_merged_by_key(base, ours, theirs, front, changed, end):
    sides = [f"---\n{side}---\n## A\n".replace("\n", end) for side in (base, ours, theirs)]
    text, notes = document(*sides)
    assert text == f"---\n{front}---\n## A\n".replace("\n", end)
    if "title" in changed:
        assert knowledge.document("", text).metadata.title == "b"
    assert notes == [
        f'"{key}" at the top of my-app/knowledge/api.md was changed on both sides; '
        "ours stays, theirs is kept in a comment"
        for key in changed
    ]


def test_front_matter_that_one_side_has_removed_or_added():
    front, rest = "---\ntitle: a\n---\n", "text\n"
    assert document(front + rest, rest, front + "more\n")[0] == "more\n"
    assert document(front + rest, rest, front.replace("a", "b") + rest)[0] == (
        "---\ntitle: b\n---\ntext\n"
    )
    assert document(rest, "more\n", front + rest)[0] == front + "more\n"
    more = "---\ntitle: a\nx: 1\n---\n"
    assert document(more + rest, rest, front + "more\n")[0] == "more\n"
    assert document("## A\n\n1", "---\nx: 1\n---", "## A\n\n2")[0] == "---\nx: 1\n---\n## A\n\n2"


def test_front_matter_that_cannot_be_merged_keeps_both_documents():
    """Without the first one, what stands below it would become front matter."""
    other = API.replace(".md", f" {NAMED}.md")
    base, ours, theirs = "---\na: 1\n---\nx", "x", "---\na: 1\n---\n---\nb: 2\n---\nx"
    assert merge({API: base}, {API: ours}, {API: theirs}).files == {other: theirs.encode()}


# -- the store's index -----------------------------------------------------------------------


def index_of(**projects):
    return {"index.json": {"projects": projects}}


def projects_of(files):
    return read(files["index.json"])["projects"]


def test_projects_of_both_sides_are_known():
    found = result(
        index_of(a="a", b="b", c="c"),
        {**index_of(a="a", c="c2", d="d"), "projects/d/main.md": "d"},
        {**index_of(a="a", b="b", c="c", e="e"), "projects/e/main.md": "e"},
        ["projects/a/main.md"],
    )
    assert projects_of(found) == {"a": "a", "c": "c2", "d": "d", "e": "e"}
    assert found["index.json"].decode().startswith('{\n  "projects": {\n    "a": "a",\n')


def test_a_project_that_both_sides_have_moved_is_where_ours_has_it():
    found = merge(index_of(a="a"), index_of(a="b"), index_of(a="c"))
    assert found.files == {}
    assert found.notes == ['project "a" is in b, where ours has it; theirs was in c']
    with_git = index_of(a=".git")  # which no machine could ever fetch
    assert merge(index_of(a="a"), with_git, index_of(a="c")).notes == [
        '"a" of index.json is "c" in theirs; ours stays'
    ]
    held = ["projects/b/main.md", "projects/c/main.md"]
    found = merge(index_of(a="a"), index_of(a="b"), index_of(a="c"), held)
    assert found.files == {}
    assert found.notes == ['"a" of index.json is "c" in theirs; ours stays']


@pytest.mark.parametrize("junk", ["", "[]", "{", '{"projects": 1}', "[" * 100_000, b"\xff"])
def test_an_index_that_cannot_be_read_gives_way(junk):
    good = {"index.json": '{"projects": {"a": "a"}}'}
    bad = {"index.json": junk}
    beside, unreadable = f"index {NAMED}.json", "index (unreadable).json"
    for base in ({}, good, index_of(b="b")):
        assert merge(base, good, bad).files == {beside: tree(bad)["index.json"]}
        assert merge(base, bad, good).files == {
            **tree(good),
            unreadable: tree(bad)["index.json"],
        }
    assert merge(bad, bad, good).files == tree(good)
    assert merge(bad, good, bad).files == {}
    other = {"index.json": "other"}
    assert merge({}, bad, other).files == {beside: b"other"}


def test_a_removed_project_stays_known_while_something_of_it_is_there():
    path = "projects/a/main.md"
    base, theirs = {**index_of(a="a"), path: "old"}, {**index_of(a="a"), path: "new"}
    for ours, other in ((index_of(), theirs), (theirs, index_of())):
        found = merge(base, ours, other)
        both = after(tree(ours), found)
        assert projects_of(both) == {"a": "a"}
        assert both[path] == b"new"
        assert len(found.notes) == 2
    assert result(base, index_of(), base) == tree(index_of())
    renamed = index_of(z="a")
    assert projects_of(result(base, {**renamed, path: "old"}, theirs)) == {"z": "a"}


def test_two_projects_with_one_folder_get_two():
    ours = {**index_of(**{"My App": "my-app"}), "projects/my-app/main.md": "ours"}
    theirs = {**index_of(**{"my-app": "my-app"}), "projects/my-app/main.md": "theirs"}
    found = merge(index_of(), ours, theirs, ["projects/my-app-1/main.md"])
    both = after(tree(ours), found)
    assert projects_of(both) == {"My App": "my-app-2", "my-app": "my-app"}
    assert both["projects/my-app-2/main.md"] == b"ours"
    assert both["projects/my-app/main.md"] == b"theirs"
    assert found.notes == [
        'project "My App" moved from my-app to my-app-2: theirs is another project'
    ]


def test_one_project_with_two_folders_is_in_one():
    one = {**index_of(X="x"), "projects/x/main.md": "## A\n"}
    two = {
        **index_of(x="x", X="x-1"),
        "projects/x/main.md": "## Small\n",
        "projects/x-1/main.md": "## A\n\n## B\n",
    }
    expected = {"x": "x", "X": "x-1"}
    for ours, theirs in ((one, two), (two, one)):
        both = result(index_of(), ours, theirs)
        assert projects_of(both) == expected
        assert both["projects/x/main.md"] == b"## Small\n"
        assert both["projects/x-1/main.md"] == b"## A\n\n## B\n"


def test_two_projects_that_have_changed_places():
    one = {**index_of(X="x", x="x-1"), "projects/x/main.md": "## A\n"}
    two = {**index_of(x="x", X="x-1"), "projects/x-1/main.md": "## B\n"}
    both = result(index_of(), one, two)
    known = projects_of(both)
    assert known.keys() == {"x", "X"}
    assert both[f"projects/{known['X']}/main.md"] == b"## B\n\n## A\n"
    assert len(both) == 2


def test_a_folder_that_is_used_again():
    base = {**index_of(X="x"), "projects/x/main.md": "old"}
    ours = {**index_of(x="x"), "projects/x/main.md": "new"}
    theirs = {**base, "projects/x/main.md": "changed"}
    assert result(base, ours, {**base, "other": "1"}) == tree({**ours, "other": "1"})
    assert result(base, {**base, "other": "1"}, ours) == tree({**ours, "other": "1"})
    both = result(base, ours, theirs)
    assert projects_of(both) == {"X": "x", "x": "x-1"}
    assert both["projects/x/main.md"] == b"changed"
    assert both["projects/x-1/main.md"] == b"new"
    both = result(base, theirs, ours)
    assert projects_of(both) == {"X": "x-1", "x": "x"}
    moved = {**index_of(X="x-1"), "projects/x-1/main.md": "new"}
    assert result(base, {**base, "other": "1"}, moved) == tree({**moved, "other": "1"})


# -- to-dos and tasks ------------------------------------------------------------------------


def task(title, **more):
    return {"title": title, "completed": False, "updated": "2026-01-01T00:00:00.000Z", **more}


def test_a_task_is_merged_by_field():
    path = TODO + "1/TASK-001-a.json"
    found = merge(
        {path: task("a", x=1, y=1, z=1)},
        {path: task("b", x=1, completed=True, updated="2026-01-02T00:00:00.000Z", z=2)},
        {path: task("c", x=2, y=1, updated="2026-01-03T00:00:00.000Z", z=1, w=None)},
    )
    assert read(found.files[path]) == {
        "title": "b",
        "x": 2,
        "w": None,
        "completed": True,
        "updated": "2026-01-03T00:00:00.000Z",
        "z": 2,
        "conflict": {LABEL: {"title": "c"}},
    }
    assert found.notes == [
        '"title" of task 1 of to-do 1 of my-app was changed on both sides; '
        "ours stays, theirs is kept with it"
    ]


@pytest.mark.parametrize("states", [(False, True, True), (True, False, True), (True, True, False)])
def test_a_task_that_is_completed_on_one_side_is_completed(states):
    path = TODO + "1/TASK-001-a.json"
    sides = [{path: task("a", completed=state, x=n)} for n, state in enumerate(states)]
    found = read(result(*sides)[path])
    assert found["completed"] is True
    assert found["conflict"] == {LABEL: {"x": 2}}


def test_a_conflict_in_a_task_is_kept_until_somebody_settles_it():
    path = TODO + "1/TASK-001-a.json"
    held = {LABEL: {"title": "x"}}
    found = result(
        {path: task("a", conflict=held)},
        {path: task("b", conflict={LABEL: {"title": "y"}})},
        {path: task("c", conflict={LABEL: {"title": "z"}})},
    )
    assert read(found[path])["conflict"] == {
        LABEL: {"title": "y"},
        f"{LABEL}, 2": {"title": "z"},
        f"{LABEL}, 3": {"title": "c"},
    }
    settled = result({path: task("a", conflict=held)}, {path: task("a")}, {path: task("b")})
    assert read(settled[path]) == task("b")


def test_an_object_is_left_as_a_side_has_written_it():
    path = TODO + "1/index.json"
    base, ours = b'{"description":"\xc3\xa9"}', b'{"description": "e", "created": "1"}\n'
    theirs = b'{"description":"\xc3\xa9", "created": "1"}'
    assert merge({path: base}, {path: ours}, {path: theirs}).files == {}
    changed = merge({path: base}, {path: ours}, {path: theirs[:-1] + b', "x": "\xc3\xa9"}'})
    assert changed.files[path] == (
        '{\n  "description": "e",\n  "created": "1",\n  "x": "é"\n}\n'.encode()
    )


@pytest.mark.parametrize("junk", ["", "[]", "{", '{"conflict": 1}', '{"x": 1e999}', b"\xff"])
def test_a_task_that_cannot_be_read_gives_way(junk):
    path, good, junk = TODO + "1/TASK-001-a.json", tree({"": task("a")})[""], tree({"": junk})[""]
    taken = [TODO + "1/TASK-007-x.json"]
    other = TODO + f"1/TASK-008-a {NAMED}.json"
    assert merge({path: "x"}, {path: good}, {path: junk}, taken).files == {other: junk}
    assert merge({path: "x"}, {path: junk}, {path: good}, taken).files == {
        path: good,
        other.replace(NAMED, "(unreadable)"): junk,
    }
    assert merge({path: "x"}, {path: junk}, {path: "other"}, taken).files == {other: b"other"}


def written_task(title, completed="false", updated="2026-01-01T00:00:00.000Z"):
    return (
        f"---\ncompleted: {completed}\ncreated: 'x'\nupdated: '{updated}'\n---\n\n# {title}\n\ntext"
    )


def test_a_task_of_an_older_program():
    path = TODO + "1/TASK-001-a.md"
    found = merge(
        {path: written_task("a")},
        {path: written_task("a", "true", "2026-01-02T00:00:00.000Z")},
        {path: written_task("b", "false", "2026-01-03T00:00:00.000Z")},
    )
    assert found.files == {path: written_task("b", "true", "2026-01-03T00:00:00.000Z").encode()}
    assert found.notes == []
    theirs = written_task("c", "true")
    both = merge({path: written_task("a")}, {path: written_task("b")}, {path: theirs})
    assert both.files == {
        path: written_task("b", "true").encode(),
        TODO + f"1/TASK-002-a {NAMED}.md": theirs.encode(),
    }
    assert both.notes == [
        f'task 1 of to-do 1 of my-app has two versions; one is kept as "TASK-002-a {NAMED}.md"'
    ]
    bare = merge({path: "x"}, {path: "# b"}, {path: theirs})
    assert bare.files == {TODO + f"1/TASK-002-a {NAMED}.md": theirs.encode()}


@pytest.mark.parametrize("is_ours", [False, True])
def test_a_task_of_an_older_program_gets_the_state_that_it_lacks(is_ours):
    path = TODO + "1/TASK-001-a.md"
    created, state = "created: 'x'\n", "completed: true\nupdated: '2026-01-02T00:00:00.000Z'\n"
    base = f"---\n{created}---\n# A\n"
    sides = [f"---\n{created}---\n# A changed\n", f"---\n{created}{state}---\n# A\n"]
    found = result({path: base}, *({path: text} for text in (sides if is_ours else sides[::-1])))
    assert found[path] == f"---\n{created}{state}---\n# A changed\n".encode()


def todo(number, created, *tasks, folder=TODO):
    """The files of a to-do; its tasks are numbered from 1 on."""
    files = {f"{folder}{number}/index.json": {"created": created, "description": created}}
    for place, name in enumerate(tasks, 1):
        files[f"{folder}{number}/TASK-{place:03d}-{name}.json"] = task(name)
    return files


def test_to_dos_that_were_created_on_both_sides_are_two():
    ours = {**todo(2, "o2", "a", "b"), **todo(3, "o3"), **todo(5, "same", "x")}
    theirs = {**todo(2, "t2", "a"), **todo(3, "t3", "c"), **todo(5, "same", "x", "y")}
    found = merge({}, ours, theirs, [TODO + "7/index.json", TODO + "1/index.json"])
    assert after(tree(ours), found) == tree(
        {**theirs, **todo(8, "o2", "a", "b"), **todo(9, "o3")},
    )
    assert found.notes == [
        "to-do 2 of my-app became 8: theirs is another to-do",
        "to-do 3 of my-app became 9: theirs is another to-do",
    ]


def test_tasks_that_were_added_on_both_sides_are_two():
    at = TODO + "1/TASK-"
    ours = {at + "003-a.json": task("a"), at + "004-b.json": task("b"), at + "005-e.md": "e"}
    theirs = {at + "003-c.json": task("c"), at + "004-b.json": task("B"), at + "005-e.md": "e"}
    found = merge({}, ours, theirs, [TODO + "1/index.json", at + "002-x.md"])
    assert after(tree(ours), found) == tree(
        {**theirs, at + "006-a.json": task("a"), at + "007-b.json": task("b")}
    )
    assert found.notes == [
        "task 3 of to-do 1 of my-app became 6: theirs is another task",
        "task 4 of to-do 1 of my-app became 7: theirs is another task",
    ]


def test_a_task_without_a_name_is_one_too():
    at = TODO + "1/TASK-"
    found = merge({}, {at + "2.json": task("a")}, {at + "002-b.md": "b"}, [at + "1.md"])
    assert found.files == {
        at + "2.json": None,
        **tree({at + "002-b.md": "b", at + "003.json": task("a")}),
    }


def test_a_task_that_was_created_in_the_same_moment_is_one():
    path = TODO + "1/TASK-003-a.json"
    ours, theirs = task("a", created="1", completed=True), task("a", created="1", content="x")
    found = merge({}, {path: ours}, {path: theirs}, [TODO + "1/index.json"])
    assert read(found.files[path]) == {**ours, "content": "x"}


def test_a_number_that_is_used_again_is_another_task():
    at = TODO + "1/TASK-003-"
    old, new = {at + "a.json": task("a")}, {at + "b.json": task("b")}
    changed = {at + "a.json": task("a", completed=True)}
    one = result(old, new, changed, [TODO + "1/index.json"])
    assert one == tree({**changed, TODO + "1/TASK-004-b.json": task("b")})
    other = result(old, changed, new, [TODO + "1/index.json"])
    assert other == tree({**new, TODO + "1/TASK-004-a.json": task("a", completed=True)})


def test_a_number_that_is_used_again_is_another_to_do():
    old, new = todo(1, "old", "a", "b"), todo(1, "new", "c")
    changed = {**old, TODO + "1/TASK-001-a.json": task("a", completed=True)}
    renumbered = {
        TODO + "2/TASK-001-a.json": task("a", completed=True),
        TODO + "2/TASK-002-b.json": task("b"),
        TODO + "2/index.json": old[TODO + "1/index.json"],
    }
    assert result(old, changed, new) == tree({**new, **renumbered})
    assert result(old, new, changed) == tree(
        {
            **todo(2, "new", "c"),
            TODO + "1/TASK-001-a.json": task("a", completed=True),
            TODO + "1/TASK-002-b.json": task("b"),
            TODO + "1/index.json": old[TODO + "1/index.json"],
        }
    )
    assert result(old, new, old) == result(old, old, new) == tree(new)
    newer = todo(1, "newer", "d")
    both = merge(old, new, newer)
    assert after(tree(new), both) == tree({**newer, **todo(2, "new", "c")})
    assert both.notes == ["to-do 1 of my-app became 2: theirs is another to-do"]
    assert merge({**old, **todo(2, "old too")}, new, newer) == both


def test_what_cannot_move_does_not():
    at = TODO + "1/"
    index, first = at + "index.json", at + "TASK-001-a.json"
    found = merge({}, {index: {"created": "1"}}, {index: {"created": "2"}}, [first])
    assert read(found.files[index]) == {"created": "1", "conflict": {LABEL: {"created": "2"}}}
    copied = {first: task("a", y=1), at + "TASK-001-b.json": task("b")}
    found = merge({first: task("a")}, {first: task("a", x=1)}, copied, [index])
    assert read(found.files[first]) == task("a", x=1, y=1)
    assert found.files[at + "TASK-001-b.json"] == tree(copied)[at + "TASK-001-b.json"]
    shared = index_of(a="s", b="s")
    assert projects_of(result(index_of(), shared, index_of(c="s"))) == {
        "a": "s",
        "b": "s",
        "c": "s",
    }


def test_a_removed_to_do_stays_whole_if_the_other_side_has_changed_it():
    base = todo(1, "x", "a", "b")
    more = {**base, TODO + "1/TASK-003-c.json": task("c")}
    del more[TODO + "1/TASK-001-a.json"]  # its own removals hold
    for ours, theirs in (({}, more), (more, {})):
        found = merge(base, ours, theirs)
        assert after(tree(ours), found) == tree(more)
        assert found.notes == [f"to-do 1 of my-app {KEPT}"]


def test_numbers_end_where_the_contract_has_them_end():
    at = TODO + "1/TASK-"
    taken = [TODO + "1/index.json", at + "99999-z.json", at + "001-x.json"]
    found = merge({}, {at + "002-a.json": "{}"}, {at + "002-b.json": "{}"}, taken)
    assert found.files == {
        at + "002-a.json": None,
        at + "002-b.json": b"{}",
        at + "003-a.json": b"{}",
    }


# -- anything: documents ---------------------------------------------------------------------

FENCES = ["```", "~~~", "```python", "````", "    ```", "~~~~ x", "\t~~~"]
LINES = st.sampled_from([*FENCES, "", "text", "  ## no heading", "### C", "#", MARK, "    x"])
CONTENTS = st.lists(LINES, min_size=1, max_size=5).map("\n".join)
TITLES = st.sampled_from(["A", "B", "C", f"A ({LABEL})", "D", f"Introduction ({LABEL})", "E"])
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["add", "update", "remove", "write", "introduce"]),
        TITLES,
        CONTENTS,
        st.sampled_from(["before", "after", "end"]),
        TITLES,
    ),
    max_size=6,
)
BEGINNINGS = st.tuples(CONTENTS, st.lists(st.tuples(TITLES, CONTENTS), max_size=4))


def edited(text, edits):
    """`text` after the edits that can be made; those of people are made without looking."""
    for kind, title, content, position, reference in edits:
        found = knowledge.document("a.md", text)
        end = "\r\n" if "\r\n" in text else "\n"
        try:
            if kind == "add":
                text = knowledge.extended(found, title, content, position, reference)
            elif kind == "update":
                text = knowledge.updated(found, title, content)
            elif kind == "remove":
                text = knowledge.without(found, title)
            elif kind == "write":
                text += f"{end}## {title}{end}" + content.replace("\n", end)
            else:
                text = found.front + content.replace("\n", end) + end + found.parts.text
        except Refusal:
            pass
    return text


def plain(text):
    """A text as it is compared here."""
    return text.replace("\r\n", "\n").rstrip().lstrip("\n")


def chapters_of(text):
    """What a document says: (title, how many of it before) to content; the introduction first."""
    found = knowledge.document("", text or "").parts
    seen = Counter()
    chapters = {("", 0): plain(found.head)} if plain(found.head) else {}
    for part in found.parts:
        chapters[part.title, seen[part.title]] = plain(part.body)
        seen[part.title] += 1
    return chapters


def expected_chapters(base, ours, theirs):
    """(title, content) of what has to be there, in order; a title ends with `*` if it is new."""
    base, ours, theirs = map(chapters_of, (base, ours, theirs))
    order = [("", 0), *(key for key in ours if key[0])]
    last = ("", 0)
    for key in theirs:
        if key not in order:
            order.insert(order.index(last) + 1, key)
        last = key
    found = []
    for key in order:
        old, mine, other = base.get(key), ours.get(key), theirs.get(key)
        if mine == other or other == old:
            kept = [mine]
        elif mine == old:
            kept = [other]
        else:
            kept = [mine, other]
        title = key[0]
        for content in kept:
            if content is not None:
                is_second = None not in kept and content is not kept[0]
                found.append((f"{title or 'Introduction'} *" if is_second else title, content))
    return found


def is_the_same(content, expected):
    """Whether a chapter says what it should: a mark, or the end of a block of code, may be new."""
    for each in (content, plain(content.removeprefix(MARK))):
        last = each.rpartition("\n")[2]
        is_fence = set(last) in ({"`"}, {"~"})
        if each == expected or (is_fence and plain(each.removesuffix(last)) == expected):
            return True
    return False


@pytest.mark.slow
@settings(max_examples=examples(600))
@given(BEGINNINGS, EDITS, EDITS, st.booleans(), st.booleans(), st.booleans())
@example(("", []), [("write", "A", "```", "end", "A")], [], False, True, False)
def test_nothing_of_a_document_is_lost(beginning, edits, other_edits, is_new, is_crlf, converts):
    introduction, written = beginning
    try:
        base = knowledge.created("t", introduction, ["a"], written)
    except Refusal:
        base = "".join(f"## {title}\n\n{content}\n\n" for title, content in written)
    if is_crlf:
        base = base.replace("\n", "\r\n")
    ours, theirs = edited(base, edits), edited(base, other_edits)
    if converts:
        theirs = theirs.replace("\r\n", "\n")
    base = None if is_new else base
    text, _ = document(base, ours, theirs)
    if ours in (base, theirs) or theirs == base:
        assert text == (theirs if ours == base else ours)
        return
    expected = expected_chapters(base, ours, theirs)
    found = [(title, content) for (title, _), content in chapters_of(text).items()]
    if found and found[0][0] != "":
        expected = [each for each in expected if each != ("", "")]
    assert len(found) == len(expected)
    for (title, content), (wanted, said) in zip(found, expected, strict=True):
        assert is_the_same(content, said)
        if wanted.endswith("*"):
            assert title.startswith(wanted[:-1] + f"({LABEL}")
            assert title in conflicts(text)
        else:
            assert title == wanted
    added = {title for title, _ in found} - {title for title, _ in expected}
    assert len(added) == sum(title.endswith("*") for title, _ in expected)
    merged_again, notes = document(theirs, text, theirs)
    assert (merged_again, notes) == (text, [])
    assert document(theirs, theirs, text) == (text, [])
    assert_the_other_way_round_is_the_same(base, ours, theirs, text)


def assert_the_other_way_round_is_the_same(base, ours, theirs, text):
    def said(text):
        contents = (plain(content.removeprefix(MARK)) for content in chapters_of(text).values())
        return Counter(content.rstrip("`~\n") for content in contents)

    other, _ = document(base, theirs, ours)
    assert said(other) == said(text)


FORMS = ["%s", "[%s]", "[%s, k]", "\n- %s\n- k", "|\n  %s"]
FRONTS = st.dictionaries(
    st.sampled_from(["title", "keywords", "x", "y", "z", "# c"]),
    st.tuples(st.integers(1, 3), st.sampled_from(FORMS)),
    max_size=5,
).map(lambda front: {k: (word, "%s" if k == "# c" else form) for k, (word, form) in front.items()})


def front_of(values):
    lines = (f"{key}: " + form % f"{key}{word}" for key, (word, form) in values.items())
    return "".join(f"{line}\n" for line in ("---", "always: 1", *lines, "---"))


@pytest.mark.slow
@settings(max_examples=examples(600))
@given(FRONTS, FRONTS, FRONTS, st.booleans())
def test_nothing_of_front_matter_is_lost(base, ours, theirs, is_crlf):
    sides = [front_of(each) + "text\n" for each in (base, ours, theirs)]
    text, _ = document(*(side.replace("\n", "\r\n") if is_crlf else side for side in sides))
    front, rest = matter.parted(text)
    assert rest.replace("\r", "") == "text\n"
    for one, other in ((ours, theirs), (theirs, ours)):
        for key, (word, form) in one.items():
            is_left = base.get(key) == (word, form) != other.get(key)
            assert is_left or f"{key}{word}" in front
    title = ours.get("title", theirs.get("title"))
    if title and title == theirs.get("title", title) and base.get("title") != title:
        assert matter.metadata(front.replace("\r", "")).title


# -- anything: stores ------------------------------------------------------------------------


class Store:
    """A store as the tools change it, on one machine."""

    moments = count(1)

    def __init__(self, files=()):
        self.files = dict(files)

    def projects(self):
        return projects_of(self.files) if self.files else {}

    def folder(self, name):
        """Where a project is; it is begun if there is none."""
        known = self.projects()
        if name not in known:
            first = slugs.slug(name)
            free = (first, *(f"{first}-{n}" for n in range(1, 9)))
            known[name] = next(slug for slug in free if slug not in known.values())
            self.write("index.json", {"projects": known})
        return f"projects/{known[name]}/"

    def write(self, path, content):
        self.files |= tree({path: content})

    def below(self, folder):
        return sorted(path for path in self.files if path.startswith(folder))

    def numbers(self, folder, beginning=""):
        names = (path.removeprefix(folder + beginning) for path in self.below(folder + beginning))
        return [int(name.partition("/")[0].partition("-")[0]) for name in names]

    def todo(self, place):
        """The folder of one of all to-dos."""
        found = [path.removesuffix("index.json") for path in self.files if "/TODO/" in path]
        found = sorted(path for path in found if path.endswith("/"))
        return found[place % len(found)] if found else None

    def task(self, place):
        found = sorted(path for path in self.files if "/TASK-" in path)
        return found[place % len(found)] if found else None

    def act(self, kind, name, place):
        """One call of a tool; what it writes is found nowhere else."""
        said = f"<{next(self.moments)}>"
        if kind == "main":
            self.write(self.folder(name) + "main.md", f"## {said}\n")
        elif kind == "add_todo":
            folder = self.folder(name) + "TODO/"
            number = max(self.numbers(folder), default=0) + 1
            self.write(f"{folder}{number}/index.json", {"created": said, "description": said})
        elif kind == "add_task" and (folder := self.todo(place)):
            number = max(self.numbers(folder, "TASK-"), default=0) + 1
            ending = "json" if place % 4 else "md"
            content = task(said, created=said)
            if ending == "md":
                content = written_task(said).replace("'x'", said)
            self.write(f"{folder}TASK-{number:03d}-{name.lower()}.{ending}", content)
        elif kind in {"complete", "retitle"} and (path := self.task(place)):
            self.change(path, kind, said)
        elif kind == "remove_task" and (path := self.task(place)):
            del self.files[path]
        elif kind == "remove_todo" and (folder := self.todo(place)):
            self.remove(folder)
        elif kind == "remove_project" and name in self.projects():
            self.remove(self.folder(name))
            known = self.projects()
            del known[name]
            self.write("index.json", {"projects": known})

    def change(self, path, kind, said):
        text = self.files[path].decode()
        if kind == "complete":
            text = text.replace('"completed": false', '"completed": true')
            text = text.replace("completed: false", "completed: true")
        else:
            text = text.replace('"title": "', f'"title": "{said}').replace("# ", f"# {said}")
        self.write(path, text)

    def remove(self, folder):
        for path in self.below(folder):
            del self.files[path]


CALLS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("main", "add_todo", "add_todo", "add_task", "add_task", "complete"),
                *("retitle", "remove_task", "remove_todo", "remove_project"),
            ]
        ),
        st.sampled_from(["X", "x", "Y"]),
        st.integers(0, 9),
    ),
    max_size=8,
)


def merge_stores(base, ours, theirs):
    """Our side after the merge, where only what has changed is given."""
    paths = {*base, *ours, *theirs}
    same = {path for path in paths if base.get(path) == ours.get(path) == theirs.get(path)}
    sides = [{p: c for p, c in side.items() if p not in same} for side in (base, ours, theirs)]
    return after(ours, merged(*sides, LABEL, same))


def words(text):
    """What was written by some call: no other call has written the same."""
    return {f"<{each.partition('>')[0]}>" for each in text.split("<")[1:] if ">" in each}


def said_in(files):
    return set().union(*(words(content.decode()) for content in files.values()))


def left_out(base, side, other):
    """What may be lost of a side: what it has not changed, and the other has changed or removed."""
    same = {path for path in base if side.get(path) == base[path] != other.get(path)}
    return said_in({path: base[path] for path in same})


def assert_store_is_whole(files):
    known = projects_of(files) if "index.json" in files else {}
    assert len({*known.values()}) == len(known)
    for path in files:
        parts = path.split("/")
        if parts[0] == "projects":
            assert parts[1] in known.values()
        if "/TODO/" in path:
            assert "/".join([*parts[:4], "index.json"]) in files
    tasks = Counter(path.partition("/TASK-")[0] + path.partition("/TASK-")[2][:3] for path in files)
    assert {n for path, n in tasks.items() if "/TODO/" in path and path[-3:].isdigit()} <= {1}


@pytest.mark.slow
@settings(max_examples=examples(600))
@given(CALLS, CALLS, CALLS)
def test_nothing_of_a_store_is_lost(before, calls, other_calls):
    base = Store({"index.json": b'{"projects": {}}'})
    for call in before:
        base.act(*call)
    ours, theirs = Store(base.files), Store(base.files)
    for store, made in ((ours, calls), (theirs, other_calls)):
        for call in made:
            store.act(*call)
    base, ours, theirs = base.files, ours.files, theirs.files
    both = merge_stores(base, ours, theirs)
    assert_store_is_whole(both)
    found = said_in(both)
    assert found >= said_in(ours) - left_out(base, ours, theirs)
    assert found >= said_in(theirs) - left_out(base, theirs, ours)
    assert found <= said_in(ours) | said_in(theirs)
    assert descriptions(both) == descriptions(merge_stores(base, theirs, ours))
    assert completed(both) >= completed(ours) & found | completed(theirs) & found
    assert merge_stores(base, ours, theirs) == both
    # The other machine takes it over, and has nothing to merge any more.
    assert merge_stores(theirs, theirs, both) == both
    assert merge_stores(theirs, both, theirs) == both
    assert merge_stores(ours, both, both) == both


def descriptions(files):
    """What each to-do is about, and what its tasks say."""
    found = Counter()
    for path, content in files.items():
        folder, slash, name = path.rpartition("/")
        if "/TODO/" in path and name.startswith("TASK-"):
            about = files[folder + slash + "index.json"]
            found[read(about)["description"], frozenset(words(content.decode()))] += 1
        elif "/TODO/" in path:
            found[read(content)["description"]] += 1
    return found


def completed(files):
    """What is said in tasks that are completed."""
    done = {
        path: content
        for path, content in files.items()
        if b'"completed": true' in content or b"completed: true" in content
    }
    return said_in(done)


# -- anything at all -------------------------------------------------------------------------

JUNK = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.text("-\n\r:#`~ [{}]\"'a1+.\ufeff\u2028", max_size=60).map(str.encode),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.dictionaries(
                st.sampled_from(["projects", "conflict", "completed", "updated", "created", "x"]),
                inner,
            )
            | st.lists(inner, max_size=3)
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode()),
)
ANYWHERE = st.sampled_from(
    [
        *PATHS,
        TODO + "1/TASK-002-b.json",
        TODO + "1/TASK-002-c.md",
        TODO + "1/TASK-01-d.json",
        TODO + "2/index.json",
        TODO + "2",
        TODO + "99999/index.json",
        TODO + "99999/TASK-99999-x.json",
        TODO + "0/x",
        TODO + "1/TASK-003-x/y.json",
        "projects/other/main.md",
        "projects",
        "projects/",
        "",
        "/",
        "a.md/b",
        "a.md",
        f"a {NAMED}.md",
        "index.json/x",
    ]
)
JUNK_TREES = st.dictionaries(ANYWHERE, JUNK, max_size=6)


@pytest.mark.slow
@settings(max_examples=examples(600))
@given(JUNK_TREES, JUNK_TREES, JUNK_TREES, st.sets(ANYWHERE, max_size=3), st.text(max_size=9))
def test_no_content_is_too_strange(base, ours, theirs, unchanged, label):
    found = merged(base, ours, theirs, label, unchanged - {*base, *ours, *theirs})
    assert found == merged(base, ours, theirs, label, unchanged - {*base, *ours, *theirs})
    for path, content in found.files.items():
        assert content != ours.get(path)
        if content and path.endswith(".md"):
            conflicts(content.decode("utf-8", "replace"))


def test_what_is_nested_without_end_is_kept():
    path = TODO + "1/index.json"
    deep = b'{"a":' * 100_000
    closed = b'{"a":' * 60 + b"1" + b"}" * 60
    for junk in (deep, closed, b'{"a": %s}' % (b"1" * 5_000)):
        found = merge({path: "{}"}, {path: junk}, {path: {"x": 1}})
        assert found.files == {path: b'{"x": 1}', path.replace("x.", "x (unreadable)."): junk}


@pytest.mark.long
def test_a_document_of_many_chapters_takes_no_time():
    lines = [f"## {number}\n\ntext\n\n" for number in range(20_000)]
    ours = "".join(line.replace("text", "ours") for line in lines)
    theirs = "".join(line + f"## new {n}\n\n" for n, line in enumerate(lines))
    text, notes = document("".join(lines), ours, theirs)
    assert len(knowledge.document("", text).parts.parts) == 40_000
    assert notes == []


def test_front_matter_that_one_side_saved_with_a_byte_order_mark_stays_front_matter():
    base = "---\ntitle: Guide\nupdated: '1'\n---\n\n## A\n\none\n"
    ours = "\ufeff" + base.replace("\n", "\r\n")
    theirs = base.replace("one", "two").replace("'1'", "'2'")
    text, _ = chapters.merged(base, ours, theirs, "theirs", "guide.md")
    found = knowledge.document("guide.md", text)
    assert found.metadata.title == "Guide"
    assert found.parts.titles == ["A"]
    assert "two" in text
