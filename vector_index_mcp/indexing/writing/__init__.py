"""Writes the text of files into the index: from dirty keys, or from a scan, to a commit."""
