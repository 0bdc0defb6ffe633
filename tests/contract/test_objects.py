"""A folder and a bucket do the same."""

import hashlib
import socket

import anyio
import pytest
from between import proxy_before
from buckets import variables

from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.objects.faults import reason_in
from vector_index_mcp.objects.opening import opened
from vector_index_mcp.objects.store import at_once, is_sound

pytestmark = pytest.mark.anyio
LARGE = 10_000_000


@pytest.mark.slow
async def test_what_is_written_is_read(objects):
    assert await objects.get("a/b", LARGE) is None
    await objects.put("a/b", b"one")
    await objects.put("a/b", b"two")
    assert (await objects.get("a/b", LARGE)).data == b"two"
    assert await objects.part("a/b", 1, 2) == b"wo"
    assert await objects.part("a/b", 1, 20) == b"wo"
    assert await objects.part("a/b", 20, 2) == b""
    assert await objects.part("a/c", 0, 2) is None


@pytest.mark.slow
async def test_a_listing_has_what_is_there_below_a_prefix(objects):
    assert await objects.entries() == []
    for name in ("a/1", "a/2", "b/1"):
        await objects.put(name, b"x" * 5)
    assert [(entry.name, entry.size) for entry in await objects.entries("a/")] == [
        ("a/1", 5),
        ("a/2", 5),
    ]
    await objects.delete(["a/1", "b/1", "not/there"])
    assert [entry.name for entry in await objects.entries()] == ["a/2"]
    await objects.delete([])


@pytest.mark.slow
async def test_one_of_many_writes_what_is_new(objects):
    won = []

    async def write(n):
        if await objects.put_new("lease", b"%d" % n) is not None:
            won.append(n)

    async with anyio.create_task_group() as tasks:
        for n in range(8):
            tasks.start_soon(write, n)
    assert len(won) == 1
    assert (await objects.get("lease", LARGE)).data == b"%d" % won[0]


@pytest.mark.slow
async def test_what_was_changed_meanwhile_is_not_replaced(objects):
    first = await objects.put_new("lease", b"1")
    second = await objects.replace("lease", b"2", first)
    assert second not in {None, first}
    assert await objects.replace("lease", b"3", first) is None
    assert await objects.replace("none", b"3", first) is None
    content = await objects.get("lease", LARGE)
    assert (content.data, content.tag) == (b"2", second)
    assert await objects.replace("lease", b"4", content.tag) is not None


@pytest.mark.slow
async def test_files_go_there_and_back(objects, tmp_path):
    data = bytes(range(256)) * 50_000  # 12.8 MB: more than one part of an upload
    (tmp_path / "up").write_bytes(data)
    await objects.upload(tmp_path / "up", "large")
    digest = await objects.download("large", tmp_path / "down", len(data))
    assert digest == hashlib.sha256(data).hexdigest()
    assert (tmp_path / "down").read_bytes() == data
    assert await objects.download("none", tmp_path / "none", len(data)) is None
    assert not (tmp_path / "none").exists()


async def test_what_is_larger_than_expected_is_not_read(objects, tmp_path):
    await objects.put("large", b"x" * 1001)
    with pytest.raises(StorageError, match="more than 1000 bytes"):
        await objects.get("large", 1000)
    with pytest.raises(StorageError, match="more than 1000 bytes"):
        await objects.download("large", tmp_path / "down", 1000)
    assert not (tmp_path / "down").exists()


async def test_a_file_that_cannot_be_written_here_is_an_error_and_leaves_nothing(
    objects, tmp_path, small_files
):
    await objects.put("large", b"x" * 5_000)
    with small_files(1_000), pytest.raises(StorageError, match="down on this machine: .*large"):
        await objects.download("large", tmp_path / "down", 5_000)
    assert not (tmp_path / "down").exists()
    with pytest.raises(StorageError, match="on this machine"):
        await objects.download("large", tmp_path / "no" / "folder", 5_000)
    (tmp_path / "there").write_bytes(b"1")
    with pytest.raises(StorageError, match="on this machine"):
        await objects.download("large", tmp_path / "there", 5_000)
    assert (tmp_path / "there").read_bytes() == b"1"


async def test_a_file_that_cannot_be_read_here_is_an_error(objects, tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(StorageError):
            await objects.upload(path, "large")
    assert await objects.get("large", LARGE) is None


async def test_the_first_of_many_jobs_that_fails_says_why_itself():
    ended = []

    async def fail():
        raise OSError(28, "no space")

    async def last():
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(1)

    with pytest.raises(OSError, match="no space"):
        await at_once([last, fail, last])
    assert ended == [1, 1]


async def test_a_drive_that_fails_is_not_an_empty_store(drive):
    objects = opened(str(drive.folder))
    await objects.put("a/b", b"1")
    assert [entry.name for entry in await objects.entries("a/")] == ["a/b"]
    drive.fail()
    for prefix in ("a/", ""):
        with pytest.raises(StorageError):
            await objects.entries(prefix)


async def test_what_is_no_folder_is_not_an_empty_one(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    with pytest.raises(StorageError):
        await opened(str(tmp_path)).entries("a/")
    with pytest.raises(StorageError):
        await opened(str(tmp_path / "a")).entries()


@pytest.mark.parametrize(
    "name", ["../a", "a/../../b", "/a", "a//b", "a\n", "", "a/", "c:a", "a\\b"]
)
async def test_no_name_leads_out_of_the_folder(tmp_path, name):
    assert not is_sound(name)
    objects = opened(str(tmp_path / "store"))
    with pytest.raises(StorageError):
        await objects.put(name, b"")
    with pytest.raises(StorageError):
        await objects.get(name, LARGE)


@pytest.fixture
def settings(monkeypatch, tmp_path):
    """A function that sets the variables of a server, and no others."""

    def set_them(port, **changed):
        for name, value in {**variables(port), **changed}.items():
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)

    return set_them


@pytest.mark.slow
async def test_a_store_that_knows_its_tags_without_quotes_only_replaces_too(server, settings):
    if not server.pid:
        pytest.skip("a real server checks the signature, which the proxy breaks")
    with proxy_before(server.port) as proxy:
        proxy.tags_are_bare = True
        uri = server.new_bucket()
        settings(proxy.port)
        objects = opened(uri)
        first = await objects.put_new("lease", b"1")
        second = await objects.replace("lease", b"2", first)
        third = await objects.replace("lease", b"3", second)
        assert await objects.replace("lease", b"4", first) is None
        assert await objects.replace("lease", b"4", second) is None
        assert await objects.replace("none", b"4", third) is None
        content = await objects.get("lease", LARGE)
        assert (content.data, content.tag) == (b"3", third)
        fresh = opened(uri)
        assert await fresh.replace("lease", b"4", second) is None
        assert await fresh.replace("lease", b"4", third)


async def problem_of(uri):
    with pytest.raises(StorageError) as raised:
        await opened(uri).get("x", LARGE)
    secret = variables(1)["AWS_SECRET_ACCESS_KEY"]
    assert secret not in str(raised.value)
    return raised.value.problem


@pytest.mark.slow
async def test_what_is_wrong_with_a_bucket_is_said(server, settings):
    settings(server.port)
    assert await problem_of("s3://no-such-bucket/x") is Problem.STORE_MISSING
    settings(server.port, AWS_ALLOW_HTTP="")
    assert await problem_of("s3://no-such-bucket/x") is Problem.STORE_INSECURE
    settings(1)
    assert await problem_of("s3://bucket/x") is Problem.STORE_SILENT


@pytest.mark.slow
async def test_a_server_that_never_answers_ends_in_an_error(settings, monkeypatch):
    monkeypatch.setattr("vector_index_mcp.objects.bucket._SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings(silent.getsockname()[1])
        assert await problem_of("s3://bucket/x") is Problem.STORE_SILENT


def test_another_kind_of_store_is_refused():
    with pytest.raises(StorageError, match="ftp:// is not a known kind of store"):
        opened("ftp://host/x")
    with pytest.raises(StorageError):
        opened("s3://")


# As object_store words them, shortened.
ERRORS = {
    "403 Forbidden: <Code>SignatureDoesNotMatch</Code>": Problem.STORE_REFUSES,
    "403 Forbidden: <Code>InvalidAccessKeyId</Code>": Problem.STORE_REFUSES,
    "403 Forbidden: <Code>ExpiredToken</Code>": Problem.STORE_REFUSES,
    "403 Forbidden: <Code>AccessDenied</Code>": Problem.STORE_FORBIDS,
    "PUT http://169.254.169.254/latest/api/token": Problem.STORE_REFUSES,
    "Failed to get AWS credentials: CredentialsNotLoaded": Problem.STORE_REFUSES,
    "MicrosoftAzure error: Account must be specified": Problem.STORE_REFUSES,
    "404 Not Found: <Code>NoSuchBucket</Code>": Problem.STORE_MISSING,
    "301 Moved: <Code>PermanentRedirect</Code>": Problem.STORE_REGION,
    "HttpError { kind: Connect, source: x }": Problem.STORE_SILENT,
    "503 Service Unavailable: <Code>SlowDown</Code>": Problem.STORE_SILENT,
    "builder error BadScheme": Problem.STORE_INSECURE,
    "403 Forbidden: <Code>QuotaExceeded</Code>": Problem.STORE_FULL,
    "507 Insufficient Storage": Problem.STORE_FULL,
    "404 Not Found: <Code>NoSuchKey</Code>": None,
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_of_the_library_are_understood(text):
    reason = reason_in(f"Generic S3 error: {'x' * 500} {text}")
    assert (reason and reason.problem) is ERRORS[text]
