"""The links that are shown are those of the ledger at hand."""

from types import SimpleNamespace

import pytest

from vector_index_mcp.documents.service import Documents
from vector_index_mcp.engine.prose import Properties
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.derived import Derived
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED


def ledger_of(name):
    """A document that links to another one, which is called `name`."""
    ledger = Ledger()
    documents = {
        "a/from.md": Properties("from", links=(f"{name}.md",)),
        f"a/{name}.md": Properties(name),
    }
    for key, properties in documents.items():
        record = FileRecord(key, (1, 2, 3), "", 1, INDEXED, "", details=properties.dumped())
        ledger.put(record, 0)
    return ledger


@pytest.mark.anyio
async def test_a_ledger_has_its_own_links_even_at_the_place_in_memory_of_another():
    """Where another process writes the index, each question reads a new ledger."""
    documents = SimpleNamespace(_links=Derived())
    for name in ("one", "two", "three", "four"):
        links = await Documents.link_map(documents, ledger_of(name))
        assert links.of("a/from.md").out == (f"a/{name}.md",)


@pytest.mark.anyio
async def test_links_are_found_once_for_each_revision():
    documents, ledger = SimpleNamespace(_links=Derived()), ledger_of("one")
    first = await Documents.link_map(documents, ledger)
    assert await Documents.link_map(documents, ledger) is first
    ledger.forget("a/one.md")
    assert (await Documents.link_map(documents, ledger)).of("a/from.md").out == ()
