"""The settings: what each is by default, what it may be, and what is said when it may not."""

import contextlib
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vector_index_mcp.errors import SettingsError
from vector_index_mcp.settings import PREFIX, Settings, load, mistyped


@dataclasses.dataclass
class Case:
    """One field: its default, texts with what they mean, and texts that are refused."""

    default: object
    accepted: dict[str, object]
    refused: dict[str, str]
    """By text, a part of the reason."""


NOT_A_NUMBER = {"x": "valid integer", "1.5": "valid integer", "": "valid integer"}
BEYOND_COUNTING = {"1" + "0" * 400: "less than or equal to 1000000000"}
FIELDS = {
    "lancedb_uri": Case(
        ".lancedb",
        {"/srv/index": "/srv/index", "s3://bucket/a b": "s3://bucket/a b"},
        {"": "at least 1 character", "s3://k:geheim@bucket/x": "must not hold a key"},
    ),
    "remote_owner": Case("", {"team": "team"}, {"two words": "match", "x" * 201: "at most 200"}),
    "lancedb_key": Case("", {"sk-1": "sk-1"}, {"two words": "match"}),
    "lancedb_key_file": Case("", {"/run/key": "/run/key"}, {}),
    "lancedb_region": Case("us-east-1", {"eu-west-1": "eu-west-1"}, {}),
    "lancedb_host": Case("", {"http://127.0.0.1:1": "http://127.0.0.1:1"}, {"x": "match"}),
    "shared_index": Case(
        "",
        {"/srv/team": "/srv/team", "s3://bucket/a": "s3://bucket/a", "": ""},
        {"./here": "must be the full path", "s3://a@b/c": "not hold a name or password"},
    ),
    "embedding_model": Case(
        "all-MiniLM-L6-v2",
        {"owner/name": "owner/name", "./folder": "./folder"},
        {"": "at least 1 character"},
    ),
    "embedding_device": Case("cpu", {"cuda:1": "cuda:1"}, {}),
    "embedding_dimension": Case(
        0,
        {"": 0, "0": 0, "256": 256},
        {"-1": "greater than or equal to 0", "x": "valid integer", **BEYOND_COUNTING},
    ),
    "allow_remote_embedding": Case(
        False,
        {"true": True, "no": False},
        {"perhaps": "valid boolean", "": "valid boolean"},
    ),
    "embedding_url": Case(
        "",
        {
            url: url
            for url in (
                "",
                "http://127.0.0.1:8080/v1",
                "http://127.9.9.9/v1",
                "http://localhost:11434/v1",
                "http://LOCALHOST/v1/",
                "https://[::1]:8443",
            )
        },
        {
            "https://user:geheim@localhost/v1": "give VECTOR_INDEX_EMBEDDING_KEY instead",
            "http://geheim@127.0.0.1/v1": "give VECTOR_INDEX_EMBEDDING_KEY instead",
            "https://api.example.com/v1": "set VECTOR_INDEX_ALLOW_REMOTE_EMBEDDING=true if",
            "http://192.168.1.2:8080": "would leave this machine for 192.168.1.2",
            "http://localhost.example.com": "would leave this machine for localhost.example.com",
            "http://127.0.0.1.example.com": "would leave this machine",
            "http://0.0.0.0:8080": "would leave this machine",
            "http://[fe80::1]:8080": "would leave this machine",
            "http://[::ffff:10.0.0.1]": "would leave this machine",
            "http://2130706433/v1": "would leave this machine",
            "127.0.0.1:8080": "is not an address such as",
            "ftp://127.0.0.1/": "is not an address such as",
            "http://127.0.0.1\\.example.com/": "is not an address such as",
            "http://127.0.0.1/v1?key=geheim": "is not an address such as",
            "http://127.0.0.1#x": "is not an address such as",
            "http://127.0.0.1/v1\n": "is not an address such as",
            "http://[::1/v1": "is not an address such as",
        },
    ),
    "embedding_key": Case(
        "",
        {"s3cret/+=": "s3cret/+="},
        {"two words": "match pattern", "ü": "match pattern", "x" * 10_001: "at most 10000"},
    ),
    "embedding_key_file": Case("", {"~/key": "~/key"}, {}),
    "rerank_model": Case("", {"owner/name": "owner/name"}, {}),
    "rerank_seconds": Case(
        1,
        {"0.5": 0.5, "60": 60.0},
        {"0": "greater than 0", "61": "less than or equal to 60", "": "valid number"},
    ),
    "llm_url": Case(
        "",
        {"http://localhost:11434/v1": "http://localhost:11434/v1", "": ""},
        {"localhost:11434": "pattern", "file:///etc/passwd": "pattern"},
    ),
    "llm_model": Case("", {"qwen3": "qwen3"}, {}),
    "llm_key": Case("", {"secret": "secret"}, {}),
    "llm_seconds": Case(
        5,
        {"0.5": 0.5, "300": 300.0},
        {"0": "greater than 0", "301": "less than or equal to 300", "": "valid number"},
    ),
    "embedding_cache_dir": Case("", {"~/cache": "~/cache"}, {}),
    "embedding_cache_max_mb": Case(
        1024,
        {"0": 0, "5": 5},
        {"-1": "greater than or equal to 0", **BEYOND_COUNTING, **NOT_A_NUMBER},
    ),
    "ignore_patterns": Case(
        (),
        {
            "": (),
            "*.log": ("*.log",),
            " *.log , build/ ,, ": ("*.log", "build/"),
            "!keep.log,# no comment": ("!keep.log", "# no comment"),
            '["*.log", "with,comma", " with space "]': ("*.log", "with,comma", " with space "),
            ' ["one"]\n': ("one",),
            "[]": (),
        },
        {
            "[abc].py": "starts with [ but is not a JSON list",
            "[" * 100_000: "starts with [ but is not a JSON list",
            "[1]": "valid string",
            '[["nested"]]': "valid string",
        },
    ),
    "max_file_bytes": Case(
        1_000_000,
        {"1": 1, "5000000": 5_000_000},
        {"0": "greater than or equal to 1", **BEYOND_COUNTING, **NOT_A_NUMBER},
    ),
    "chunk_max_chars": Case(
        1_200,
        {"100": 100, "20000": 20_000},
        {
            "99": "greater than or equal to 100",
            "20001": "less than or equal to 20000",
            **NOT_A_NUMBER,
        },
    ),
    "debounce_quiet_ms": Case(
        200,
        {"0": 0, "60000": 60_000},
        {
            "-1": "greater than or equal to 0",
            "60001": "less than or equal to 60000",
            **NOT_A_NUMBER,
        },
    ),
    "debounce_longest_ms": Case(
        2_000,
        {"0": 0, "600000": 600_000},
        {
            "-1": "greater than or equal to 0",
            "600001": "less than or equal to 600000",
            **NOT_A_NUMBER,
        },
    ),
    "rescan_seconds": Case(
        300,
        {"5": 5, "86400": 86_400},
        {"4": "greater than or equal to 5", **BEYOND_COUNTING, **NOT_A_NUMBER},
    ),
    "service_idle_minutes": Case(
        30,
        {"0.5": 0.5, "1440": 1440.0},
        {"0": "greater than 0", "nan": "greater than 0", "long": "valid number"},
    ),
    "worker_idle_minutes": Case(
        10,
        {"0.5": 0.5, "60": 60.0},
        {"0": "greater than 0", "-1": "greater than 0", "": "valid number"},
    ),
    "allow_broad_path": Case(
        False,
        {"true": True, "1": True, "no": False, "0": False},
        {"perhaps": "valid boolean", "": "valid boolean"},
    ),
    "http_token": Case(
        "",
        {"s3cret/+=": "s3cret/+="},
        {"two words": "match pattern", "ü": "match pattern", "x" * 1_001: "at most 1000"},
    ),
    "editor": Case(
        "vscode",
        {
            "Zed": "Zed",
            "none": "none",
            "nvim://open?file={path}&line={line}": "nvim://open?file={path}&line={line}",
        },
        {
            "vim": "no such editor is known; there are vscode,",
            "": "no such editor is known",
            "javascript://x/{path}/{line}": "a browser follows javascript: itself",
            "https://example.org/{path}:{line}": "a browser follows https: itself",
            "nvim://{path}": "{path} and {line} once each",
        },
    ),
    "shared_cache": Case(
        "",
        {"s3://bucket/x": "s3://bucket/x", "/net/a@b": "/net/a@b", "": ""},
        {
            "team": "must be the full path of a folder, or",
            "~nosuchuser/x": "begins with the home folder of nobody",
            "ftp://host/x": "must be the full path of a folder, or",
            "s3://": "must be the full path of a folder, or",
            "s3://user:secret@bucket/x": "not hold a name or password",
        },
    ),
    "log_level": Case(
        "WARNING",
        {"DEBUG": "DEBUG", "info": "INFO", "Error": "ERROR", "critical": "CRITICAL"},
        {"loud": "'DEBUG', 'INFO', 'WARNING', 'ERROR' or 'CRITICAL'", "": "'DEBUG'"},
    ),
}
ACCEPTED = [(name, *pair) for name, case in FIELDS.items() for pair in case.accepted.items()]
REFUSED = [(name, *pair) for name, case in FIELDS.items() for pair in case.refused.items()]


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    """No setting, as on a machine where nobody set one."""
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


@pytest.fixture
def set_variable(monkeypatch):
    def set_variable(name, value):
        monkeypatch.setenv(PREFIX + name.upper(), value)

    return set_variable


@pytest.fixture
def env_file(tmp_path):
    def write(content):
        path = tmp_path / "settings.env"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def test_every_field_is_tested_here():
    assert set(FIELDS) == set(Settings.model_fields)


def test_every_field_is_described():
    for name, field in Settings.model_fields.items():
        assert field.description, name


@pytest.mark.parametrize("name", FIELDS)
def test_an_unset_variable_means_the_default(name):
    assert getattr(load(), name) == FIELDS[name].default


@pytest.mark.parametrize(("name", "text", "value"), ACCEPTED)
def test_a_variable_sets_its_field(set_variable, name, text, value):
    set_variable(name, text)
    loaded = load()
    assert getattr(loaded, name) == value
    assert type(getattr(loaded, name)) is type(value)


@pytest.mark.parametrize(("name", "text", "value"), ACCEPTED)
def test_a_variable_sets_no_other_field(set_variable, name, text, value):
    set_variable(name, text)
    others = load().model_dump(exclude={name})
    assert others == {other: case.default for other, case in FIELDS.items() if other != name}


@pytest.mark.parametrize(("name", "text", "reason"), REFUSED)
def test_a_wrong_value_is_refused_by_its_variable(set_variable, name, text, reason):
    set_variable(name, text)
    with pytest.raises(SettingsError) as caught:
        load()
    message = str(caught.value)
    assert message.startswith(PREFIX + name.upper() + "=")
    assert reason in message
    assert message.endswith("(correct the variable, or unset it to use the default)")
    assert "\n" not in message


def test_a_wrong_secret_is_not_shown(set_variable):
    set_variable("http_token", "open sesame")
    with pytest.raises(SettingsError) as caught:
        load()
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("url", [u for u in FIELDS["embedding_url"].refused if "geheim" in u])
def test_a_password_in_an_address_is_not_shown(set_variable, url):
    set_variable("embedding_url", url)
    with pytest.raises(SettingsError) as caught:
        load()
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["https", "htps", "s3"])
@pytest.mark.parametrize(
    "name", ["embedding_url", "lancedb_host", "llm_url", "shared_cache", "shared_index"]
)
def test_no_address_may_hold_a_password_and_no_refusal_repeats_it(set_variable, name, scheme):
    set_variable(name, f"{scheme}://user:geheim@host/v1")
    with pytest.raises(SettingsError) as caught:
        load()
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("name", ["embedding_key", "llm_key", "lancedb_key"])
def test_a_key_is_not_shown_with_the_settings(set_variable, name):
    value = "geheim"
    set_variable(name, value)
    assert "geheim" not in repr(load()) + str(load())


def test_another_machine_embeds_if_that_is_allowed(set_variable):
    set_variable("embedding_url", "https://api.example.com/v1")
    set_variable("allow_remote_embedding", "true")
    assert load().embedding_url == "https://api.example.com/v1"


def test_one_key_is_enough(set_variable):
    set_variable("embedding_key", "geheim")
    set_variable("embedding_key_file", "/key")
    with pytest.raises(SettingsError, match="^VECTOR_INDEX_EMBEDDING_KEY_FILE=.* unset one") as e:
        load()
    assert "geheim" not in str(e.value)


def test_the_wrong_value_is_shown(set_variable):
    set_variable("max_file_bytes", "big")
    with pytest.raises(SettingsError, match="^VECTOR_INDEX_MAX_FILE_BYTES='big': input should be"):
        load()


def test_every_wrong_variable_is_named_at_once(set_variable):
    set_variable("max_file_bytes", "big")
    set_variable("log_level", "loud")
    with pytest.raises(SettingsError) as caught:
        load()
    assert "VECTOR_INDEX_MAX_FILE_BYTES='big'" in str(caught.value)
    assert "VECTOR_INDEX_LOG_LEVEL='LOUD'" in str(caught.value)


def test_a_variable_without_the_prefix_is_not_ours(monkeypatch):
    monkeypatch.setenv("LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("VECTOR_INDEX_NO_SUCH_SETTING", "1")
    assert load().log_level == "WARNING"


def test_settings_cannot_be_changed_afterwards():
    settings = load()
    with pytest.raises(ValidationError, match="frozen"):
        settings.log_level = "DEBUG"


def test_an_env_file_sets_fields(env_file):
    path = env_file(
        "# comment\nVECTOR_INDEX_LOG_LEVEL=debug\n"
        "export VECTOR_INDEX_LANCEDB_URI='/srv/größe'\n"
        "VECTOR_INDEX_IGNORE_PATTERNS=a,b\nOTHER=1\n"
    )
    settings = load(path)
    assert settings.log_level == "DEBUG"
    assert settings.lancedb_uri == "/srv/größe"
    assert settings.ignore_patterns == ("a", "b")


def test_the_environment_comes_before_the_env_file(set_variable, env_file):
    set_variable("log_level", "error")
    settings = load(env_file("VECTOR_INDEX_LOG_LEVEL=debug\nVECTOR_INDEX_RESCAN_SECONDS=7\n"))
    assert (settings.log_level, settings.rescan_seconds) == ("ERROR", 7)


def test_a_wrong_line_of_the_env_file_names_its_variable(env_file):
    with pytest.raises(SettingsError, match="^VECTOR_INDEX_RESCAN_SECONDS='1': "):
        load(env_file("VECTOR_INDEX_RESCAN_SECONDS=1\n"))


def test_a_dotenv_in_the_working_folder_is_not_read(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("VECTOR_INDEX_LOG_LEVEL=DEBUG\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load().log_level == "WARNING"


@pytest.mark.parametrize("name", ["missing.env", "", "."])
def test_an_env_file_that_is_none_is_refused_by_its_path(monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="give the path of a .env file"):
        load(name)


def test_an_env_file_that_is_no_text_is_refused_by_its_path(env_file):
    path = env_file(b"VECTOR_INDEX_LOG_LEVEL=\xff\xfe\n")
    with pytest.raises(SettingsError) as caught:
        load(path)
    assert path in str(caught.value)
    assert str(caught.value).endswith("make it a UTF-8 file you may read")


values = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
lines = st.tuples(st.sampled_from(list(Settings.model_fields)), values).map(
    lambda pair: f"{PREFIX}{pair[0].upper()}={pair[1]}".encode()
)


@pytest.mark.slow
@given(st.binary() | st.lists(lines).map(b"\n".join))
def test_any_env_file_sets_fields_or_is_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzzed.env"
    path.write_bytes(data)
    with contextlib.suppress(SettingsError):
        load(str(path))


def test_a_variable_that_is_no_setting_is_named_with_the_nearest_one(tmp_path, monkeypatch):
    monkeypatch.setenv("VECTOR_INDEX_CHUNK_MAX_CHAR", "500")
    monkeypatch.setenv("VECTOR_INDEX_RUNTIME_DIR", "/run")
    file = tmp_path / ".env"
    file.write_text("VECTOR_INDEX_ZZZ=1\nvector_index_log_level=INFO\nOTHER=1\n")
    assert mistyped(str(file)) == [
        "VECTOR_INDEX_CHUNK_MAX_CHAR is set but is no setting, so it has no effect; did you mean "
        "VECTOR_INDEX_CHUNK_MAX_CHARS?",
        "VECTOR_INDEX_ZZZ is set but is no setting, so it has no effect",
    ]


def test_the_variables_of_all_settings_are_known(monkeypatch):
    for field in Settings.model_fields:
        monkeypatch.setenv(f"VECTOR_INDEX_{field.upper()}", "1")
    assert mistyped() == []
