"""The names of the tool sets, by which their services are reached."""

CODEBASE, DOCUMENTS, NOTES, DATASETS = "codebase", "documents", "notes", "datasets"
