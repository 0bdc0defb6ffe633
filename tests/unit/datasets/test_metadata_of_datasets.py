"""The texts of a dataset are read in every shape that people have."""

import pytest
from shelves import write

from vector_index_mcp.datasets.metadata import DEFAULT_MODEL, read
from vector_index_mcp.datasets.refusal import BadDatasetError


def read_of(folder, said):
    write(folder / "metadata.json", said)
    return read(folder / "metadata.json")


def text_of(folder, **fields):
    [text] = read_of(folder, [fields]).texts
    return text.title, text.path, text.content, text.snippet


def test_a_list_and_an_object_with_documents_are_taken(tmp_path):
    documents = [{"title": "T", "path": "a/b.md", "content": "C", "snippet": "S"}]
    found = read_of(tmp_path, documents)
    assert found.model == DEFAULT_MODEL
    assert read_of(tmp_path, {"model": "m", "documents": documents}).model == "m"
    assert read_of(tmp_path, {"documents": documents}) == found


def test_what_is_left_out_is_made_of_the_rest(tmp_path):
    assert text_of(tmp_path, path="a/b.md", text="x" * 300) == (
        "b.md", "a/b.md", "x" * 300, "x" * 200,
    )  # fmt: skip
    assert text_of(tmp_path, title="T", id="sample-1")[:2] == ("T", "sample-1")
    assert text_of(tmp_path)[:2] == ("Document 0", "document-0")


def test_what_is_too_long_for_a_result_is_cut(tmp_path):
    title, path, content, snippet = text_of(
        tmp_path, title="t" * 300, path="p" * 600, content="c" * 5_000, snippet="s" * 3_000
    )
    assert list(map(len, (title, path, content, snippet))) == [256, 512, 5_000, 2_048]


def test_what_is_no_text_in_unicode_becomes_one(tmp_path):
    write(tmp_path / "metadata.json", b'[{"title": "a\\ud800b", "path": "p"}]')
    [text] = read(tmp_path / "metadata.json").texts
    assert text.title == "a?b"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"nope", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        ({"chunks": []}, "neither a list nor an object"),
        ("text", "neither a list nor an object"),
        ([{}, 3], "document 1 of the metadata is no object"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, said, words):
    with pytest.raises(BadDatasetError, match=words):
        read_of(tmp_path, said)


def test_more_than_can_be_held_is_refused_unread(tmp_path):
    with (tmp_path / "metadata.json").open("wb") as file:
        file.truncate(1_000_000_001)
    with pytest.raises(BadDatasetError, match="bytes"):
        read(tmp_path / "metadata.json")
