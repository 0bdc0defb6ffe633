"""Has a foreign index converted by a child process, and ends one that takes too long."""

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.processes import children

if TYPE_CHECKING:
    import anyio.abc

_MODULE = "vector_index_mcp.datasets.converting"
_SECONDS = 900.0  # a million texts take minutes
_LONGEST_ANSWER_BYTES = 1_000_000


async def convert(manifest: Manifest, folder: Path) -> None:
    """Make a table of ours, in `folder`, of the dataset that `manifest` describes.

    Raises:
        BadDatasetError: If it cannot be made.
    """
    arguments = (str(manifest.index), str(manifest.metadata), str(folder))
    try:
        await anyio.Path(folder.parent).mkdir(parents=True, exist_ok=True)
        process = await children.start(_MODULE, *arguments, environment={})
    except OSError as error:
        raise BadDatasetError(f"it cannot be converted here ({error})") from error
    async with process:
        try:
            with anyio.fail_after(_SECONDS):
                answer = await _answer_of(process)
        except TimeoutError:
            raise BadDatasetError(f"it could not be read within {_SECONDS:.0f} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if answer:
        raise BadDatasetError(answer)


async def _answer_of(process: "anyio.abc.Process") -> str:
    """What the child says is wrong; empty if nothing is."""
    assert process.stdout is not None
    lines = BufferedByteReceiveStream(process.stdout)
    try:
        line = await lines.receive_until(b"\n", _LONGEST_ANSWER_BYTES)
    except (anyio.IncompleteRead, anyio.EndOfStream, anyio.DelimiterNotFound):
        status = await process.wait()
        return f"the process that read it ended unexpectedly (status {status})"
    return str(json.loads(line).get("error", ""))
