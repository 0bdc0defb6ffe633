"""What a text says: its words, its identifiers, its comments, its fenced code."""
