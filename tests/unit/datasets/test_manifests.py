"""A manifest is read as the contract has it, and names nothing outside of its folder."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelves import manifest, write

from vector_index_mcp.datasets.manifest import read
from vector_index_mcp.datasets.refusal import BadDatasetError

REQUIRED = ["id", "name", "description", "index", "metadata"]


@pytest.fixture
def root(tmp_path):
    """The folder of the datasets; one of them has what its manifest names."""
    root = tmp_path / "project/datasets"
    (root / "sample/index").mkdir(parents=True)
    (root / "sample/index/docs.index").write_bytes(b"x")
    write(root / "sample/metadata.json", [])
    return root


def read_of(root, said):
    path = root / "sample/manifest.json"
    write(path, said)
    return read(path, root, root.parent)


def refused(root, said):
    with pytest.raises(BadDatasetError) as caught:
        read_of(root, said)
    return str(caught.value)


def issues(root, **fields):
    """What zod would say is wrong: the field and the words."""
    found = json.loads(refused(root, manifest(**fields)))
    return [(".".join(issue["path"]), issue["message"]) for issue in found]


def test_what_a_manifest_says_is_read(root):
    found = read_of(root, manifest(defaultTopK=7, model="m", createdAt="whenever"))
    assert (found.id, found.name, found.default_top_k, found.model) == (
        "sample",
        "The sample",
        7,
        "m",
    )
    assert found.index == root / "sample/index/docs.index"
    assert found.metadata == root / "sample/metadata.json"
    assert read_of(root, manifest()).default_top_k == 5


@pytest.mark.parametrize("name", REQUIRED)
def test_what_is_missing_is_named(root, name):
    assert issues(root, **{name: None}) == [(name, "Required")]


@pytest.mark.parametrize("name", REQUIRED)
def test_what_is_empty_or_blank_is_refused(root, name):
    assert (name, "String must contain at least 1 character(s)") in issues(root, **{name: ""})
    assert (name, "String must not be blank") in issues(root, **{name: " \t"})


@given(id_=st.text(min_size=1, max_size=70))
def test_an_id_is_lower_case_letters_digits_and_hyphens(tmp_path_factory, id_):
    root = tmp_path_factory.mktemp("manifests")
    (root / "sample/index").mkdir(parents=True)
    (root / "sample/index/docs.index").write_bytes(b"x")
    write(root / "sample/metadata.json", [])
    is_good = len(id_) <= 64 and set(id_) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    try:
        assert read_of(root, manifest(id_)).id == id_
    except BadDatasetError:
        assert not is_good
    else:
        assert is_good


@pytest.mark.parametrize(("name", "length"), [("id", 65), ("name", 129), ("description", 513)])
def test_what_is_too_long_is_refused(root, name, length):
    assert (name, f"String must contain at most {length - 1} character(s)") in issues(
        root, **{name: "x" * length}
    )


@pytest.mark.parametrize(
    ("top_k", "words"),
    [
        (0, "Number must be greater than or equal to 1"),
        (101, "Number must be less than or equal to 100"),
        (1.5, "Expected integer, received float"),
        ("5", "Expected number, received string"),
    ],
)
def test_a_number_of_results_is_checked(root, top_k, words):
    assert issues(root, defaultTopK=top_k) == [("defaultTopK", words)]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"{ nope", "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"[" * 5_000, "is no JSON"),
        ([], "Expected object, received array"),
        (b" " * 10_241, r"exceeds maximum size (10241 > 10240 bytes)"),
    ],
)
def test_what_is_no_manifest_is_refused(root, said, words):
    assert words in refused(root, said)


def test_relative_paths_begin_at_the_project_and_else_beside_the_manifest(root):
    for name in ("sample/other.index", "shared.index"):
        (root / name).write_bytes(b"x")
    named = manifest(index="datasets/sample/other.index")
    assert read_of(root, named).index == root / "sample/other.index"
    assert read_of(root, manifest(index="../shared.index")).index == root / "shared.index"


def test_an_index_is_found_in_its_folder(root):
    folder = root / "sample/empty"
    folder.mkdir()
    assert "there is no index" in refused(root, manifest(index="empty"))
    for name in ("b.faiss", "z.index", "a.faiss"):
        (folder / name).write_bytes(b"x")
    assert read_of(root, manifest(index="empty")).index == folder / "z.index"


def test_a_table_of_ours_is_its_folder(root):
    write(root / "sample/index/dataset.json", {})
    assert read_of(root, manifest()).index == root / "sample/index"


def test_a_link_in_the_folder_of_an_index_leads_nowhere_else(root):
    (root.parent / "outside.index").write_bytes(b"x")
    (root / "sample/linked").mkdir()
    (root / "sample/linked/docs.index").symlink_to(root.parent / "outside.index")
    assert "lies outside" in refused(root, manifest(index="linked"))


@pytest.mark.parametrize("kind", ["absolute", "climbing", "link"])
def test_nothing_outside_of_the_datasets_is_named(root, kind):
    secret = root.parent.parent / "secret.json"
    write(secret, [])
    named = {"absolute": str(secret), "climbing": "../../../secret.json", "link": "link.json"}[kind]
    (root / "sample/link.json").symlink_to(secret)
    assert "lies outside of the folder of the datasets" in refused(root, manifest(metadata=named))


@pytest.mark.parametrize("named", ["nowhere", "a\0b", "x" * 5_000])
def test_what_is_not_there_is_told(root, named):
    assert refused(root, manifest(metadata=named)).startswith("Metadata file not found: ")
    assert refused(root, manifest(index=named)).startswith("Index not found: ")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_no_number_in_json_is_refused(root, number):
    said = json.dumps(manifest(documentCount=5)).replace("5", number).encode()
    assert "is no number" in refused(root, said)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_no_manifest_and_nobody_waits_for_it(root):
    os.mkfifo(root / "sample/manifest.json")
    with pytest.raises(BadDatasetError, match="the manifest is not a plain file"):
        read(root / "sample/manifest.json", root, root.parent)


@pytest.mark.parametrize("kind", ["index", "metadata"])
def test_a_folder_of_the_project_is_not_meant_where_there_is_one_of_the_dataset(root, kind):
    name = manifest()[kind]
    (root.parent / name).mkdir()
    described = read_of(root, manifest())
    assert described.index == root / "sample/index/docs.index"
    assert described.metadata == root / "sample/metadata.json"


def test_the_folder_of_an_index_that_cannot_be_entered_holds_none(root):
    """Its path is so long that the path of no file in it is valid."""
    deep = root / "sample"
    while (left := 4_090 - len(str(deep))) > 1:
        deep /= "d" * min(left - 1, 200)
    deep.mkdir(parents=True)
    name = str(deep.relative_to(root / "sample"))
    assert "there is no index" in refused(root, manifest(index=name))


def test_the_folder_of_all_datasets_is_no_index(tmp_path):
    root = tmp_path / "index"
    (root / "sample/index").mkdir(parents=True)
    (root / "sample/index/docs.index").write_bytes(b"x")
    write(root / "sample/metadata.json", [])
    assert read_of(root, manifest()).index == root / "sample/index/docs.index"


READ_AS_NOBODY = """
import os, sys
from pathlib import Path
from vector_index_mcp.datasets.manifest import read
from vector_index_mcp.datasets.refusal import BadDatasetError
"".encode("utf-16-le")  # Python imports codecs late, and nobody may read them
if os.geteuid() == 0:  # to whom nothing is forbidden
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
root = Path(sys.argv[1])
try:
    read(root / "sample/manifest.json", root, root.parent)
except BadDatasetError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user numbers")
@pytest.mark.parametrize("mode", [0o000, 0o744], ids=["not to be listed", "not to be entered"])
def test_a_folder_that_nobody_may_enter_is_the_error_of_its_dataset(mode):
    with tempfile.TemporaryDirectory() as above:
        root = Path(above, "datasets")
        (root / "sample/index").mkdir(parents=True)
        (root / "sample/index/docs.index").write_bytes(b"x")
        write(root / "sample/metadata.json", [])
        write(root / "sample/manifest.json", manifest())
        for folder in (Path(above), root, root / "sample"):
            folder.chmod(0o755)
        (root / "sample/index").chmod(mode)
        command = [sys.executable, "-c", READ_AS_NOBODY, str(root)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        finally:
            (root / "sample/index").chmod(0o755)
    assert "sample/index" in said
