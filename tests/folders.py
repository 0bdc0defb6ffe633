"""Folders and what is known of their files, as tests make them."""

from vector_index_mcp.files import scan


class Stamps(dict):
    """Stamps by key, as `files.scan.Known`."""

    def below(self, key):
        return [each for each in self if not key or each.startswith(f"{key}/")]


def look(folder, ignore, keys, known, *more):
    """`files.scan.look`, with what is known as a dictionary."""
    return scan.look(folder, ignore, keys, Stamps(known), *more)
