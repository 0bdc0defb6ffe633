"""How a note of an answer begins that says why the index may not match the files. Pure."""

MAY_LACK_CHANGES = "Recent changes may be missing"
UNDER_WAY = "Indexing is under way"


def is_behind(note: str) -> bool:
    """Whether a note says so: then nobody can say what no file contains now."""
    return MAY_LACK_CHANGES in note or UNDER_WAY in note
