"""How large what is stored and read may be. Pure."""

LARGEST_FILE_BYTES = 32_000_000
"""Of a file that is read and kept in the history; content of the contract takes 10 MB."""
MOST_SHOWN = 20
"""Names in a list for people and agents."""
