"""Says why documents may be missed: something cannot be read, or nobody follows the changes."""

import anyio.to_thread

from vector_index_mcp.documents.service import Documents
from vector_index_mcp.errors import counted

_MOST_NAMED = 3


async def out_of_reach(documents: Documents, name: str = "") -> str:
    """Return sentences about what cannot be read, or is not followed; empty if all is well.

    Args:
        documents: The documents; they must be running.
        name: The only collection to look at; empty for all.
    """
    folders = [folder for folder in documents.index.folders if name in {"", folder.name}]
    problems = [*(await documents.index.looks.absent(folders)).values()]
    if documents.index.indexer is None:
        lack = await anyio.to_thread.run_sync(documents.index.note.lack)
        behind = f"recent changes may be missing: {lack}" if lack else ""
        problems[:0] = filter(None, [documents.index.progress.error or behind])
    if documents.problem:
        problems.insert(0, documents.problem)
    sentences = [f"{each[:1].upper()}{each[1:]}" for each in problems[:_MOST_NAMED]]
    if len(problems) > _MOST_NAMED:
        sentences.append(f"{counted(len(problems) - _MOST_NAMED, 'more folder')} cannot be read")
    return ". ".join(sentences)
