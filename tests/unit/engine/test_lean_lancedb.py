"""An index does without what it never uses, and nobody else misses it."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import vector_index_mcp

pytestmark = pytest.mark.slow  # each imports LanceDB in a process of its own

LEAN = Path(vector_index_mcp.__file__).parent / "engine/store/lean_lancedb.py"
CLIENT = "lance_namespace_urllib3_client"
LEFT_OUT = ["pyarrow._s3fs", "pyarrow._dataset", f"{CLIENT}.api_client"]
BEGINNING = f"""
import importlib.util, sys

spec = importlib.util.spec_from_file_location("lean", {str(LEAN)!r})
lean = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lean)

def there():
    return [name for name in {LEFT_OUT} if sys.modules.get(name)]

def works():
    import asyncio, tempfile
    import lancedb, pyarrow

    async def find():
        with tempfile.TemporaryDirectory() as folder:
            table = await (await lancedb.connect_async(folder)).create_table(
                "t", pyarrow.table({{"n": [1, 2, 3]}})
            )
            await table.add(pyarrow.table({{"n": [4]}}))
            return len(await table.query().where("n > 2").to_list())

    return asyncio.run(find()) == 2
"""


def ran(code: str) -> list[str]:
    """What `code` prints, in a process of its own."""
    command = [sys.executable, "-c", BEGINNING + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("load", ["lean.load()", "import vector_index_mcp.engine.store"])
def test_a_local_index_is_used_without_it(load: str) -> None:
    assert ran(f"{load}; assert works(); print(*there())") == []


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("LANCE_IO_THREADS", "0", None),
        ("LANCE_IO_THREADS", "2", "2"),
        ("LANCE_CPU_THREADS", "many", None),
        ("LANCE_IO_CORE_RESERVATION", "-1", None),
    ],
)
def test_a_number_with_which_lance_would_wait_or_panic_counts_as_not_set(name, value, left) -> None:
    code = f"import os; os.environ[{name!r}] = {value!r}; lean.load(); assert works()"
    assert ran(f"{code}; print(os.environ.get({name!r}))") == [str(left)]


@pytest.mark.parametrize(
    "code",
    [
        "import pyarrow.dataset as ds",
        "from pyarrow import dataset as ds",
        "import pyarrow; ds = pyarrow.dataset",
    ],
)
def test_data_sets_are_whole_for_whoever_imports_them(code: str) -> None:
    code += """
import pyarrow, tempfile
with tempfile.TemporaryDirectory() as folder:
    ds.write_dataset(pyarrow.table({"n": [1, 2]}), folder, format="ipc")
    assert ds.dataset(folder, format="ipc").count_rows() == 2
found = ds.dataset(pyarrow.table({"n": [1]}))
assert isinstance(found, ds.Dataset) and isinstance(found, pyarrow.dataset.Dataset)
assert not isinstance(found, ds.Scanner)
assert ds.Scanner.from_dataset(found).count_rows() == 1
"""
    assert ran(f"lean.load()\n{code}") == []


def test_cloud_file_systems_are_whole_for_whoever_imports_them() -> None:
    assert ran("lean.load(); import pyarrow.fs; print(pyarrow.fs.S3FileSystem.__name__)") == [
        "S3FileSystem"
    ]


def test_the_data_types_of_the_rest_client_are_imported_when_one_is_made() -> None:
    code = f"""
lean.load()
from {CLIENT}.models import CreateTableRequest
assert CreateTableRequest(id=["a"]).to_dict()["id"] == ["a"]
"""
    assert ran(code) == []


@pytest.mark.long
@pytest.mark.parametrize("broken", ["_Datasets.__getattribute__", "_Later.__new__"])
def test_a_lancedb_that_needs_more_than_is_known_gets_everything(broken: str) -> None:
    code = f"""
def lacks(self, name, *_):
    if name[:2] != "__":
        raise AttributeError(name)
    return object.__getattribute__(self, name)

lean.{broken} = lacks
lean.load()
assert works()
print(*there())
"""
    assert ran(code) == LEFT_OUT


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no TMPDIR")
@pytest.mark.parametrize(("named", "taken"), [(None, True), ("/gone", True), ("kept", False)])
def test_rows_are_sorted_in_the_folder_that_python_takes(monkeypatch, named, taken):
    """Lance takes /tmp, which may be read-only, whatever Python finds instead."""
    spec = importlib.util.spec_from_file_location("lean", LEAN)
    lean = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lean)
    monkeypatch.setenv("TMPDIR", named or "")  # so that it is put back, whatever is set below
    if not named:
        monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(tempfile, "tempdir", "/other" if taken else named)
    lean._find_temporary_folder()
    assert os.environ["TMPDIR"] == ("/other" if taken else named)
