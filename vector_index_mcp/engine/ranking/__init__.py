"""Searches a store, and puts what is found in order."""
