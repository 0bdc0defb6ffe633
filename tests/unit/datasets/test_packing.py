"""A packed dataset is the same one elsewhere, and a file that is made to do harm does none."""

import io
import os
import shutil
import tarfile
from random import Random

import anyio
import pyarrow as pa
import pytest
from drawn import examples
from shelves import manifest, put

from vector_index_mcp.datasets import packing
from vector_index_mcp.datasets.refusal import BadDatasetError

MANIFEST = str(manifest()).replace("'", '"').encode()


@pytest.fixture
def folder(tmp_path):
    """A dataset."""
    anyio.run(put, tmp_path / "mine")
    return tmp_path / "mine/sample"


@pytest.fixture
def root(tmp_path):
    """Where somebody else has datasets."""
    (tmp_path / "theirs").mkdir()
    return tmp_path / "theirs"


def test_an_empty_folder_is_free(folder, root, tmp_path):
    packing.pack(folder, tmp_path / "sent.tar.zst")
    (root / "sample").mkdir()
    assert packing.add(tmp_path / "sent.tar.zst", root) == root / "sample"


def test_only_its_own_unfinished_folders_are_removed(folder, root, tmp_path):
    """Making a dataset takes hours, and its folder is called `.ID.PID.part` meanwhile."""
    packing.pack(folder, tmp_path / "sent.tar.zst")
    made, left = root / ".big.4711.part", root / ".4712.part"
    for each in (made, left):
        each.mkdir()
        os.utime(each, (0, 0))
    packing.add(tmp_path / "sent.tar.zst", root)
    assert made.exists()
    assert not left.exists()


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def sent(tmp_path, *members, pax=None):
    """A packed file with these members: names with contents, or headers as they are."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.pax_headers = pax or {}
            archive.addfile(info, io.BytesIO(content))
    return compressed(tmp_path, data.getvalue())


def compressed(tmp_path, data):
    path = tmp_path / "sent.tar.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(data)
    return path


def refused(file, root):
    """Why it is refused; nothing is left of it."""
    around = sorted(root.parent.rglob("*"))
    with pytest.raises((BadDatasetError, OSError)) as caught:
        packing.add(file, root)
    assert sorted(root.parent.rglob("*")) == around
    return str(caught.value)


def test_what_is_packed_is_unpacked_to_the_byte(folder, root, tmp_path):
    assert packing.pack(folder, tmp_path / "a.tar.zst") == 3
    added = packing.add(tmp_path / "a.tar.zst", root)
    assert added == root / "sample"
    assert files_of(added) == files_of(folder)
    assert [path.name for path in root.iterdir()] == ["sample"]


def test_the_same_dataset_makes_the_same_bytes(folder, root, tmp_path):
    packing.pack(folder, tmp_path / "a.tar.zst")
    added = packing.add(tmp_path / "a.tar.zst", root)
    (added / "manifest.json").touch()
    packing.pack(added, tmp_path / "b.tar.zst")
    assert (tmp_path / "a.tar.zst").read_bytes() == (tmp_path / "b.tar.zst").read_bytes()


def test_what_is_hidden_and_links_are_not_packed(folder, root, tmp_path):
    (folder / ".secret").write_text("x")
    (folder / "link").symlink_to("/etc/passwd")
    packing.pack(folder, tmp_path / "a.tar.zst")
    added = packing.add(tmp_path / "a.tar.zst", root)
    assert set(files_of(added)) == {"manifest.json", "metadata.json", "index/docs.index"}


def test_a_dataset_that_is_there_stays_as_it_is(folder, root, tmp_path):
    packing.pack(folder, tmp_path / "a.tar.zst")
    packing.add(tmp_path / "a.tar.zst", root)
    why = refused(tmp_path / "a.tar.zst", root)
    assert f"datasets delete sample --output {root}" in why


def test_what_was_packed_without_checksums_is_unpacked(folder, tmp_path, root):
    file = sent(tmp_path, *files_of(folder).items())
    assert files_of(packing.add(file, root)) == files_of(folder)


def unpacked(file):
    """The headers and contents of a packed file."""
    with (
        pa.CompressedInputStream(str(file), "zstd") as stream,
        tarfile.open(fileobj=io.BytesIO(stream.read())) as archive,
    ):
        return [(each, archive.extractfile(each).read()) for each in archive]


def test_a_file_that_is_not_the_one_packed_is_damage(folder, root, tmp_path):
    packing.pack(folder, tmp_path / "a.tar.zst")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in unpacked(tmp_path / "a.tar.zst"):
            changed = content.replace(b"e", b"a", 1) if member.name == "metadata.json" else content
            archive.addfile(member, io.BytesIO(changed))
    why = refused(compressed(tmp_path, data.getvalue()), root)
    assert "metadata.json does not have the checksum" in why


def test_checksums_are_no_files_of_the_dataset(folder, root, tmp_path):
    packing.pack(folder, tmp_path / "a.tar.zst")
    assert {member.name for member, _ in unpacked(tmp_path / "a.tar.zst")} == set(files_of(folder))
    (folder / "SHA256SUMS").write_text("own")
    packing.pack(folder, tmp_path / "b.tar.zst")
    assert files_of(packing.add(tmp_path / "b.tar.zst", root)) == files_of(folder)


def test_what_is_written_while_it_is_packed_is_refused(folder, tmp_path, monkeypatch):
    large = folder / "large.bin"  # more than is read at once
    large.write_bytes(bytes(1_000_000))
    digest = packing.hashlib.file_digest

    def overtaken(file, name):
        found = digest(file, name)
        large.write_bytes(Random(found.hexdigest()).randbytes(1_000_000))
        return found

    monkeypatch.setattr(packing.hashlib, "file_digest", overtaken)
    with pytest.raises(BadDatasetError, match="is being changed"):
        packing.pack(folder, tmp_path / "a.tar.zst")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "mine"]


def link(kind, target):
    info = tarfile.TarInfo("index")
    info.type, info.linkname = kind, target
    return info


def special(kind):
    info = tarfile.TarInfo("index")
    info.type = kind
    return info


@pytest.mark.parametrize(
    "member",
    [
        ("../out", b"x"),
        ("/tmp/out", b"x"),
        ("a/../../out", b"x"),
        ("a\\..\\out", b"x"),
        ("C:/out", b"x"),
        (".git/config", b"x"),
        ("a//b", b"x"),
        ("a/./b", b"x"),
        ("nul. ", b"x"),
        ("x" * 401, b"x"),
        ("a\u202eb", b"x"),
        link(tarfile.SYMTYPE, "/etc"),
        link(tarfile.LNKTYPE, "manifest.json"),
        special(tarfile.CHRTYPE),
        special(tarfile.FIFOTYPE),
        special(tarfile.GNUTYPE_SPARSE),
    ],
    ids=lambda member: member[0][:20] if isinstance(member, tuple) else f"type-{member.type!r}",
)
def test_nothing_comes_out_but_plain_files_in_their_folder(tmp_path, root, member):
    file = sent(tmp_path, ("manifest.json", MANIFEST), member)
    assert "nothing that a dataset may contain" in refused(file, root)


def test_a_name_that_is_there_twice_is_refused(tmp_path, root):
    refused(sent(tmp_path, ("manifest.json", MANIFEST), ("manifest.json", b"{}")), root)


@pytest.mark.parametrize("data", [b"", b"<!doctype html><title>404</title>", None])
def test_a_download_that_is_none_or_half_of_one_is_called_damaged(folder, root, tmp_path, data):
    file = tmp_path / "a.tar.zst"
    packing.pack(folder, file)
    file.write_bytes(file.read_bytes()[:-20] if data is None else data)
    assert "is not a packed dataset, or is damaged" in refused(file, root)


def test_what_has_no_manifest_is_no_dataset(tmp_path, root):
    assert "manifest" in refused(sent(tmp_path, ("a.txt", b"x")), root)


def test_a_header_that_names_a_size_is_not_believed(tmp_path, root):
    file = sent(tmp_path, ("manifest.json", MANIFEST), pax={"size": str(10**15)})
    refused(file, root)
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 10**9
    assert "is too large" in refused(compressed(tmp_path, header.tobuf()), root)


@pytest.mark.parametrize(
    "headers",
    [
        {"GNU.sparse.size": "1000000000000", "GNU.sparse.map": "0,512,99999999999,1"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "1" + "0" * 12},
        {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,512,99999999,1"},
    ],
)
def test_holes_in_a_file_are_not_filled(tmp_path, root, headers):
    content = b"2\n0\n512\n99999999999\n1\n".ljust(512, b"\0") + b"1" * 512
    with pytest.raises(BadDatasetError):
        packing.add(sent(tmp_path, ("manifest.json", content), pax=headers), root)
    assert [*root.iterdir()] == []


def test_what_becomes_far_larger_is_refused_while_it_is_unpacked(tmp_path, root, monkeypatch):
    monkeypatch.setattr(packing, "_USUAL_BYTES", 1_000_000)
    file = sent(tmp_path, ("manifest.json", MANIFEST), ("zeros", bytes(20_000_000)))
    assert file.stat().st_size < 10_000
    assert "more than 1,000,000 bytes" in refused(file, root)


@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "unpacked"])
def test_whatever_is_changed_in_a_packed_file_it_is_refused_or_makes_no_difference(
    folder, root, tmp_path, is_packed
):
    packing.pack(folder, tmp_path / "a.tar.zst")
    packed = files_of(folder)
    whole, chance = (tmp_path / "a.tar.zst").read_bytes(), Random(0)
    if not is_packed:
        whole = pa.CompressedInputStream(pa.BufferReader(whole), "zstd").read()
    changed, count, tries = tmp_path / "b.tar.zst", 0, examples(250)
    for _ in range(tries):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 8])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        data = bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
        changed = changed if is_packed else compressed(tmp_path, data)
        if is_packed:
            changed.write_bytes(data)
        try:
            added = packing.add(changed, root)
        except (BadDatasetError, OSError):
            assert not list(root.iterdir())
            continue
        count += 1
        assert added.parent == root
        assert all(path.is_file() or path.is_dir() for path in added.rglob("*"))
        assert files_of(added) == packed
        shutil.rmtree(added)
    assert list(tmp_path.parent.glob("*.part")) == []
    assert count < tries
    assert is_packed or count > 0, "the padding of the archive makes no difference"
