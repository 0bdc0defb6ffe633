"""Prepares a file and forgets it, so that forks of this process have loaded what that needs."""

import tempfile
from pathlib import Path

from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.preparing.file import Task, prepare
from vector_index_mcp.indexing.preparing.recipe import Recipe

with tempfile.TemporaryDirectory() as name:
    Path(name, "a.py").write_text("def first():\n    return 1\n", encoding="utf-8")
    for is_prose in (False, True):
        prepare(Recipe(1_500, is_prose=is_prose), Task(Folder(Path(name)), "a.py"))
