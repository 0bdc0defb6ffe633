"""Finds an index, opens it, and says whose it is and which process writes it."""
