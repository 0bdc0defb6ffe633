"""What the documents' remedies name: an agent has no tool for them, a person has commands."""

from vector_index_mcp.indexing.remedies import Remedies

REMEDIES = Remedies(
    place="INDEX_PATH",
    again="run `vector-index-mcp documents update`",
    anew="`vector-index-mcp documents update`",
    state="`vector-index-mcp documents status`",
    log="`vector-index-mcp documents logs`",
)
