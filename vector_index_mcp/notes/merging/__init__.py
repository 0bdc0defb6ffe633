"""Merges the changes of two machines into one set of files; no change of either is lost. Pure.

    trees ─┬─ projects, numbers   separate what got the same folder or number on both sides
           ├─ chapters (fronts)   Markdown, chapter by chapter
           ├─ objects             JSON, entry by entry
           └─ tasks (fronts)      tasks in Markdown, as the original program wrote them

`threeway` decides which version is used: if only one side has changed something, that side's. What
both sides have changed is kept in both versions, and marked. The result is the new content of *our*
side. `sides` holds the files to merge; `places` parses their paths.

Must not know git, nor where the files are.
"""

from vector_index_mcp.notes.merging.chapters import conflicts
from vector_index_mcp.notes.merging.trees import Merge, merged

__all__ = ["Merge", "conflicts", "merged"]
