"""What is published: the wheel as it is built, installed and used far from this repository."""

import shutil
import subprocess
import sys
import tarfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from processes import environment
from writing import write

import vector_index_mcp

ROOT = Path(vector_index_mcp.__file__).parent.parent
SOURCES = (
    *("vector_index_mcp", "tests", "pyproject.toml"),
    *("README.md", "LICENSE", "CHANGELOG.md", ".env.example"),
)
ADDED = (".gitignore", "PKG-INFO")
OTHERS = ("Makefile", "benchmarks", "docs")
SECONDS = 120


def run(*command: str | Path, **options: object) -> str:
    ran = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=SECONDS, **options
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel that is built from it, not from here."""
    folder = tmp_path_factory.mktemp("built")
    copy = folder / "copy"
    copy.mkdir()
    for name in (*SOURCES, ".gitignore", *OTHERS):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", copy)
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has put the wheel; what it depends on is there already."""
    target = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, "--target", target, wheel)
    return target


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.mark.long
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    package = ROOT / "vector_index_mcp"
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(names) == expected


def test_the_wheel_is_small_and_for_every_system(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size < 1_400_000  # 530 modules, and 70,000 for the map of questions


def test_the_metadata_tells_what_it_is_and_what_it_needs(wheel: Path) -> None:
    found = metadata(wheel)
    assert (found["Name"], found["Version"]) == ("vector-index-mcp", vector_index_mcp.__version__)
    assert found["Requires-Python"] == ">=3.11"
    assert found["License-Expression"] == "MIT"
    assert set(found.get_all("Provides-Extra", [])) == {
        "offline",
        "formats",
        "faiss",
        "remote",
        "dev",
    }
    needed = found.get_all("Requires-Dist", [])
    named = [line.partition(";")[0] for line in needed]
    assert all(any(sign in name for sign in "<=>") for name in named), "a version for each"
    assert found.get_payload().startswith("# vector-index-mcp")


def test_the_source_distribution_holds_what_is_told_of_it_and_nothing_else(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"vector_index_mcp/cli.py", "tests/conftest.py"} <= names
    assert {name.partition("/")[0] for name in names} - {""} == {*SOURCES, *ADDED}


@pytest.mark.long
def test_what_pip_has_installed_indexes_a_project_and_finds_things_in_it(
    installed: Path, tmp_path: Path
) -> None:
    project = write(tmp_path / "project", {"shop.py": "def fetch_with_retry(url):\n    pass\n"})
    variables = environment(tmp_path, VECTOR_INDEX_EMBEDDING_MODEL="./none")
    variables |= {"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    (program,) = (installed / "bin").iterdir()
    assert program.name == "vector-index-mcp"
    options = {"env": variables, "cwd": tmp_path}
    where = run(sys.executable, "-c", "import vector_index_mcp as v; print(v.__file__)", **options)
    assert Path(where.strip()).is_relative_to(installed)
    version = run(sys.executable, program, "--version", **options)
    assert vector_index_mcp.__version__ in version
    run(sys.executable, program, "index", project, **options)
    assert "shop.py" in run(sys.executable, program, "search", project, "retry", **options)
