"""What the doctor finds on real folders, limits and file systems, and how it is printed."""

import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from rich.cells import cell_len
from rich.console import Console

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.doctor import examine, machine, model, places, team
from vector_index_mcp.doctor.finding import (
    Case,
    Finding,
    Verdict,
    failed,
    failed_by,
    ok,
    warning,
)
from vector_index_mcp.doctor.subject import Documents, Project
from vector_index_mcp.documents.home import home_of
from vector_index_mcp.engine.models.model import find_model
from vector_index_mcp.engine.models.wording import WORDS_AND_GIST
from vector_index_mcp.errors import StoreError
from vector_index_mcp.files import mounts
from vector_index_mcp.indexing import freshness
from vector_index_mcp.settings import Settings, origins

OK, WARNING, FAILED = Verdict.OK, Verdict.WARNING, Verdict.FAILED


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A sound project in a folder of its own."""
    monkeypatch.setenv("VECTOR_INDEX_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    project = tmp_path / "project"
    project.mkdir()
    return make_case(project, tmp_path)


def make_case(project, folder, **settings):
    given = Settings(**{"lancedb_uri": str(folder / "index")} | settings)
    return Case(Project(project, given), given, {}, folder / "cache", folder / "state")


# -- machine ---------------------------------------------------------------------------------


def test_what_is_installed_is_told_by_its_version(case):
    finding = machine.versions(case)
    assert finding.verdict is OK
    assert "lancedb 0." in finding.words
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in finding.words


def test_a_package_that_is_missing_is_told_with_the_remedy(case, monkeypatch):
    monkeypatch.setattr(machine, "PACKAGES", ("lancedb", "no-such-package"))
    finding = machine.versions(case)
    assert (finding.verdict, finding.words[:30]) == (FAILED, "not installed: no-such-package")
    assert "pip install" in finding.remedy


@pytest.mark.parametrize(
    ("flags", "missing"),
    [("sse fma avx avx2", ""), ("avx2", "fma"), ("fma", "avx2"), ("", "avx2 and fma")],
)
def test_a_processor_on_which_lancedb_would_crash_is_told(flags, missing):
    finding = machine.runs_lancedb(
        "x86_64", f"processor\t: 0\nflags\t\t: {flags}\nbugs\t: fma avx2\n"
    )
    assert finding.verdict is (FAILED if missing else OK)
    assert f"without {missing}," in finding.words or not missing


def test_this_processor_is_fine_since_lancedb_runs_in_the_other_tests(case):
    assert machine.processor(case).verdict is OK


def test_a_file_system_that_hides_changes_is_a_warning(case, monkeypatch):
    monkeypatch.setattr(mounts, "_mounts", lambda: {Path("/"): "nfs4"})
    finding = machine.file_system(case)
    assert (finding.verdict, finding.words.split()[0]) == (WARNING, "nfs4")
    assert "VECTOR_INDEX_RESCAN_SECONDS" in finding.remedy


def test_how_often_is_scanned_is_what_really_happens():
    shortest, longest = freshness._POLLING_LEAST_SECONDS, 600
    words = machine.scanned("nfs4", longest).words
    assert f"every {shortest:.0f} s in a small project" in words
    assert f"at least every {longest} s" in words


def test_a_small_disk_is_told_by_its_kind_and_by_what_is_free(small_disk):
    case = make_case(small_disk, small_disk)
    assert machine.file_system(case) == ok("tmpfs")
    finding = machine.disk(case)
    assert (finding.verdict, "0.0 GB free" in finding.words) == (FAILED, True)
    assert "free some space" in finding.remedy


def test_a_disk_that_takes_no_more_files_is_told(small_disk, monkeypatch):
    monkeypatch.setattr(machine, "_TOO_LITTLE_BYTES", 0)
    remount = ["mount", "-o", "remount,nr_inodes=20", str(small_disk)]
    subprocess.run(remount, check=True)
    finding = machine.disk(make_case(small_disk, small_disk))
    assert (finding.verdict, "room for more files" in finding.words) == (WARNING, True)
    assert "delete files" in finding.remedy


def test_only_what_would_be_watched_is_counted(case):
    for folder in ("src/deep", "node_modules/x", "ignored/y"):
        (case.subject.project / folder).mkdir(parents=True)
        (case.subject.project / folder / "a.py").touch()
    (case.subject.project / ".gitignore").write_text("ignored/\n")
    finding = machine.watches(case)
    assert finding.verdict is OK
    assert finding.words.startswith("2 files in 3 folders")


def test_one_of_a_thing_is_told_as_one(case):
    (case.subject.project / "a.py").touch()
    assert machine.watches(case).words.startswith("1 file in 1 folder; ")


@pytest.mark.parametrize(("limit", "verdict"), [(1000, OK), (150, WARNING), (99, FAILED)])
def test_folders_are_compared_with_the_limit_of_watches(limit, verdict):
    finding = machine.enough_watches("", 100, limit, may_begin=True)
    assert finding.verdict is verdict
    assert ("fs.inotify.max_user_watches=524288" in finding.remedy) is (verdict is not OK)


def test_too_many_watchers_are_told():
    finding = machine.enough_watches("", 1, 1000, may_begin=False)
    assert (finding.verdict, "max_user_instances" in finding.remedy) == (FAILED, True)


@pytest.mark.parametrize(("limit", "verdict"), [(50, FAILED), (200, WARNING), (1024, OK)])
def test_few_descriptors_are_told(case, limit, verdict):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limits[1]))
    try:
        finding = machine.descriptors(case)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert finding.verdict is verdict
    assert finding.remedy.startswith("ulimit -n") is (verdict is not OK)


# -- places ----------------------------------------------------------------------------------


def test_folders_that_are_not_there_yet_can_be_made(case):
    assert places.index_folder(case) == ok(
        f"{case.subject.place.uri} will be made when it is needed"
    )
    assert places.cache_folder(case).verdict is OK
    assert not case.cache_folder.exists()


def test_a_file_in_the_place_of_a_folder_is_told_with_the_setting(case):
    case.cache_folder.touch()
    finding = places.cache_folder(case)
    assert finding == failed(
        f"{case.cache_folder} is not a folder",
        "set VECTOR_INDEX_EMBEDDING_CACHE_DIR to a folder of your own",
    )


def test_a_folder_that_everybody_may_write_is_warned_of(case):
    case.index_folder.mkdir()
    case.index_folder.chmod(0o777)
    assert places.index_folder(case) == warning(
        f"{case.subject.place.uri} can be written by every user",
        f"chmod o-w {case.subject.place.uri}",
    )
    case.index_folder.chmod(0o755)
    assert places.index_folder(case) == ok(case.subject.place.uri)


def test_files_that_are_hidden_by_the_index_beside_them_are_warned_of(tmp_path):
    case = make_case(tmp_path, tmp_path)
    folder = case.index_folder
    (folder / "chunks.lance").mkdir(parents=True)
    for ours in (".gitignore", "index.lock", "index.mark"):
        (folder / ours).touch()
    assert places.index_folder(case) == ok(str(folder))
    (folder / "main.py").touch()
    assert places.index_folder(case) == warning(
        f"{folder} holds 'main.py', too; nothing that lies there is indexed",
        "give the index a folder of its own by VECTOR_INDEX_LANCEDB_URI",
    )


def test_an_index_elsewhere_is_nobodys_folder(tmp_path):
    case = make_case(tmp_path, tmp_path, lancedb_uri="s3://bucket/x")
    assert places.index_folder(case) == ok("s3://bucket/x is not on this machine")
    assert machine.disk(case).verdict is not FAILED


def test_a_state_folder_that_cannot_be_written_is_told(case, read_only):
    assert places.state_folder(case).verdict is OK
    case.state_folder.mkdir()
    with read_only(case.state_folder):
        finding = places.state_folder(case)
    assert finding.words == f"{case.state_folder} cannot be written"
    assert finding.remedy.endswith("set XDG_STATE_HOME to a folder of your own")
    assert finding.verdict is FAILED


def test_a_folder_of_services_that_others_may_open_is_told(case, tmp_path):
    assert places.runtime_folder(case).verdict is OK
    (tmp_path / "run").chmod(0o755)
    finding = places.runtime_folder(case)
    assert (finding.verdict, "not a private folder" in finding.words) == (FAILED, True)
    assert "VECTOR_INDEX_RUNTIME_DIR" in finding.remedy


def test_a_folder_of_services_without_room_is_told(case, small_disk, monkeypatch):
    monkeypatch.setenv("VECTOR_INDEX_RUNTIME_DIR", str(small_disk / "run"))
    assert places.runtime_folder(case).verdict is OK
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free))
    finding = places.runtime_folder(case)
    assert (finding.verdict, "no space left" in finding.words) == (FAILED, True)
    assert "VECTOR_INDEX_RUNTIME_DIR" in finding.remedy


def test_ignore_files_that_are_read_are_told(case):
    assert places.git_rules(case) == ok("no ignore files: only the built-in list applies")
    subprocess.run(["git", "init", "-q", str(case.subject.project)], check=True)
    (case.subject.project / ".gitignore").write_text("x\n")
    words = places.git_rules(case).words
    assert f"{case.subject.project}/.git/info/exclude" in words
    assert f"{case.subject.project}/.gitignore" in words


@pytest.mark.parametrize("how", ["link", "large", "folder"])
def test_an_ignore_file_that_is_not_read_is_warned_of(case, tmp_path, how):
    rules = case.subject.project / ".gitignore"
    if how == "link":
        (tmp_path / "rules").write_text("x\n")
        rules.symlink_to(tmp_path / "rules")
    elif how == "large":
        rules.write_text("#" * 1_000_001)
    else:
        rules.mkdir()
    finding = places.git_rules(case)
    assert (finding.verdict, finding.words) == (WARNING, f"not read: {rules}")


@pytest.mark.parametrize("fault", ["[core", "[core]\nignorecase = maybe", "[core]\nexcludesFile"])
def test_settings_that_git_cannot_read_are_warned_of(case, tmp_path, monkeypatch, fault):
    (tmp_path / "gitconfig").write_text(f"{fault}\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    finding = places.git_rules(case)
    assert finding.verdict is WARNING
    assert finding.words.startswith("git does not tell its settings: ")


def test_settings_are_told_with_where_they_come_from(case, tmp_path, monkeypatch):
    monkeypatch.setenv("VECTOR_INDEX_MAX_FILE_BYTES", "5")
    file = tmp_path / "settings.env"
    file.write_text("VECTOR_INDEX_RESCAN_SECONDS=60\nVECTOR_INDEX_MAX_FILE_BYTES=7\nOTHER=1\n")
    found = origins(str(file))
    assert found == {"max_file_bytes": "environment", "rescan_seconds": str(file)}
    settings = Settings(max_file_bytes=5, rescan_seconds=60, ignore_patterns=("a", "b"))
    finding = places.settings(replace(case, settings=settings, origins=found))
    assert finding == ok(
        "2 set; all others are default",
        "VECTOR_INDEX_MAX_FILE_BYTES=5 (environment)",
        f"VECTOR_INDEX_RESCAN_SECONDS=60 ({file})",
    )
    assert places.settings(case) == ok("all are default")


def test_a_setting_that_there_is_not_is_told(case):
    wrong = "VECTOR_INDEX_RESCAN_SECOND is set but is no setting, so it has no effect"
    finding = places.settings(replace(case, mistyped=(wrong,)))
    assert (finding.verdict, finding.words) == (WARNING, f"all are default; {wrong}")
    assert finding.remedy == "correct the name, or unset it"


def test_a_password_in_a_setting_is_not_told(tmp_path):
    uri = "hdfs://user:hunter2hunter2@host/bucket"
    case = make_case(tmp_path, tmp_path, lancedb_uri=uri)
    case = replace(case, origins={"lancedb_uri": "environment"})
    for finding in (places.settings(case), places.index_folder(case)):
        assert "hunter2" not in " ".join([finding.words, *finding.details])
        assert "@host/bucket" in " ".join([finding.words, *finding.details])


def test_a_token_is_not_told(case):
    settings = Settings(http_token="correct-horse", llm_key="battery staple")
    given = dict.fromkeys(("http_token", "llm_key"), "environment")
    finding = places.settings(replace(case, settings=settings, origins=given))
    assert [line.partition("=")[2] for line in finding.details] == ["*** (environment)"] * 2


# -- model -----------------------------------------------------------------------------------

GOOD = np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype="<f4")


@pytest.mark.parametrize(
    ("vectors", "dimension", "fault"),
    [
        (GOOD, 2, ""),
        (GOOD, 3, "it makes vectors of 2 numbers instead of 3"),
        (GOOD * 2, 2, "its vectors are not of length 1"),
        (GOOD * np.nan, 2, "its vectors are not of length 1"),
        (
            GOOD[[0, 2, 1]],
            2,
            "it puts texts of different meaning nearer to each other than texts of the same",
        ),
        (
            GOOD[[0, 0, 0]],
            2,
            "it puts texts of different meaning nearer to each other than texts of the same",
        ),
    ],
)
def test_vectors_that_make_no_sense_are_told(vectors, dimension, fault):
    assert model.fault_of(vectors, dimension) == fault


def test_a_missing_model_is_told_with_the_remedy_and_leaves_no_worker(tmp_path):
    finding = model.model(make_case(tmp_path, tmp_path, embedding_model="/nowhere"))
    assert finding == failed(
        "the embedding model folder /nowhere does not exist",
        "correct VECTOR_INDEX_EMBEDDING_MODEL or unset it",
    )
    assert not [p for p in psutil.Process().children() if "worker" in " ".join(p.cmdline())]


@pytest.mark.slow
def test_a_model_that_is_damaged_is_told(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"no weights")
    (folder / "config.json").write_text('{"hidden_size": 8}')
    finding = model.model(make_case(tmp_path, tmp_path, embedding_model=str(folder)))
    assert (finding.verdict, "cannot be loaded" in finding.words) == (FAILED, True)
    assert "VECTOR_INDEX_EMBEDDING_MODEL" in finding.remedy


BERT = {"hidden_size": 8, "max_position_embeddings": 512}


@pytest.mark.parametrize(
    ("files", "most_chars", "share"),
    [
        ({"config": BERT}, 1_200, ""),
        ({"config": BERT}, 3_584, "about 50% of"),
        ({"config": BERT, "sentence_bert_config": {"max_seq_length": 256}}, 1_200, "about 75% of"),
        ({"config": BERT, "sentence_bert_config": {"max_seq_length": 8192}}, 20_000, ""),
        ({"config": BERT, "tokenizer_config": {"model_max_length": 128}}, 1_200, "about 37% of"),
        ({"config": BERT, "tokenizer_config": {"model_max_length": 1e30}}, 1_200, ""),
        ({"config": {"hidden_size": 8}}, 20_000, ""),  # it reads all there is
        ({"config": []}, 20_000, ""),
    ],
)
def test_what_a_model_does_not_read_of_a_chunk_is_told(tmp_path, files, most_chars, share):
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    (tmp_path / "model.safetensors").write_bytes(b"")
    settings = {"embedding_model": str(tmp_path), "chunk_max_chars": most_chars}
    case = make_case(tmp_path, tmp_path, **settings)
    told = "".join(model._window(case))
    assert share in told
    assert bool(told) == bool(share)


# -- all of them -----------------------------------------------------------------------------


def test_a_check_that_raises_or_hangs_stops_no_other(case):
    never = threading.Event()

    def hangs(_):
        never.wait()

    def raises(_):
        raise KeyError("x")

    checks = (("a", raises, 5.0), ("b", hangs, 0.05), ("c", lambda _: ok("fine"), 5.0))
    found = dict(examine.findings(case, checks))
    never.set()
    assert found["a"].words == "the check itself failed: KeyError: 'x'"
    assert found["b"].words == "the check did not end within 0.05 s"
    assert found["c"] == ok("fine")
    assert {found["a"].verdict, found["b"].verdict} == {FAILED}
    assert found["a"].remedy
    assert found["b"].remedy


@pytest.mark.parametrize(
    ("error", "finding"),
    [
        (StoreError("it is full; free space"), failed("it is full", "free space")),
        (
            PermissionError(13, "Permission denied", "/x"),
            failed(
                "cannot be examined: /x: Permission denied",
                "give yourself permission, or choose another folder in the settings",
            ),
        ),
        (
            OSError(5, "Input/output error", "/x"),
            failed("cannot be examined: [Errno 5] Input/output error: '/x'", "examine the disk"),
        ),
        (
            ExceptionGroup("", [ImportError("x.so: failed to map segment from shared object")]),
            failed(
                "cannot be examined: there is not enough memory (x.so: failed to map segment from "
                "shared object)",
                "end other programs, or raise the limit of memory (`ulimit -v`) where it is "
                "started",
            ),
        ),
    ],
)
def test_what_a_check_is_hindered_by_is_no_bug(case, error, finding):
    def raises(_):
        raise error

    assert dict(examine.findings(case, [("a", raises, 5.0)])) == {"a": finding}


def test_where_lancedb_would_crash_nothing_that_needs_it_is_tried(case, monkeypatch):
    monkeypatch.setattr(machine, "processor", lambda _: failed("too old", "buy another"))
    checks = (("processor", machine.processor, 5.0), ("index", lambda _: ok("fine"), 5.0))
    found = dict(examine.findings(case, checks))
    assert found["index"].verdict is Verdict.NOT_TRIED


# -- what a team shares ----------------------------------------------------------------------


def a_store(tmp_path, digest):
    folder = tmp_path / "team" / "vectors-1" / digest
    folder.mkdir(parents=True)
    (folder / f"{'ab' * 16}.pack").write_bytes(b"x")
    return make_case(tmp_path, tmp_path, shared_cache=str(tmp_path / "team"))


def test_without_a_store_there_is_nothing_to_say_of_it(case):
    assert team.vectors(case).verdict is OK


@pytest.mark.slow
def test_packs_of_the_model_are_counted(tmp_path):
    digest = WORDS_AND_GIST.identity(find_model("all-MiniLM-L6-v2").identity).digest
    finding = team.vectors(a_store(tmp_path, digest))
    assert (finding.verdict, finding.words.endswith("1 pack of vectors of this model")) == (
        OK,
        True,
    )


@pytest.mark.slow
def test_packs_of_other_models_alone_are_of_no_use(tmp_path):
    finding = team.vectors(a_store(tmp_path, "cd" * 32))
    assert finding.verdict is WARNING
    assert "none of this model" in finding.words


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    finding = team.vectors(make_case(tmp_path, tmp_path, shared_cache="s3://team/x"))
    assert finding.verdict is WARNING
    assert "does not answer" in finding.words
    assert "AWS_ENDPOINT_URL" in finding.remedy


@pytest.mark.slow
def test_a_drive_that_hangs_is_a_warning_soon(tmp_path, drive, monkeypatch):
    monkeypatch.setattr(team, "_SECONDS", 0.3)
    drive.hang()
    began = time.monotonic()
    finding = team.vectors(make_case(tmp_path, tmp_path, shared_cache=str(drive.folder)))
    assert (finding.verdict, time.monotonic() - began < 10) == (WARNING, True)
    assert "does not answer within" in finding.words


def test_a_shared_index_that_is_nowhere_is_a_warning(tmp_path, case):
    assert team.index(case).verdict is OK
    nowhere = str(tmp_path / "nowhere")
    finding = team.index(make_case(tmp_path, tmp_path, shared_index=nowhere))
    assert finding == warning(
        f"{nowhere}: nothing is published there for a branch of this project; the project is "
        "indexed here",
        "publish it (`vector-index-mcp publish`), or correct VECTOR_INDEX_SHARED_INDEX",
    )


@pytest.mark.slow
def test_a_shared_index_on_a_drive_that_hangs_is_a_warning_soon(tmp_path, drive, monkeypatch):
    monkeypatch.setattr(team, "_SECONDS", 0.3)
    drive.hang()
    finding = team.index(make_case(tmp_path, tmp_path, shared_index=str(drive.folder)))
    assert finding.verdict is WARNING
    assert "does not answer within" in finding.words


def test_a_store_that_has_lied_is_a_warning(tmp_path, monkeypatch):
    said = "/team: 3 vectors used of 1 pack; switched off: the pack x has others; delete it there"
    monkeypatch.setattr(Project, "team_vectors", lambda _: said)
    finding = team.vectors(a_store(tmp_path, "cd" * 32))
    assert (finding.verdict, finding.remedy) == (WARNING, "delete it there")


def test_every_check_has_a_name_of_its_own_and_the_ones_that_need_lancedb_exist():
    names = [name for name, _, _ in examine.CHECKS]
    assert len(set(names)) == len(names)
    assert examine.NEED_LANCEDB.issubset(names)
    assert names.index("processor") < min(map(names.index, examine.NEED_LANCEDB))


def test_our_errors_are_split_into_what_is_wrong_and_what_to_do():
    assert failed_by(StoreError("it is full; free space"), REMEDIES) == failed(
        "it is full", "free space"
    )
    assert failed_by(StoreError("odd"), REMEDIES).remedy == "look at `vector-index-mcp logs`"


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_the_terminal(width):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    finding = Finding(FAILED, "word " * 50 + "x" * 200, "/a/long/path" * 20, ("detail " * 30,))
    examine.show(console, "runtime folder", finding)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("FAILED   runtime folder: word ")
    assert all(cell_len(line.rstrip()) <= width for line in lines)


def test_what_a_terminal_would_obey_is_shown(capsys):
    examine.show(Console(), "index", failed("e\x1b[31mvil\nok       all", "rm \u202ex"))
    assert capsys.readouterr().out == (
        "FAILED   index: e\\x1b[31mvil\\nok       all\n         do: rm \\u202ex\n"
    )


def test_what_is_found_can_be_read_by_programs(case, capsys):
    checks = (("a", lambda _: ok("fine", "more"), 5.0), ("b", lambda _: failed("bad", "do"), 5.0))
    assert examine.run(case.subject, case.settings, None, as_json=True, checks=checks) == 1
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "checks": [
            {"name": "a", "verdict": "ok", "words": "fine", "remedy": "", "details": ["more"]},
            {"name": "b", "verdict": "FAILED", "words": "bad", "remedy": "do", "details": []},
        ],
    }


def test_the_last_line_counts_what_was_found(case, capsys):
    fine = ("a", lambda _: ok("fine"), 5.0)
    poor = [(name, lambda _: warning("poor", "do"), 5.0) for name in "bc"]
    told = [last_line(case, capsys, [fine, *poor[:n]]) for n in (0, 1, 2)]
    assert told == ["1 check: 1 ok", "2 checks: 1 ok, 1 warning", "3 checks: 1 ok, 2 warnings"]


def last_line(case, capsys, checks):
    examine.run(case.subject, case.settings, None, as_json=False, checks=checks)
    return capsys.readouterr().out.splitlines()[-1]


def test_git_is_not_needed(case, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert shutil.which("git") is None
    assert places.git_rules(case).verdict is OK


def test_what_a_team_shares_is_not_missed_for_documents(case, tmp_path):
    shared = {"shared_index": str(tmp_path / "shared"), "shared_cache": str(tmp_path / "cache")}
    given = Settings(**shared)
    documents = replace(
        case, subject=Documents(home_of("index", {}, tmp_path), given), settings=given
    )
    for check in (team.vectors, team.index):
        assert "of projects, not of documents" in check(documents).words


def test_commands_that_are_advised_can_be_pasted(tmp_path):
    folder = tmp_path / "my project; x"
    folder.mkdir()
    subject = make_case(folder, tmp_path).subject
    assert subject.build == f"vector-index-mcp index '{folder}'"
    assert subject.stop == f"vector-index-mcp stop '{folder}'"
