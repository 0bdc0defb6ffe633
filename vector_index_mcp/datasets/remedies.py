"""The words that the datasets put into remedies."""

from vector_index_mcp.indexing.remedies import Remedies

REMEDIES = Remedies(
    place="XDG_CACHE_HOME",
    again="search again",
    anew="copying the dataset again",
    state="`vector-index-mcp datasets list`",
    log="`vector-index-mcp logs`",
)
