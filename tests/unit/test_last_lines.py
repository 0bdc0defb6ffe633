"""The line of a service's log that is shown as the reason of its end."""

import pytest

from vector_index_mcp.background.launching import last_line

INFO = "2026-11-25 09:20:01,123 INFO vector_index_mcp.indexing: 17 files had a head start"
ERROR = "2026-11-25 09:20:02,456 ERROR vector_index_mcp.indexing: no space left"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([], ""),
        ([INFO], ""),
        ([ERROR, INFO], ""),
        ([INFO, ERROR, ""], f" ({ERROR})"),
        ([INFO, "memory allocation of 8 bytes failed"], " (memory allocation of 8 bytes failed)"),
        ([INFO, "a panic", "stack backtrace:", "0: lance"], " (a panic)"),
    ],
)
def test_an_ordinary_line_is_no_reason(tmp_path, lines, shown):
    log = tmp_path / "service.log"
    log.write_text("\n".join(lines), encoding="utf-8")
    assert last_line(log, 0) == shown


def test_what_was_logged_before_is_no_reason(tmp_path):
    log = tmp_path / "service.log"
    log.write_text(ERROR, encoding="utf-8")
    assert last_line(log, log.stat().st_size) == ""
    assert last_line(tmp_path / "none.log", 0) == ""
