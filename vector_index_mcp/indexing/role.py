"""What a process does for an index."""

from enum import StrEnum


class Role(StrEnum):
    """What a process does for the index besides answering questions."""

    KEEPER = "keeper"
    """Watches the folders and becomes the writer as soon as there is no other."""
    DEPUTY = "deputy"
    """Is a visitor who may take long, and watches meanwhile: a service relies on the writer."""
    VISITOR = "visitor"
    """Brings the index up to date once, unless another process keeps it."""
    READER = "reader"
    """Changes nothing."""

    @property
    def watches(self) -> bool:
        """Whether it follows changes while it is the writer."""
        return self in {Role.KEEPER, Role.DEPUTY}
