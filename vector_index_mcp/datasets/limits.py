"""How large what is foreign may be. Pure."""

LARGEST_MANIFEST_BYTES = 10_240  # of the contract
LARGEST_METADATA_BYTES = 1_000_000_000
MOST_DIMENSIONS = 8_192
MOST_NUMBERS = 2**31
"""In all vectors of an index: five million of 384 dimensions."""
DEEPEST = 8
"""Folders between that of all datasets and a manifest."""
MOST_ENTRIES = 20_000
"""Files and folders that are looked at for manifests."""
MOST_DATASETS = 1_000
LONGEST_TITLE, LONGEST_PATH, LONGEST_SNIPPET = 256, 512, 2_048
"""Characters of a result, of the contract."""
ENDINGS = ("md", "markdown", "txt", "rst", "adoc", "html", "htm", "ipynb", "pdf", "docx")
"""Of the files that a dataset is made of, unless somebody says which."""
FEWEST_WORDS, MOST_WORDS, MOST_OVERLAP = 64, 4_096, 1_024
"""Of a chunk that is made, and of the overlap of two, of the contract."""
