"""Checks what a team shares: the store of vectors, and the published index."""

from collections import Counter

import anyio

from vector_index_mcp.doctor.finding import Case, Finding, ok, warning
from vector_index_mcp.doctor.subject import Project
from vector_index_mcp.engine.models.model import model_on_this_machine
from vector_index_mcp.engine.models.wording import of_code
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import (
    BackgroundError,
    ModelNotFoundError,
    ProjectError,
    StorageError,
    counted,
)
from vector_index_mcp.indexing.vectors.packs import count_by_model
from vector_index_mcp.indexing.vectors.team import OFF
from vector_index_mcp.objects.opening import opened
from vector_index_mcp.settings import PREFIX, Settings

_SECONDS = 10.0  # for a listing, which usually takes well below one second
_AS_THE_TEAM = "use the version and the settings of those who publish it"
_NOT_FOR_DOCUMENTS = "not used; teams share indexes and vectors of projects, not of documents"
_SETTING, _SETTING_OF_INDEX = f"{PREFIX}SHARED_CACHE", f"{PREFIX}SHARED_INDEX"
_PUBLISH = f"publish it (`vector-index-mcp publish`), or correct {_SETTING_OF_INDEX}"


def vectors(case: Case) -> Finding:
    """Check whether the store answers, has vectors of this model, and had no wrong ones so far."""
    uri = case.settings.shared_cache
    if not isinstance(case.subject, Project):
        return ok(_NOT_FOR_DOCUMENTS)
    if not uri:
        return ok(f"not used; {_SETTING} is not set")
    try:
        report = case.subject.team_vectors()
    except (BackgroundError, ProjectError):  # other checks report this
        report = ""
    if OFF in report:
        words, remedy = case.subject.remedies.split(report)
        return warning(words, remedy)
    try:
        count = anyio.run(_count, uri)
    except StorageError as error:
        remedies = case.subject.remedies
        words, remedy = remedies.split(remedies.message(error))
        return warning(
            f"{words}; chunks are embedded here meanwhile", remedy or f"correct {_SETTING}"
        )
    packs, details = sum(count.values()), [f"the service: {report}"] if report else []
    digest = _digest_of(case.settings)
    if digest and packs and not count[digest]:
        words = f"{uri}: {counted(packs, 'pack')} of vectors, none of this model"
        return warning(words, "set VECTOR_INDEX_EMBEDDING_MODEL to the team's, or share yours")
    ours = counted(count[digest] if digest else packs, "pack")
    return ok(f"{uri}: {ours}{' of vectors of this model' if digest else ''}", *details)


def index(case: Case) -> Finding:
    """Check whether an index is published for a branch of the project."""
    uri = case.settings.shared_index
    if not isinstance(case.subject, Project):
        return ok(_NOT_FOR_DOCUMENTS)
    if not uri:
        return ok(f"not used; {_SETTING_OF_INDEX} is not set")
    try:
        described, lack = anyio.run(_published, uri, case.subject, case.settings)
    except StorageError as error:
        remedies = case.subject.remedies
        words, remedy = remedies.split(remedies.message(error))
    else:
        if described and not lack:
            return ok(f"{uri}: that of {described}")
        words = (
            f"{uri}: that of {described} {lack}"
            if described
            else f"{uri}: nothing is published there for a branch of this project"
        )
        remedy = _AS_THE_TEAM if lack else _PUBLISH
    return warning(
        f"{words}; the project is indexed here", remedy or f"correct {_SETTING_OF_INDEX}"
    )


async def _published(uri: str, subject: Project, settings: Settings) -> tuple[str, str]:
    """The description of the index that the project would fetch, and why it cannot be used here.

    Each is empty if there is none.

    Raises:
        StorageError: If the store refuses or is silent.
    """
    from vector_index_mcp.files.folder import Folders
    from vector_index_mcp.indexing.mirroring.reading import (  # and LanceDB
        branches_of,
        first_snapshot_of,
    )
    from vector_index_mcp.indexing.preparing.recipe import Recipe, chunker_of

    try:
        with anyio.fail_after(_SECONDS):
            snapshot = await first_snapshot_of(opened(uri), branches_of(subject.project))
    except TimeoutError:
        raise StorageError(f"{uri} does not answer within {_SECONDS:g} s") from None
    if snapshot is None:
        return "", ""
    chunker = chunker_of(Recipe(settings.chunk_max_chars), Folders(subject.folders()))
    return snapshot.description, snapshot.made.why_not(chunker, _model_of(settings))


async def _count(uri: str) -> Counter[str]:
    """How many packs the store has of each model, by its digest.

    Raises:
        StorageError: If the store refuses or is silent.
    """
    try:
        with anyio.fail_after(_SECONDS):
            return await count_by_model(opened(uri))
    except TimeoutError:
        raise StorageError(f"{uri} does not answer within {_SECONDS:g} s") from None


def _digest_of(settings: Settings) -> str:
    """The model's digest; empty if it is not on this machine."""
    model = _model_of(settings)
    return "" if model is None else model.digest


def _model_of(settings: Settings) -> ModelIdentity | None:
    """The model as code is embedded with it; None if it is not on this machine."""
    if settings.embedding_url:
        return None
    try:
        model = model_on_this_machine(settings.embedding_model, settings.embedding_dimension)
    except ModelNotFoundError:
        return None
    return None if model is None else of_code(settings.embedding_model).identity(model.identity)
