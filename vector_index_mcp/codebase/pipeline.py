"""One batch: dirty files to committed rows, rows without vectors to rows with. The only writer.

What is wrong with one file is data, kept in its record; what is wrong with the store is an error
that leaves the whole batch to be done again.
"""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread

from vector_index_mcp.codebase.ledger import FAILED, INDEXED, SKIPPED, Ledger
from vector_index_mcp.codebase.run import Outcome
from vector_index_mcp.engine import chunk, texts
from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.embed import Embedder
from vector_index_mcp.engine.portions import portions
from vector_index_mcp.engine.store import Index, Store
from vector_index_mcp.engine.texts import chunk_hash, embedded_text
from vector_index_mcp.engine.types import Document, FileRecord, ModelIdentity, Vector
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError
from vector_index_mcp.files import read
from vector_index_mcp.files.language import language_of

_log = logging.getLogger(__name__)

# A request to the worker is short, so that a query behind it does not wait long: at the 25 to 100
# chunks a second of two cores, 8 chunks are 0.1 to 0.3 s. With 16, the median query during a full
# pass took 0.56 s on the slower ones.
_CHUNKS_PER_REQUEST = 8
_CHUNKS_PER_FILL = 256  # a commit costs 10 ms and a fragment; a new change ends a fill early
_EMBEDDED = ("file_path", "scope", "extracted_text_chunk")  # as `embedded_text` takes them
UNSTORABLE_NAME = "name is not valid Unicode"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What turns a file into chunks, apart from the file."""

    max_file_bytes: int
    chunk_max_chars: int

    @property
    def version(self) -> str:
        """Differs whenever the same file would become other chunks."""
        limits = f"chars={self.chunk_max_chars} bytes={self.max_file_bytes}"
        return f"{chunk.VERSION} {texts.VERSION} {limits}"


@dataclass(slots=True)
class _Prepared:
    """A batch read and cut, ready to be committed."""

    documents: list[Document] = field(default_factory=list)
    records: list[FileRecord] = field(default_factory=list)
    refreshed: list[FileRecord] = field(default_factory=list)
    """Records of files whose bytes are as they were."""
    vanished: list[str] = field(default_factory=list)


class Pipeline:
    """The stages between a dirty path and a searchable chunk."""

    def __init__(
        self, root: Path, recipe: Recipe, embedder: Embedder, cache: EmbeddingCache
    ) -> None:
        self._root = root
        self._recipe = recipe
        self._embedder = embedder
        self._cache = cache
        self._hopeless: set[str] = set()  # hashes of texts that alone make the worker fail
        self.revision = 0
        """Of the last commit; to be set from the store before the first."""
        self.embedded = 0
        """Chunks the model embedded since the start; the cache's are not among them."""

    async def index_batch(
        self,
        store: Store,
        ledger: Ledger,
        model: ModelIdentity | None,
        dirty: Sequence[str],
        gone: Sequence[str] = (),
    ) -> Outcome:
        """Bring the rows of `dirty` files up to date and drop those of `gone` ones.

        Args:
            store: Where the rows are.
            ledger: What is known of that store's files; brought up to date as well.
            model: Whose vectors the store holds; None if none yet.
            dirty: Files to read.
            gone: Files to forget.

        Raises:
            StoreError: If a commit fails. The ledger then tells of nothing that was not committed.
        """
        prepared = await anyio.to_thread.run_sync(self._prepare, ledger, dirty)
        gone = [*gone, *prepared.vanished]
        if prepared.records:
            await self._commit(store, ledger, model, prepared)
        if prepared.refreshed:
            await store.put_records([r for r in prepared.refreshed if _is_storable(r.key)])
            for record in prepared.refreshed:
                ledger.put(record, ledger.waiting_of(record.key))
        if gone:
            await store.delete([key for key in gone if _is_storable(key)])
            for key in gone:
                ledger.forget(key)
        return _outcome(prepared, len(gone))

    async def _commit(
        self, store: Store, ledger: Ledger, model: ModelIdentity | None, prepared: _Prepared
    ) -> None:
        hashes = {
            document.key: [chunk_hash(document.key, c.scope, c.text) for c in document.chunks]
            for document in prepared.documents
        }
        vectors: dict[str, Vector] = {}
        if model is not None:
            wanted = [h for of_document in hashes.values() for h in of_document]
            vectors = await anyio.to_thread.run_sync(self._cache.get, model, wanted)
        self.revision += 1
        await store.replace(prepared.documents, self.revision, vectors)
        await store.put_records([r for r in prepared.records if _is_storable(r.key)])
        for record in prepared.records:
            missing = sum(h not in vectors for h in hashes.get(record.key, ()))
            ledger.put(record, missing)

    def _prepare(self, ledger: Ledger, dirty: Sequence[str]) -> _Prepared:
        prepared = _Prepared()
        for key in dirty:
            try:
                self._prepare_file(ledger, key, prepared)
            except Exception:  # noqa: BLE001 - one file must not keep the others from the index
                _log.exception("%r could not be indexed", key)
                found = read.Skipped("internal error, see the log", read.stamp_now(self._root, key))
                self._note_without_text(prepared, key, found, FAILED)
        return prepared

    def _prepare_file(self, ledger: Ledger, key: str, prepared: _Prepared) -> None:
        if not _is_storable(key):
            found = read.Skipped(UNSTORABLE_NAME, read.stamp_now(self._root, key))
            self._note_without_text(prepared, key, found, SKIPPED)
            return
        result = read.read(self._root, key, self._recipe.max_file_bytes)
        known = ledger.get(key)
        if isinstance(result, read.Vanished):
            prepared.vanished.append(key)
        elif isinstance(result, read.Skipped):
            state = FAILED if result.reason.startswith(read.UNREADABLE) else SKIPPED
            self._note_without_text(prepared, key, result, state)
        elif known and known.state == INDEXED and known.content_hash == result.content_hash:
            prepared.refreshed.append(
                FileRecord(key, result.stamp, result.content_hash, known.chunk_count, INDEXED, "")
            )
        else:
            document = self._document(key, result)
            prepared.documents.append(document)
            prepared.records.append(
                FileRecord(
                    key, result.stamp, result.content_hash, len(document.chunks), INDEXED, ""
                )
            )

    def _note_without_text(
        self, prepared: _Prepared, key: str, found: read.Skipped, state: str
    ) -> None:
        """Index the file as one without chunks, so that rows of an earlier text go."""
        if _is_storable(key):
            empty = read.Text("", found.content_hash, found.stamp)
            prepared.documents.append(self._document(key, empty))
        prepared.records.append(
            FileRecord(key, found.stamp, found.content_hash, 0, state, found.reason)
        )

    def _document(self, key: str, text: read.Text) -> Document:
        language = language_of(key)
        return Document(
            key=key,
            original_path=key.replace("/", os.sep),
            content_hash=text.content_hash,
            modified=text.stamp[1] / 1e9,
            language=language,
            chunks=tuple(chunk.chunk_text(text.text, language, self._recipe.chunk_max_chars)),
        )

    async def embed_batch(
        self, index: Index, ledger: Ledger, model: ModelIdentity, writing: anyio.Lock
    ) -> None:
        """Give vectors to some of the chunks that lack them, those of the last changes first.

        Args:
            index: Where the rows are; its vectors are of `model`.
            ledger: What is known of the current store's files; brought up to date as well.
            model: The embedder's.
            writing: Held for the commit only, not while the model computes.

        Raises:
            ModelNotFoundError: If there is no model any more.
            StoreError: If a commit fails.
        """
        store = index.store
        keys = ledger.newest_unembedded(_CHUNKS_PER_FILL)
        texts = await _texts_by_hash(store, keys)
        vectors = await anyio.to_thread.run_sync(self._cache.get, model, list(texts))
        unknown = {h: t for h, t in texts.items() if h not in vectors and h not in self._hopeless}
        computed = await self._embed(unknown, lambda: ledger.newest_waiting in keys)
        await anyio.to_thread.run_sync(self._cache.put, model, computed)
        vectors |= computed
        async with writing:
            if index.store is not store:
                return
            # Read again: the files may have changed while the model computed.
            rows = await store.unembedded(keys)
            hashes = rows.column("chunk_hash").to_pylist()
            await store.fill(rows, vectors)
            files = rows.column("file_path").to_pylist()
            for key in keys:
                own = [h for h, file in zip(hashes, files, strict=True) if file == key]
                embedded = sum(h in vectors for h in own)
                waiting = sum(h not in vectors and h not in self._hopeless for h in own)
                given_up = ledger.waiting_of(key) - embedded - waiting
                ledger.note_embedded(key, embedded, given_up)

    async def _embed(
        self, texts: dict[str, str], is_newest: Callable[[], bool]
    ) -> dict[str, Vector]:
        """Vectors by hash; without those of texts that the worker cannot embed.

        Stops early when `is_newest` says that a newer change waits.
        """
        vectors: dict[str, Vector] = {}
        # Sorted, because a batch is padded to the length of its longest text.
        by_length = sorted(texts, key=lambda h: len(texts[h]))
        for portion in portions(by_length, _CHUNKS_PER_REQUEST):
            if not is_newest():
                break
            try:
                computed = await self._embedder.embed([texts[h] for h in portion])
                vectors.update(zip(portion, computed, strict=True))
            except ModelNotFoundError:
                raise
            except EmbeddingError as error:
                _log.warning("%s; trying them one by one", error)
                vectors |= await self._embed_singly({h: texts[h] for h in portion})
        self.embedded += len(vectors)
        return vectors

    async def _embed_singly(self, texts: dict[str, str]) -> dict[str, Vector]:
        vectors: dict[str, Vector] = {}
        for key, text in texts.items():
            try:
                vectors[key] = (await self._embedder.embed([text]))[0]
            except ModelNotFoundError:
                raise
            except EmbeddingError:
                self._hopeless.add(key)
        return vectors


async def _texts_by_hash(store: Store, keys: Sequence[str]) -> dict[str, str]:
    """What is to be embedded for `keys`: no more than one fill's worth, even of one huge file."""
    rows = (await store.unembedded(keys)).slice(0, _CHUNKS_PER_FILL)
    columns = (rows.column(name).to_pylist() for name in ("chunk_hash", *_EMBEDDED))
    return {hash_: embedded_text(*parts) for hash_, *parts in zip(*columns, strict=True)}


def _is_storable(key: str) -> bool:
    """Whether the name can be written in UTF-8, as LanceDB's strings are."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _outcome(prepared: _Prepared, removed: int) -> Outcome:
    states = [record.state for record in prepared.records]
    return Outcome(
        read=len(prepared.records) + len(prepared.refreshed),
        indexed=states.count(INDEXED),
        unchanged=len(prepared.refreshed),
        skipped=states.count(SKIPPED),
        failed=states.count(FAILED),
        removed=removed,
        chunks=sum(record.chunk_count for record in prepared.records),
    )
