"""What a person is told of an error of the system: what happened, to what, and what to do.

Imported before anything can fail, and imports next to nothing: it must speak where no file can be
opened and no memory is left.
"""

import errno

_MEMORY = "end other programs, or raise the limit of memory (`ulimit -v`) where it is started"
_SPACE = "free some space there"
_RIGHTS = "give yourself permission, or choose another folder in the settings"
_DESCRIPTORS = "raise the limit of open files (`ulimit -n 4096`) where it is started"
_REMEDIES = {
    errno.EMFILE: _DESCRIPTORS,
    errno.ENFILE: "end other programs, or raise the system's limit of open files",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit of a file's size (`ulimit -f`) where it is started",
    errno.EROFS: _RIGHTS,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`) where it is started",
}
_OTHERWISE = "`vector-index-mcp doctor` examines the machine"
# The loader's words when a library finds no room, and Python's when a thread finds none.
_SIGNS_OF_MEMORY = ("cannot allocate memory", "failed to map", "can't start new thread")
SYSTEM_ERRORS = (OSError, MemoryError, ImportError, RuntimeError)
"""What the system can make of anything at all that we do."""


def sentence(error: BaseException) -> str:
    """What happened and what to do about it; of a group, about the first of its errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or any(s in words.lower() for s in _SIGNS_OF_MEMORY):
        return f"there is not enough memory ({words}); {_MEMORY}"
    if isinstance(error, OSError) and error.strerror:
        what = f"{error.filename}: " if error.filename else ""
        return f"{what}{error.strerror}; {_REMEDIES.get(error.errno or 0, _OTHERWISE)}"
    if isinstance(error, SYSTEM_ERRORS):
        return f"{type(error).__name__}: {words}; {_OTHERWISE}"
    return words
