"""Numbers in the sentences that we word ourselves; other texts may be part of a contract."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 file", "2 files"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
