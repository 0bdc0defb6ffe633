"""The collections that the contract's transcripts were recorded with, served by ours."""

import anyio
from serving import serving as serving_of_any_set
from waiting import PATIENCE_SECONDS
from writing import write

from vector_index_mcp.documents.configuration import read
from vector_index_mcp.documents.home import Home
from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.serving import sets

LOREM = "Lorem ipsum " * 2_003
FILES = {
    "docs/readme.md": "# Project README\n\nThis is the main readme file for the project.\n\n"
    "It contains important information about setup and usage.",
    "docs/api.md": "# API Documentation\n\nThis document describes the REST API endpoints.\n\n"
    "## Authentication\n\nUse Bearer tokens for auth.",
    "docs/large-file.md": f"# Large Document\n\n{LOREM}",
    "docs/external-podcast/2023-april-interview.md": "# Podcast Episode\n\nInterview content here.",
    "docs/meetings/meeting-2024-01.md": "# January Meeting Notes\n\n"
    "Discussed Q1 goals and roadmap.\n\n## Action Items\n\n- Review budget\n"
    "- Hire new team members",
    "docs/meetings/meeting-2024-02.md": "# February Meeting Notes\n\n"
    "Followed up on Q1 progress.\n\n## Updates\n\n- Budget approved\n- Two candidates interviewed",
    "notes/plan.md": "# Plan\n\n\n\nNo heading match. The budget roadmap is here.\nline four\n"
    "line five",
}
CONFIGURATION = """\
global_context: Global ctx
collections:
  docs:
    path: {folder}/docs
    pattern: "**/*.md"
    context:
      /meetings: Meeting notes and transcripts
  notes:
    path: {folder}/notes
    pattern: "**/*.md"
"""


def written(folder):
    """The home of the recorded collections, which are written into `folder`."""
    write(folder, FILES | {"conf/index.yml": CONFIGURATION.format(folder=folder)})
    return Home("index", folder / "conf/index.yml", str(folder / "index.lancedb"))


def documents_of(home, embedder, **options):
    """The documents of `home`; cache and state lie beside its index."""
    beside = home.configuration.parent.parent
    chosen = {
        "recipe": Recipe(1_200, is_prose=True),
        "quiet_seconds": 0.01,
        "longest_seconds": 0.1,
        "rescan_seconds": 3_600.0,
        "state_folder": beside / "state",
        "remedies": REMEDIES,
    }
    cache = EmbeddingCache(beside / "cache", 100_000_000)
    return Documents(home, read(home.configuration), Options(**chosen | options), embedder, cache)


def serving(documents, mode="legacy"):
    """A client of `documents`, which run meanwhile."""
    return serving_of_any_set(documents, mode, sets.DOCUMENTS)


async def settled(documents):
    """Wait until the index is as the collections are, as far as words go."""
    with anyio.fail_after(PATIENCE_SECONDS):
        await documents.follow()
        run = await documents.index.trigger(force_reindex=False)
        await run.finished.wait()
