"""A path to its text, or to the reason why it has none: real files in a temporary folder."""

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.files import beneath
from vector_index_mcp.files import read as read_module
from vector_index_mcp.files.folder import Folder, Reading
from vector_index_mcp.files.read import (
    BINARY,
    MINIFIED,
    NOT_A_FILE,
    SECRET,
    TOO_LARGE,
    Skipped,
    Text,
    Vanished,
    decode,
    is_minified,
    read,
)
from vector_index_mcp.files.scan import UNKNOWN, stamp_of

LIMIT = 100_000
KEY = "-----BEGIN {}PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
READ_AS_NOBODY = """
import os, pathlib
from vector_index_mcp.files.folder import Folder, Reading
from vector_index_mcp.files.read import read
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(read(Folder(pathlib.Path(), reading=Reading(100)), "a.py").reason)
"""


def read_bytes(folder: Path, data: bytes, name: str = "a.py") -> Text | Skipped | Vanished:
    (folder / name).write_bytes(data)
    return read(Folder(folder, reading=Reading(LIMIT)), name)


def reason(outcome: Text | Skipped | Vanished) -> str | None:
    return outcome.reason if isinstance(outcome, Skipped) else None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", "", id="empty"),
        pytest.param("é\r\n😀".encode(), "é\r\n😀", id="UTF-8"),
        pytest.param(b"\xef\xbb\xbfa\xc3\xa9", "aé", id="UTF-8 with a mark"),
        pytest.param(b"\xff\xfe" + "aé😀".encode("utf-16-le"), "aé😀", id="UTF-16 LE with a mark"),
        pytest.param(b"\xfe\xff" + "aé😀".encode("utf-16-be"), "aé😀", id="UTF-16 BE with a mark"),
        pytest.param(b"\xff\xfe\0\0" + "aé".encode("utf-32-le"), "aé", id="UTF-32 LE with a mark"),
        pytest.param(b"\0\0\xfe\xff" + "aé".encode("utf-32-be"), "aé", id="UTF-32 BE with a mark"),
        pytest.param("int é = 1;\n".encode("utf-16-le"), "int é = 1;\n", id="UTF-16 LE"),
        pytest.param("int é = 1;\n".encode("utf-16-be"), "int é = 1;\n", id="UTF-16 BE"),
        pytest.param("naïve café\n".encode("latin-1"), "naïve café\n", id="Latin-1"),
        pytest.param(b"\xef\xbb\xbf\xff", None, id="a mark that lies"),
        pytest.param(b"\xff\xfea", None, id="UTF-16 with half a character"),
        pytest.param(b"\x7fELF\x02\x01\x01\0\0\0\x3e\0\x01\0", None, id="program"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None, id="picture"),
        pytest.param(bytes(range(1, 256)), None, id="every byte"),
        pytest.param(b"\0" * 100, None, id="zeros"),
    ],
)
def test_bytes_are_decoded_or_are_no_text(
    tmp_path: Path, data: bytes, expected: str | None
) -> None:
    assert decode(data) == expected
    outcome = read_bytes(tmp_path, data)
    content_hash = hashlib.sha256(data).hexdigest()
    stamp = stamp_of((tmp_path / "a.py").lstat())
    if expected is None:
        assert outcome == Skipped(BINARY, stamp, content_hash)
    else:
        assert outcome == Text(expected, content_hash, stamp)


@given(st.text().filter(lambda text: "\0" not in text and not text.startswith("\ufeff")))
def test_any_text_in_utf8_decodes_to_itself(text: str) -> None:
    assert decode(text.encode()) == text


@given(st.text(), st.sampled_from(read_module._MARKS))
def test_any_text_behind_its_mark_decodes_to_itself(text: str, mark: tuple[bytes, str]) -> None:
    data = mark[0] + text.encode(mark[1])
    if not data.startswith(b"\xff\xfe\0\0") or mark[1] == "utf-32-le":
        assert decode(data) == text


@given(st.binary())
def test_no_bytes_make_decoding_fail(data: bytes) -> None:
    assert isinstance(decode(data), str | None)


@pytest.mark.parametrize(("size", "expected"), [(LIMIT, None), (LIMIT + 1, TOO_LARGE)])
def test_a_file_larger_than_the_limit_is_skipped(
    tmp_path: Path, size: int, expected: str | None
) -> None:
    assert reason(read_bytes(tmp_path, b"x = 1\n" * (size // 6) + b"#" * (size % 6))) == expected


def test_a_line_of_a_terabyte_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.py").open("wb") as file:
        try:
            file.truncate(2**40)
        except OSError:
            pytest.skip("this file system has no sparse files")
    assert reason(read(Folder(tmp_path, reading=Reading(LIMIT)), "a.py")) == TOO_LARGE


LONG = "a=1;" * 2_000
LINES = "a = 1\n" * 2_000


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.js", LONG, True),
        ("a.js", LONG[:4_999], False),
        ("a.js", LINES, False),
        ("a.js", LINES + LONG[:6_000], False),
        ("a.js", LINES[:6_000] + LONG, True),
        ("a.md", LONG, False),
        ("a.txt", LONG, False),
        ("a.ipynb", LONG, False),
        ("a.unheard", LONG, True),
    ],
)
def test_code_that_stands_in_long_lines_is_skipped_and_prose_is_not(
    tmp_path: Path, name: str, text: str, expected: bool
) -> None:
    outcome = read_bytes(tmp_path, text.encode(), name)
    assert reason(outcome) == (MINIFIED if expected else None)


def test_lines_are_long_from_a_thousand_characters_on() -> None:
    assert not is_minified(("x" * 1_000 + "\n") * 10, "python")
    assert is_minified(("x" * 1_001 + "\n") * 10, "python")


def test_a_file_of_a_secret_name_is_not_read(tmp_path: Path) -> None:
    outcome = read_bytes(tmp_path, b"TOKEN=1", ".env")
    assert outcome == Skipped(SECRET, stamp_of((tmp_path / ".env").lstat()), content_hash="")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KEY.format(""), SECRET),
        (KEY.format("RSA "), SECRET),
        (KEY.format("OPENSSH "), SECRET),
        ("\n  " + KEY.format("EC "), SECRET),
        ("\ufeff" + KEY.format(""), SECRET),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQdGB\n", SECRET),
        ("-----BEGIN CERTIFICATE-----\nMIIEvQ\n", None),
        ("-----BEGIN PUBLIC KEY-----\nMIIEvQ\n", None),
        ("MARK = '-----BEGIN PRIVATE KEY-----'\n", None),
    ],
)
def test_a_private_key_is_known_by_its_content(
    tmp_path: Path, text: str, expected: str | None
) -> None:
    assert reason(read_bytes(tmp_path, text.encode(), "notes.txt")) == expected


@pytest.mark.parametrize("key", ["a.py", "x/a.py", "file/a.py", ".env", "x/.env", "file/.env"])
def test_what_is_not_there_has_vanished(tmp_path: Path, key: str) -> None:
    (tmp_path / "file").touch()
    assert read(Folder(tmp_path, reading=Reading(LIMIT)), key) == Vanished()


@pytest.mark.skipif(sys.platform == "win32", reason="the system opens no folder")
def test_a_folder_in_the_place_of_a_file_is_skipped_and_closed(tmp_path: Path) -> None:
    (tmp_path / "a.py").mkdir()
    before = psutil.Process().num_fds()
    assert reason(read(Folder(tmp_path, reading=Reading(LIMIT)), "a.py")) == NOT_A_FILE
    assert psutil.Process().num_fds() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.py")
    assert reason(read(Folder(tmp_path, reading=Reading(LIMIT)), "a.py")) == NOT_A_FILE


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="the system cannot refuse links")
@pytest.mark.parametrize("target", ["b.py", "a.py", "nowhere"])
def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "b.py").write_text("secret = 1", encoding="utf-8")
    (tmp_path / "a.py").symlink_to(target)
    assert isinstance(read(Folder(tmp_path, reading=Reading(LIMIT)), "a.py"), Skipped)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user numbers")
def test_a_file_without_permission_is_skipped_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1", encoding="utf-8")
    file.chmod(0)
    if os.geteuid() != 0:
        outcome = reason(read(Folder(tmp_path, reading=Reading(LIMIT)), "a.py"))
    else:  # to root everything is readable
        outcome = subprocess.run(
            [sys.executable, "-c", READ_AS_NOBODY],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    assert outcome == "unreadable (Permission denied)"


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENODEV])
def test_a_file_that_a_drive_does_not_give_is_read_again_at_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    (tmp_path / "a.py").write_text("x = 1", encoding="utf-8")

    def fails(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(beneath, "open_file", fails)

    found = read(Folder(tmp_path, reading=Reading(LIMIT)), "a.py")

    assert found == Skipped(f"unreadable ({os.strerror(code)})", UNKNOWN)


def test_a_name_the_system_cannot_have_does_not_raise(tmp_path: Path) -> None:
    assert isinstance(read(Folder(tmp_path, reading=Reading(LIMIT)), "a" * 300 + ".py"), Skipped)
