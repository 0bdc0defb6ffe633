"""What two machines have written apart from each other, as one; nothing of either is lost. Pure.

    trees ─┬─ projects, numbers   what got the same folder or number on both sides is told apart
           ├─ chapters (fronts)   Markdown, chapter by chapter
           ├─ objects             JSON, entry by entry
           └─ tasks (fronts)      tasks as an older program wrote them

`threeway` says for any of them which version stands: what one side alone has changed is taken over.
What both sides have changed is kept twice, and marked. The result is what *our* side becomes.
`sides` are the files that are merged, `places` says what their paths stand for.

Must not know git, nor where the files are.
"""

from vector_index_mcp.notes.merging.chapters import conflicts
from vector_index_mcp.notes.merging.trees import Merge, merged

__all__ = ["Merge", "conflicts", "merged"]
