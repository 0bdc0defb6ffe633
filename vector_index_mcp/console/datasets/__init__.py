"""The command line of the datasets."""
