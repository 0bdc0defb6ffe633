"""The texts about the datasets that an agent sees: the server's instructions, and each tool's."""

from collections.abc import Mapping

from vector_index_mcp.datasets.arguments import LIST, SEARCH

INSTRUCTIONS = (
    "Knowledge that others have prepared: documentation, handbooks, code bases, each a dataset. "
    "knowledge.listDatasets lists the datasets and what each is about. knowledge.search searches "
    "one, several or all of them for the texts that answer a question best, and returns the texts "
    "with their paths. Datasets are read only, and as old as the day they were made."
)

TOOLS: Mapping[str, tuple[str, str]] = {
    SEARCH: (
        "Search Knowledge",
        "Search datasets for texts that answer a question: by meaning, and by the words of titles "
        "and texts. Results come best first, with a score from 0 to 1 and their source's path.",
    ),
    LIST: (
        "List Datasets",
        "List the datasets that can be searched, and what each is about. Do this first.",
    ),
}
