"""The command line of the documents: what a user of `qmd` types and sees, with our index behind it.

Must not know how documents are found: it asks a service, or opens the index for a moment.
"""
