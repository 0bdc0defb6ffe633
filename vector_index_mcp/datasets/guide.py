"""What an agent is told about the datasets: the server's instructions, and each tool."""

from collections.abc import Mapping

from vector_index_mcp.datasets.arguments import LIST, SEARCH

INSTRUCTIONS = (
    "Knowledge that others have prepared: documentation, handbooks, code bases, each a dataset. "
    "knowledge.listDatasets says which there are and what each is about; knowledge.search finds "
    "the texts of one, of several, or of all that answer a question best, with their paths. They "
    "are read only, and as old as their datasets."
)

TOOLS: Mapping[str, tuple[str, str]] = {
    SEARCH: (
        "Search Knowledge",
        "Search a dataset for what answers a question: by meaning, and by the words of titles and "
        "texts. Results come best first, with a score from 0 to 1 and the path of their source.",
    ),
    LIST: (
        "List Datasets",
        "List the datasets that can be searched, with what each is about. Do this first.",
    ),
}
