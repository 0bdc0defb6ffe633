"""Chooses what opens an index, by where it lies."""

from typing import TYPE_CHECKING

from vector_index_mcp.engine.store.reach import is_local, is_server
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.mirroring.mirror import Mirror
from vector_index_mcp.indexing.opening.local import Opener
from vector_index_mcp.indexing.opening.remote import RemoteOpener
from vector_index_mcp.indexing.opening.server import ServerOpener
from vector_index_mcp.indexing.place import Place

if TYPE_CHECKING:
    from vector_index_mcp.indexing.options import Options


def opener_of(
    place: Place, chunker: str, options: "Options", mirror: Mirror | None, looks: Looks
) -> Opener | RemoteOpener:
    """What opens the index at `place`; see the classes about the arguments."""
    if is_local(place.uri):
        return Opener(place, chunker, options.state_folder, options.remedies, mirror, looks)
    remote = ServerOpener if is_server(place.uri) else RemoteOpener
    return remote(place, chunker, options.state_folder, options.remote)
