"""The map of questions that was learned without a package; question_map.py learns it."""

import sys
from pathlib import Path

from packages import Corpus

from vector_index_mcp.engine.models import question_map
from vector_index_mcp.engine.types import Vectors


def file_of(corpus: Corpus, folder: Path) -> Path:
    """Where the map is kept that was learned without this package."""
    return folder / "question-maps" / f"{corpus.name}.npy.gz"


def map_without(corpus: Corpus, folder: Path) -> Vectors:
    """The map by which a package is to be judged: one that has not seen its questions."""
    file = file_of(corpus, folder)
    if not file.exists():
        print(f"{corpus.name}: make question-map first; it is judged too well", file=sys.stderr)
        file = question_map.FILE
    return question_map.read(file)
