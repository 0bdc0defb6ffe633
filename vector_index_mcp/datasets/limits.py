"""Limits on foreign datasets, and on those that are made here. Pure."""

LARGEST_MANIFEST_BYTES = 10_240  # as the contract says
LARGEST_METADATA_BYTES = 1_000_000_000
MOST_DIMENSIONS = 8_192
MOST_NUMBERS = 2**31
"""The most numbers in all vectors of an index: five million vectors of 384 dimensions."""
DEEPEST = 8
"""The most folders between the folder of all datasets and a manifest."""
MOST_ENTRIES = 20_000
"""The most files and folders that a search for manifests looks at, and those of a table."""
MOST_DATASETS = 1_000
LONGEST_TITLE, LONGEST_PATH, LONGEST_SNIPPET = 256, 512, 2_048
"""The most characters of each field of a result, as the contract says."""
ENDINGS = ("md", "markdown", "txt", "rst", "adoc", "html", "htm", "ipynb", "pdf", "docx")
"""The endings of the files that a dataset is made from by default."""
FEWEST_WORDS, MOST_WORDS, MOST_OVERLAP = 64, 4_096, 1_024
"""Limits on the words of a chunk, and on the words that two chunks share, as the contract says."""
