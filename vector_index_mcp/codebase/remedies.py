"""The names of tools, settings and commands in the codebase's remedies."""

from vector_index_mcp.indexing.remedies import Remedies

REMEDIES = Remedies(
    place="VECTOR_INDEX_LANCEDB_URI",
    again="call trigger_index, or run `vector-index-mcp index`",
    anew="trigger_index with force_reindex=true, or `vector-index-mcp index --force`,",
    state="get_status",
    log="`vector-index-mcp logs`",
)
