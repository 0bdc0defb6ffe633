"""Models that turn texts into vectors or judge them: in this process, in a worker, on a server."""
