"""The errors this package raises on purpose.

Every message is safe to show to a person or an agent and ends with what to do about it.

    VectorIndexError
    |- SettingsError         a setting or an argument is wrong; names it
    |- ProjectError          this folder cannot be indexed
    |- QueryError            this query cannot be answered as it was asked
    |- ConfigFileError       an MCP client's configuration file cannot be read or changed
    |- BusyError             another process is this index's writer
    |- BackgroundError       the background service cannot be started or reached
    |  `- ServiceEndedError  it ended in the middle
    |- StoreError            LanceDB failed; the cause is kept
    |  |- StorageError       the disk or the network below it refuses; that may pass
    |  |- DamagedIndexError  what lies on disk cannot be read; a rebuild mends it
    |  |- LostIndexError     the index's folder is gone, or is another one now
    |  `- ForeignIndexError  the folder holds what this user's program did not write
    `- EmbeddingError        texts cannot be embedded now
       `- ModelNotFoundError there is no embedding model on this machine

A bad file is not an error but data: `files.read.Skipped`.
"""


class VectorIndexError(Exception):
    """The root of the tree; never raised itself."""


class SettingsError(VectorIndexError):
    """Raised when a setting or a command-line argument is not usable."""


class ProjectError(VectorIndexError):
    """Raised when the given path is not a folder that may be indexed."""


class QueryError(VectorIndexError):
    """Raised when a query has nothing to search for."""


class ConfigFileError(VectorIndexError):
    """Raised when a client's configuration file cannot be read, or not be changed safely."""


class BusyError(VectorIndexError):
    """Raised when only the index's writer can do this, and that is another process."""


class BackgroundError(VectorIndexError):
    """Raised when the project's background service cannot be started or reached."""


class ServiceEndedError(BackgroundError):
    """Raised when the background service ends before it has answered."""


class StoreError(VectorIndexError):
    """Raised when the index cannot be read or written."""


class StorageError(StoreError):
    """Raised when the disk, the network or a permission keeps the index from being used."""


class DamagedIndexError(StoreError):
    """Raised when the index on disk is unreadable although the disk answers."""


class LostIndexError(StoreError):
    """Raised when the index's folder was removed, moved or replaced while it was in use."""


class ForeignIndexError(StoreError):
    """Raised when the index's folder holds something that is not ours to read or change."""


class EmbeddingError(VectorIndexError):
    """Raised when the embedding worker cannot embed."""


class ModelNotFoundError(EmbeddingError):
    """Raised when the embedding model is neither on this machine nor to be downloaded."""
