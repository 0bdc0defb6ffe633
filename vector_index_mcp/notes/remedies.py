"""What the notes' remedies name: an agent searches, a person has commands."""

from vector_index_mcp.indexing.remedies import Remedies

REMEDIES = Remedies(
    place="XDG_STATE_HOME",
    again="search again",
    anew="`vector-index-mcp notes doctor --repair`",
    state="`vector-index-mcp notes doctor`",
    log="`vector-index-mcp notes logs`",
)
