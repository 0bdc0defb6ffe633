"""The command line of the documents: that of the program `qmd`, with our index behind it.

Must not know how documents are found: a command asks a running service, or opens the index itself
while it runs.
"""
