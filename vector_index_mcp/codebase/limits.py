"""Limits and defaults of the arguments of `search_index`, for the tool and the command line."""

TOP_K = (1, 100)
DEFAULT_TOP_K = 5
MAX_TOKENS = (500, 100_000)
DEFAULT_MAX_TOKENS = 8_000  # clients reject answers from 10,000 to 25,000 tokens on
LONGEST_QUERY_CHARS = 50_000
"""Enough for the pasted log of a failed build."""
LONGEST_REGEX_CHARS = 1_000
"""A longer expression could keep its search busy."""
LONGEST_PATH_CHARS = 4_096
"""Linux's PATH_MAX."""
LONGEST_LANGUAGE_CHARS = 100
LARGEST_OFFSET = 400
"""How many results can be skipped; to find a later one, another query is the faster way."""
