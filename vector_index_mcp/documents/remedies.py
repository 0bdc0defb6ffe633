"""The commands and settings that error messages of the documents recommend.

They are commands for people: the MCP tools of the documents change nothing.
"""

from vector_index_mcp.indexing.remedies import Remedies

REMEDIES = Remedies(
    place="INDEX_PATH",
    again="run `vector-index-mcp documents update`",
    anew="`vector-index-mcp documents update`",
    state="`vector-index-mcp documents status`",
    log="`vector-index-mcp documents logs`",
)
