"""Looks at folders: reads their rules, and compares what is there with what the index holds."""
