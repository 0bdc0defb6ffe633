"""What the searches propose while vectors are still being made. Pure."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from vector_index_mcp.engine.types import Candidate


def is_embedded(candidate: Candidate, share: float) -> bool:
    """Whether a candidate's file is among this share of the files, always the same ones."""
    return hashlib.sha256(candidate.chunk.key.encode()).digest()[0] < 256 * share


def lexical(found: Iterable[Candidate], share: float) -> list[Candidate]:
    """What full text proposes while this share of the files has vectors."""
    return [each if is_embedded(each, share) else _without_vector(each) for each in found]


def _without_vector(found: Candidate) -> Candidate:
    return replace(found, chunk=replace(found.chunk, has_vector=False), vector=None, cosine=None)


def semantic(found: Iterable[Candidate], share: float) -> list[Candidate]:
    """What vectors propose then."""
    return [each for each in found if is_embedded(each, share)]
