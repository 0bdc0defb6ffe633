"""What a service learns from the host at the end of a shared worker."""

import pytest

from vector_index_mcp.sharing import frames
from vector_index_mcp.sharing.joining import _status_in

ENDED = frames.line({"event": "ended", "status": -11})


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (ENDED, -11),
        (b'{"event": "resting"}\n' + ENDED, -11),
        (b'{"id": 7, "rows": 1, "dimension": 4}\n' + b"\n{\xff\x00" * 4 + ENDED, -11),
        (b'{"id": 7, "rows": 1, "dimension": 4}\n' + b"\n{\xff\x00" * 4, -9),
        (b"", -9),
        (ENDED[:-4], -9),
        (b'{"event": "ended", "status": "high"}\n', -9),
    ],
)
def test_the_exit_status_of_a_worker_is_that_of_the_last_frame(last, status):
    assert _status_in(last) == status
