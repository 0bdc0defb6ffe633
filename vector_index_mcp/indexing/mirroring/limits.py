"""How large what is fetched may be, and how long anybody waits for it."""

MOST_FILES = 20_000
"""Of one table; a table of a million rows has some hundred."""
MOST_BYTES = 50_000_000_000
"""Of one index; one of 500,000 chunks has 3 GB."""
LARGEST_SNAPSHOT_BYTES = 8_000_000
LARGEST_BRANCH_BYTES = 10_000
LARGEST_RECORDS_BYTES = 200_000_000
MOST_RECORDS = 1_000_000
LONGEST_NAME = 500
"""Of a branch, a model, a chunker."""
LONGEST_KEY = 4_096
BYTES_KEPT_FREE = 500_000_000
"""On the disk that the index is fetched to."""

ASKING_SECONDS = 15.0
"""For which snapshot there is."""
FETCHING_SECONDS, FETCHED_BYTES_PER_SECOND = 30.0, 350_000
"""A chunk takes 3.5 kB of an index and 10 ms to embed: fetching shall not take longer."""
MOST_FETCHING_SECONDS = 3_600.0
PROVING_SECONDS, PROVED_BYTES_PER_SECOND = 60.0, 3_000_000
AT_ONCE = 16
"""Requests; more gain nothing at 20 ms of round trip."""
