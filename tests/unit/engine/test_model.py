"""Which model it is, told without loading it and without running a package's code."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from vector_index_mcp.engine.models.model import (
    OFFLINE_PACKAGE,
    OFFLINE_WEIGHTS_SHA256,
    find_model,
    looks_like_folder,
    sha256_of,
)
from vector_index_mcp.engine.models.model_folder import Prompts, prompts_of
from vector_index_mcp.errors import ModelNotFoundError, Problem

OURS = "sentence_transformers.models"
TRANSFORMER = {"path": "", "type": f"{OURS}.Transformer"}
POOLING = {"path": "1_Pooling", "type": f"{OURS}.Pooling"}
DENSE = {"path": "2_Dense", "type": f"{OURS}.Dense"}
ROUTER = {"path": "", "type": "sentence_transformers.base.modules.router.Router"}
STATIC = {"path": "0_Static", "type": f"{OURS}.StaticEmbedding"}
TOWERS = {"query_0": f"{OURS}.Transformer", "document_0": f"{OURS}.Transformer"}
TWO_MEANS = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}
FIND = """
import json, sys
from vector_index_mcp.engine.models.model import find_model
from vector_index_mcp.errors import ModelNotFoundError
try:
    found = find_model(sys.argv[1])
    answer = {"folder": str(found.folder), "name": found.identity.name,
              "digest": found.identity.digest, "dimension": found.identity.dimension}
except ModelNotFoundError as error:
    answer = {"error": str(error), "problem": error.problem}
answer["imported"] = sorted(sys.modules)
json.dump(answer, sys.stdout)
"""


def find_in_new_process(name, tmp_path, **environment):
    """What `find_model` finds where nothing is imported yet and the hub cannot be reached."""
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "hub"),
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIND, name],
        env=environment,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return json.loads(done.stdout)


@pytest.fixture
def offline_folder():
    spec = find_spec(OFFLINE_PACKAGE)
    if spec is None:
        pytest.skip("the extra `offline` is not installed")
    return Path(spec.submodule_search_locations[0])


def model_folder(folder, **files):
    """A folder that looks like a small model. Files by name; `__` in it is a slash."""
    contents = {
        "model.safetensors": "weights",
        "config.json": {"hidden_size": 8},
        "tokenizer.json": {"words": 3},
        "vocab.txt": "one\ntwo\n",
        **{name.replace("__", "/"): content for name, content in files.items()},
    }
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_offline_package_is_found_without_running_any_of_it(tmp_path, offline_folder, name):
    found = find_in_new_process(name, tmp_path)
    assert Path(found["folder"]) == offline_folder / "model"
    assert (found["name"], found["dimension"]) == (name, 384)
    assert not {OFFLINE_PACKAGE, "torch", "transformers", "huggingface_hub"} & set(
        found["imported"]
    )


@pytest.mark.slow
def test_one_model_has_one_digest_under_all_its_names(tmp_path, offline_folder):
    by_name = find_in_new_process("all-MiniLM-L6-v2", tmp_path)
    by_folder = find_model(str(offline_folder / "model"))
    assert by_name["digest"] == by_folder.identity.digest


@pytest.mark.slow
def test_a_package_with_other_weights_is_not_used(tmp_path, offline_folder):
    package = tmp_path / "packages" / OFFLINE_PACKAGE
    shutil.copytree(offline_folder, package)
    weights = package / "model" / "model.safetensors"
    assert sha256_of(weights) == OFFLINE_WEIGHTS_SHA256
    path = {"PYTHONPATH": os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])}
    assert Path(find_in_new_process("all-MiniLM-L6-v2", tmp_path, **path)["folder"]) == (
        package / "model"
    )
    with weights.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte ^ 1]))
    found = find_in_new_process("all-MiniLM-L6-v2", tmp_path, **path)
    assert "not on this machine" in found["error"]
    assert found["problem"] == Problem.USUAL_MODEL_NOWHERE
    assert OFFLINE_PACKAGE not in found["imported"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["nobody/no-such-model", "no-such-model", "not a name!", "a/b/c", "a..b"]
)
def test_a_model_that_is_nowhere_is_an_error_that_says_so(tmp_path, name):
    found = find_in_new_process(name, tmp_path)
    assert name in found["error"]
    assert found["problem"] == Problem.MODEL_NOWHERE


@pytest.mark.parametrize(
    ("name", "is_folder"),
    [
        ("all-MiniLM-L6-v2", False),
        ("owner/model", False),
        ("/models/mine", True),
        ("./mine", True),
        ("../mine", True),
        ("~/mine", True),
        (".", True),
        (r"C:\models\mine", True),
    ],
)
def test_a_name_is_a_folder_by_its_spelling(name, is_folder):
    assert looks_like_folder(name) == is_folder


@pytest.mark.slow
def test_a_folder_of_the_models_name_in_the_working_folder_is_not_the_model(
    tmp_path, offline_folder
):
    model_folder(tmp_path / "all-MiniLM-L6-v2")
    found = find_in_new_process("all-MiniLM-L6-v2", tmp_path)
    assert Path(found["folder"]) == offline_folder / "model"


@pytest.mark.slow
def test_a_folder_is_found_by_a_relative_path(tmp_path):
    model_folder(tmp_path / "mine")
    assert find_in_new_process("./mine", tmp_path)["dimension"] == 8


def test_a_folder_that_does_not_exist_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere does not exist") as caught:
        find_model(str(tmp_path / "nowhere"))
    assert caught.value.problem is Problem.MODEL_FOLDER_MISSING


def test_a_folder_with_pickled_weights_alone_is_refused(tmp_path):
    folder = model_folder(tmp_path / "mine")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelNotFoundError, match=r"no model\.safetensors") as caught:
        find_model(str(folder))
    assert caught.value.problem is Problem.MODEL_UNSAFE


@pytest.mark.parametrize(
    "files",
    [
        {"config.json": "not json"},
        {"config.json": "[]"},
        {"config.json": "{}"},
        {"config.json": {"hidden_size": None}},
        {"config.json": {"hidden_size": "many"}},
        {"modules.json": "not json"},
        {"modules.json": {"path": ""}},
        {"modules.json": [{"type": "Dense"}]},
        {
            "modules.json": [{"path": "2_Dense", "type": f"{OURS}.Dense"}],
            "2_Dense__config.json": "{}",
        },
    ],
)
def test_a_folder_that_holds_no_model_is_an_error_that_says_so(tmp_path, files):
    folder = model_folder(tmp_path / "mine", **files)
    with pytest.raises(ModelNotFoundError) as caught:
        find_model(str(folder))
    assert caught.value.problem is Problem.MODEL_INVALID


def test_a_folder_without_a_configuration_is_not_a_model(tmp_path):
    folder = model_folder(tmp_path / "mine")
    (folder / "config.json").unlink()
    with pytest.raises(ModelNotFoundError, match="not a sentence-transformers model"):
        find_model(str(folder))


@pytest.mark.parametrize(
    ("files", "dimension"),
    [
        ({}, 8),
        ({"modules.json": [TRANSFORMER, POOLING]}, 8),
        ({"modules.json": [TRANSFORMER, DENSE], "2_Dense__config.json": {"out_features": 5}}, 5),
        ({"modules.json": [TRANSFORMER], "2_Dense__config.json": {"out_features": 5}}, 8),
        ({"modules.json": [TRANSFORMER, DENSE]}, 8),
        ({"modules.json": [TRANSFORMER, POOLING], "1_Pooling__config.json": TWO_MEANS}, 16),
        ({"config.json": {"d_model": 6}}, 6),
        ({"config.json": {"dim": 7}}, 7),
        ({"config.json": {"text_config": {"hidden_size": 4}}}, 4),
        ({"config_sentence_transformers.json": {"truncate_dim": 3}}, 3),
        ({"config_sentence_transformers.json": {"truncate_dim": None}}, 8),
    ],
)
def test_the_dimension_is_that_of_the_last_module_that_changes_it(tmp_path, files, dimension):
    folder = model_folder(tmp_path / "mine", **files)
    assert find_model(str(folder)).identity.dimension == dimension


def tensors_of(**shapes):
    """The beginning of a file of weights."""
    said = {name: {"dtype": "F32", "shape": shape} for name, shape in shapes.items()}
    head = json.dumps({"__metadata__": {}} | said)
    return len(head).to_bytes(8, "little") + head.encode()


def test_a_model_that_is_only_a_table_of_words_has_the_dimension_of_its_rows(tmp_path):
    folder = model_folder(tmp_path / "mine", **{"modules.json": [STATIC]})
    (folder / "model.safetensors").rename(folder / "weights")
    (folder / "0_Static").mkdir()
    weights = folder / "0_Static" / "model.safetensors"
    weights.write_bytes(tensors_of(embeddings=[100, 12], weights=[100]))
    assert find_model(str(folder)).identity.dimension == 12
    weights.write_bytes(tensors_of(weights=[100]))
    with pytest.raises(ModelNotFoundError, match="not a sentence-transformers model"):
        find_model(str(folder))


def test_a_model_of_two_towers_is_one_whose_weights_lie_deeper(tmp_path):
    folder = model_folder(
        tmp_path / "mine",
        **{
            "modules.json": [ROUTER],
            "router_config.json": {"types": TOWERS},
            "query_0__config.json": {"hidden_size": 5},
            "document_0__config.json": {"hidden_size": 5},
        },
    )
    for name in ("model.safetensors", "config.json"):
        (folder / name).rename(folder / "query_0" / name)
    (folder / "query_0" / "config.json").write_text('{"hidden_size": 5}')
    before = find_model(str(folder)).identity
    assert before.dimension == 5
    (folder / "query_0" / "model.safetensors").write_text("other weights", encoding="utf-8")
    assert find_model(str(folder)).identity.digest != before.digest


@pytest.mark.parametrize(
    "files",
    [
        {"modules.json": [{"path": "", "type": "custom_st.Transformer"}]},
        {"modules.json": [TRANSFORMER, {"path": "1", "type": "sentence_transformers_x.Pooling"}]},
        {"modules.json": [ROUTER], "router_config.json": {"types": {"a": "os.path.Evil"}}},
        {
            "modules.json": [TRANSFORMER, DENSE],
            "2_Dense__config.json": {"out_features": 5, "activation_function": "os.abort"},
        },
    ],
    ids=["module", "prefix", "route", "function"],
)
def test_a_model_that_wants_its_own_code_run_is_refused_before_it_is_loaded(tmp_path, files):
    folder = model_folder(tmp_path / "mine", **files)
    with pytest.raises(ModelNotFoundError, match="would run code of its own") as caught:
        find_model(str(folder))
    assert caught.value.problem is Problem.MODEL_WITH_CODE


def test_vectors_that_are_cut_are_those_of_another_model(tmp_path):
    name = str(model_folder(tmp_path / "mine"))
    found = {wanted: find_model(name, wanted).identity for wanted in (0, 8, 7, 1)}
    assert [identity.dimension for identity in found.values()] == [8, 8, 7, 1]
    assert found[0] == found[8]
    assert len({identity.digest for identity in found.values()}) == 3
    assert [bytes.fromhex(identity.digest) for identity in found.values()]
    assert found[7].name == f"{name} (7 of 8 numbers)"


def test_more_numbers_than_a_model_has_are_refused(tmp_path):
    folder = model_folder(tmp_path / "mine")
    with pytest.raises(ModelNotFoundError, match="vectors of 8 numbers, and 9 are want") as caught:
        find_model(str(folder), 9)
    assert caught.value.problem is Problem.MODEL_TOO_SHORT


@pytest.mark.parametrize(
    ("prompts", "query", "document"),
    [
        (None, "", ""),
        ({}, "", ""),
        ({"query": "q: "}, "q: ", ""),
        ({"query": "q: ", "document": "d: ", "passage": "p: "}, "q: ", "d: "),
        ({"document": "", "passage": "p: "}, "", "p: "),
        ({"query": None, "corpus": "c: "}, "", "c: "),
        ({"other": "o: "}, "", ""),
    ],
)
def test_a_models_prompts_are_those_of_its_configuration(tmp_path, prompts, query, document):
    said = {"prompts": prompts, "default_prompt_name": "other"}
    folder = model_folder(tmp_path / "mine", **{"config_sentence_transformers.json": said})
    assert prompts_of(folder) == Prompts(query, document)


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "vocab.txt",
        "merges.txt",
        "sentencepiece.bpe.model",
        "modules.json",
        "1_Pooling/config.json",
        "2_Dense/model.safetensors",
    ],
)
def test_the_digest_changes_with_every_file_that_shapes_a_vector(tmp_path, name):
    folder = model_folder(tmp_path / "mine")
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_text("[]", encoding="utf-8")
    before = find_model(str(folder)).identity.digest
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert find_model(str(folder)).identity.digest != before


@pytest.mark.parametrize("name", ["README.md", "data_config.json", ".gitattributes", "onnx/m.onnx"])
def test_the_digest_does_not_change_with_files_that_shape_nothing(tmp_path, name):
    folder = model_folder(tmp_path / "mine")
    before = find_model(str(folder)).identity
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("anything", encoding="utf-8")
    assert find_model(str(folder)).identity == before


def test_the_digest_does_not_depend_on_where_the_folder_lies(tmp_path):
    digests = {
        find_model(str(model_folder(tmp_path / place))).identity.digest for place in ("a", "b/c")
    }
    assert len(digests) == 1


def test_a_file_under_another_name_is_another_model(tmp_path):
    one = model_folder(tmp_path / "one", **{"a/c.json": "1"})
    two = model_folder(tmp_path / "two", **{"b/c.json": "1"})
    assert find_model(str(one)).identity.digest != find_model(str(two)).identity.digest


def test_a_file_that_cannot_be_read_has_no_digest(tmp_path):
    assert sha256_of(tmp_path / "nowhere") == ""
    assert sha256_of(tmp_path) == ""
