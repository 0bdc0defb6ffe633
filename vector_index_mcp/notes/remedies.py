"""The words that the notes put into remedies: an agent searches, a person runs commands."""

from vector_index_mcp.indexing.remedies import Remedies

REMEDIES = Remedies(
    place="XDG_STATE_HOME",
    again="search again",
    anew="`vector-index-mcp notes doctor --repair`",
    state="`vector-index-mcp notes doctor`",
    log="`vector-index-mcp notes logs`",
)
