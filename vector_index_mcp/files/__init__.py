"""Which files there are, which changed, and what they say. Knows nothing of chunks or vectors."""
