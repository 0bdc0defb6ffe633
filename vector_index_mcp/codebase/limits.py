"""What the arguments of `search_index` may be, for the tool and for the command line."""

TOP_K = (1, 100)
DEFAULT_TOP_K = 5
MAX_TOKENS = (500, 100_000)
DEFAULT_MAX_TOKENS = 8_000  # clients reject answers from 10,000 to 25,000 tokens on
