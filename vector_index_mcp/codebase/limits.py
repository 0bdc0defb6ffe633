"""What the arguments of `search_index` may be, for the tool and for the command line."""

TOP_K = (1, 100)
DEFAULT_TOP_K = 5
MAX_TOKENS = (500, 100_000)
DEFAULT_MAX_TOKENS = 8_000  # clients reject answers from 10,000 to 25,000 tokens on
LONGEST_QUERY_CHARS = 50_000
"""A pasted log of a failed build. Of anything longer nobody says what is looked for."""
LONGEST_PATH_CHARS = 4_096
"""Linux's PATH_MAX."""
LONGEST_LANGUAGE_CHARS = 100
LARGEST_OFFSET = 400
"""Results that can be passed over: what lies further down is found sooner by another query."""
