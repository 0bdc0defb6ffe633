"""The file that lists the collections: read whole, or refused with what to do."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.configuration import (
    Collection,
    Configuration,
    check,
    read,
    understood,
)
from vector_index_mcp.errors import SettingsError

FILE = Path("/etc/qmd/index.yml")


def said_by(text):
    return understood(FILE, text)


def one(text):
    (collection,) = said_by(f"collections:\n  docs:\n    path: /x\n{text}").collections
    return collection


def test_a_file_is_read_as_it_is_written():
    text = (
        "global_context: Global ctx\n"
        "collections:\n"
        "  notes: {path: /data/notes, update: git pull}\n"
        "  docs:\n"
        "    path: /data/docs\n"
        '    pattern: "**/*.{md,txt}"\n'
        "    ignore: [drafts/**, '*.bak']\n"
        "    context:\n"
        "      /meetings: Meeting notes and transcripts\n"
        "      /: |\n"
        "        Two\n"
        "        lines\n"
        "    owner: ann\n"
        "version: 2\n"
    )
    contexts = {"/meetings": "Meeting notes and transcripts", "/": "Two\nlines\n"}
    docs = Path("/data/docs")
    assert said_by(text) == Configuration(
        (
            Collection("notes", Path("/data/notes"), update="git pull"),
            Collection("docs", docs, "**/*.{md,txt}", contexts, None, ("drafts/**", "*.bak")),
        ),
        "Global ctx",
    )
    assert list(said_by(text).collections[1].contexts) == ["/meetings", "/"]


@pytest.mark.parametrize("text", ["", "\n", "---\n", "# empty\n", "{}", "collections:\n", "~"])
def test_an_empty_file_lists_nothing(text):
    assert said_by(text) == Configuration()


def test_a_missing_file_lists_nothing(tmp_path):
    assert read(tmp_path / "missing" / "index.yml") == Configuration()
    (tmp_path / "link.yml").symlink_to(tmp_path / "missing.yml")
    assert read(tmp_path / "link.yml") == Configuration()


@pytest.mark.parametrize("word", ["yes", "1", "null", "2024-01-01", "1.0", "0x10", "true", "~x"])
def test_names_and_values_are_the_texts_that_stand_there(word):
    found = said_by(
        f"global_context: '{word}'\ncollections:\n  {word}:\n    path: /x\n    pattern: {word}\n"
        f"    context: {{{word}: {word}}}\n    update: '{word}'\n"
    )
    (only,) = found.collections
    assert (only.name, only.update, found.global_context) == (word, word, word)
    said = "" if word == "null" else word
    assert only.contexts == {word: said}
    assert only.pattern == (said or "**/*.md")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("/data/docs/", "/data/docs"),
        ("docs", "/etc/qmd/docs"),
        ("../docs/./x", "/etc/docs/x"),
        ("'~'", "/home/ann"),
        ("~/docs", "/home/ann/docs"),
        ("'./~'", "/etc/qmd/~"),
        ("/sp ace/é\u00a0x", "/sp ace/é\u00a0x"),
    ],
)
def test_a_path_becomes_absolute(written, expected, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    (only,) = said_by(f"collections: {{a: {{path: {written}}}}}").collections
    assert only.path == Path(expected)


@pytest.mark.parametrize("written", ["drafts", "[drafts]", "\n      - drafts"])
def test_one_exclusion_needs_no_list(written):
    assert one(f"    ignore: {written}\n").ignore == ("drafts",)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("collections: [a]\n", 1, "not a mapping"),
        ("- a\n", 1, "not a mapping"),
        ("just words\n", 1, "not a mapping"),
        ("collections: words\n", 1, "not a mapping"),
        ("collections:\n  a: /x\n", 2, "not a mapping"),
        ("collections:\n  a:\n", 2, "has no path"),
        ("collections:\n  a:\n    pattern: x\n", 3, "has no path"),
        ("collections:\n  a: {path: [x]}\n", 2, "'path' is not a text"),
        ("collections:\n  a: {path: /x, pattern: {}}\n", 2, "'pattern' is not a text"),
        ("collections:\n  a:\n    path: /x\n    pattern: 'a\n\n      b'\n", 4, "not a pattern"),
        ("collections:\n  a: {path: /x, context: words}\n", 2, "not a mapping"),
        ("collections:\n  a: {path: /x, context: {/: [x]}}\n", 2, "not a text"),
        ("collections:\n  a: {path: /x, ignore: {b: c}}\n", 2, "not a list of texts"),
        ("collections:\n  a: {path: /x, ignore: [[b]]}\n", 2, "not a list of texts"),
        ("collections:\n  a: {path: /x, update: [b]}\n", 2, "not a text"),
        ("global_context: [x]\n", 1, "'global_context' is not a text"),
        ('collections:\n  a: {path: "/x\\0y"}\n', 2, "control characters"),
        ("collections:\n  a: {path: ~nobody-at-all/x}\n", 2, "the home folder in"),
        ("collections:\n  a: {path: /x}\n  a: {path: /y}\n", 3, "twice"),
        ("collections:\n  a/b: {path: /x}\n", 2, "name of a collection"),
        ("collections:\n  ..: {path: /x}\n", 2, "name of a collection"),
        ("collections:\n  '': {path: /x}\n", 2, "name of a collection"),
        ('collections:\n  "a\\e": {path: /x}\n', 2, "name of a collection"),
        ("collections:\n  a: !!python/name:os.system\n", 2, "tag"),
        ("collections: &c\n  a: *c\n", 2, "refers to no value before it"),
        ("collections:\n\ta: 1\n", 2, "not YAML"),
        ("{\n", 2, "not YAML"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_line(text, line, words):
    with pytest.raises(SettingsError, match=words) as refused:
        said_by(text)
    assert str(refused.value).startswith(f"{FILE}, line {line}: ")
    assert "; " in str(refused.value)  # what to do


def test_a_merge_key_is_not_obeyed():
    text = "x: &x {path: /elsewhere}\ncollections:\n  a:\n    <<: *x\n    path: /x\n"
    assert said_by(text).collections == (Collection("a", Path("/x")),)


def test_what_many_collections_share_is_bounded():
    shared = "x: &x {" + ", ".join(f"k{n}: v" for n in range(1_000)) + "}\ncollections:\n"
    shared += "".join(f"  c{n}: {{path: /c{n}, context: *x}}\n" for n in range(1_000))
    with pytest.raises(SettingsError, match="too many or too deeply nested"):
        said_by(shared)


def test_a_byte_order_mark_and_carriage_returns_are_allowed(tmp_path):
    file = tmp_path / "index.yml"
    file.write_bytes(b"\xef\xbb\xbfcollections:\r\n  a:\r\n    path: /x\r\n")
    assert read(file).collections == (Collection("a", Path("/x")),)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: 1\nb: \xff\n", "line 2: the text is not UTF-8; save"),
        ("a: ä\n".encode("utf-16"), "line 1: the text is not UTF-8; save"),
        (b"#" * 1_000_001, "more than 1000000 bytes; make it shorter"),
    ],
)
def test_bytes_that_are_no_configuration_are_refused(tmp_path, data, words):
    file = tmp_path / "index.yml"
    file.write_bytes(data)
    with pytest.raises(SettingsError, match=words) as refused:
        read(file)
    assert str(refused.value).startswith(str(file))


@pytest.mark.parametrize("what", ["folder", "pipe", "loop", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path, what):
    file = tmp_path / "index.yml"
    if what == "folder":
        file.mkdir()
    elif what == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(file if what == "loop" else "/dev/zero")
    with pytest.raises(SettingsError, match="index.yml"):
        read(file)


def test_a_collection_that_is_not_there_is_told():
    with pytest.raises(SettingsError, match="^Collection not found: nope\n"):
        said_by("").named("nope")


@pytest.mark.parametrize("name", ["a", "my docs", "Ünï", "a.b", "2024", "yes", "-a", "#a", "a:b"])
def test_names_that_can_be_used(name):
    check(Collection(name, Path("/x")))


@pytest.mark.parametrize(
    "collection",
    [
        *(Collection(name, Path("/x")) for name in ["", ".", "..", "a/b", "a\n", " a", "\udc80"]),
        *(Collection(name, Path("/x")) for name in ["\x1b[2J", "\u202e", "a" * 201, "x" * 10_000]),
        Collection("a", Path("x")),
        Collection("a", Path("/x\n")),
        Collection("a", Path("/x"), pattern=""),
        Collection("a", Path("/x"), pattern="a\nb"),
        Collection("a", Path("/x"), pattern="*" * 1_001),
        Collection("a", Path("/x"), ignore=("",)),
        Collection("a", Path("/x"), ignore=("a\n!b",)),
    ],
    ids=str,
)
def test_collections_that_cannot_be_used(collection):
    with pytest.raises(SettingsError, match="; ") as refused:
        check(collection)
    assert len(str(refused.value)) < 500


@given(st.text("ab:-[]{}#&*!|'\"%, \n~1é/", max_size=60))
def test_any_text_is_understood_or_refused(text):
    for whole in (text, f"collections:\n  a:\n    path: {text}", f"collections: {{a: {{{text}}}}}"):
        try:
            found = said_by(whole)
        except SettingsError as error:
            assert str(FILE) in str(error)
        else:
            assert all(each.path.is_absolute() for each in found.collections)
