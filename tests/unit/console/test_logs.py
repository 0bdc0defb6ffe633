"""The log of a service, before and after its rotation."""

import subprocess
import sys

import pytest

from vector_index_mcp.console import services

# A process whose standard error is its log, as a service's is; it logs a line, fills the log up,
# and then writes its last words, as a crash does.
SERVICE = """
import logging, os, sys
from pathlib import Path
from vector_index_mcp.console import log
log._LOG_BYTES = 1_000
log.to_file(Path(sys.argv[1]), "INFO")
for number in range(30):
    logging.info("line %d %s", number, "x" * 40)
os.write(2, b"Fatal Python error\\n")
"""


@pytest.mark.slow
def test_the_last_words_of_a_crash_stand_in_the_log_after_a_rotation(tmp_path):
    path = tmp_path / "service.log"
    with path.open("a") as stderr:
        subprocess.run([sys.executable, "-c", SERVICE, path], stderr=stderr, check=True)
    assert (tmp_path / "service.log.1").exists()
    assert path.read_text().endswith("Fatal Python error\n")
    assert "line 29" in path.read_text()


@pytest.mark.slow
def test_another_standard_error_stays_where_it_is(tmp_path):
    path = tmp_path / "service.log"
    ran = subprocess.run([sys.executable, "-c", SERVICE, path], capture_output=True, check=True)
    assert ran.stderr == b"Fatal Python error\n"


def test_who_follows_a_log_reads_on_after_a_rotation(tmp_path):
    path = tmp_path / "service.log"
    path.write_text("one\n")
    texts = services._texts(path)
    assert [next(texts), next(texts)] == ["one\n", ""]
    with path.open("a") as former:
        path.rename(tmp_path / "service.log.1")
        assert next(texts) == ""  # there is none just now
        former.write("two\n")
    path.write_text("three\n")
    assert [next(texts), next(texts), next(texts)] == ["two\n", "three\n", ""]
