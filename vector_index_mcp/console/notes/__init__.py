"""The command line of the notes."""
