"""The largest published index that is fetched, and the longest waits for it."""

MOST_FILES = 20_000
"""For one table; a table of a million rows has some hundred files."""
MOST_BYTES = 50_000_000_000
"""For one index; an index of 500,000 chunks has 3 GB."""
LARGEST_SNAPSHOT_BYTES = 8_000_000
LARGEST_BRANCH_BYTES = 10_000
LARGEST_RECORDS_BYTES = 200_000_000
MOST_RECORDS = 1_000_000
LONGEST_NAME = 500
"""For the name of a branch, a model or a chunker, in characters."""
LONGEST_KEY = 4_096
BYTES_KEPT_FREE = 500_000_000
"""Space that must stay free on the disk that the index is fetched to."""

ASKING_SECONDS = 15.0
"""For finding the snapshot of a branch."""
FETCHING_SECONDS, FETCHED_BYTES_PER_SECOND = 30.0, 350_000
"""A chunk has 3.5 kB in an index and takes 10 ms to embed; fetching must not take longer."""
MOST_FETCHING_SECONDS = 3_600.0
PROVING_SECONDS, PROVED_BYTES_PER_SECOND = 60.0, 3_000_000
AT_ONCE = 16
"""How many requests run at once; with round trips of 20 ms, more would not be faster."""
