"""One service per project and many front ends. Knows bytes and processes, nothing of indexing."""
