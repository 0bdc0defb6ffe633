"""The commands of the documents."""
