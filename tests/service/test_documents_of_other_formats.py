"""Collections with PDF and Word: a project leaves such files out, documents do not."""

import math

import pytest
from fakes import FakeEmbedder
from formats import PDF, needs_formats, word
from qmd import documents_of, serving, settled
from writing import write

from vector_index_mcp.documents import retrieval
from vector_index_mcp.documents.home import Home

pytestmark = [pytest.mark.anyio, needs_formats]

CONFIGURATION = """\
collections:
  all:
    path: {folder}/files
    pattern: "{pattern}"
"""


def documents_in(folder, pattern):
    """A collection with this pattern, of a text of each kind."""
    files = write(folder / "files", {"lion.md": "# A lion\n", "errors.log": "A giraffe failed.\n"})
    (files / "report.pdf").write_bytes(PDF)
    (files / "minutes.docx").write_bytes(word("We agreed on elephants."))
    write(folder, {"conf/index.yml": CONFIGURATION.format(folder=folder, pattern=pattern)})
    home = Home("index", folder / "conf/index.yml", str(folder / "index.lancedb"))
    return documents_of(home, FakeEmbedder())


async def found(folder, pattern, *queries):
    """The first document for each query."""
    documents = documents_in(folder, pattern)
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        answers = [await client.call_tool("search", {"query": query}) for query in queries]
    results = [answer.structured_content["results"] for answer in answers]
    return [each[0]["file"] if each else None for each in results]


@pytest.mark.parametrize("pattern", ["**/*", "**/*.{md,pdf,docx}", "*.{docx,pdf}"])
async def test_pdf_and_word_are_found(tmp_path, pattern):
    names = await found(tmp_path, pattern, "zebra", "elephants")
    assert names == ["all/report.pdf", "all/minutes.docx"]


async def test_one_that_is_gone_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(retrieval, "_CONVERSION_SECONDS", math.inf)
    documents = documents_in(tmp_path, "**/*")
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        monkeypatch.setattr(documents.index.indexer, "look_again", lambda _: None)
        (tmp_path / "files/report.pdf").unlink()
        answer = await client.call_tool("get", {"file": "all/report.pdf"})
    assert answer.is_error


async def test_what_the_pattern_names_is_indexed_although_it_usually_is_not(tmp_path):
    assert await found(tmp_path, "**/*.{md,log}", "giraffe", "lion") == [
        "all/errors.log",
        "all/lion.md",
    ]


async def test_a_pattern_for_everything_leaves_out_what_is_usually_no_document(tmp_path):
    assert await found(tmp_path, "**/*", "giraffe", "lion") == [None, "all/lion.md"]
