"""Every setting, with its default and unit; frozen once it is read.

Nothing else in the package reads settings from the environment. A `.env` file is read only from
the path that the caller names, never from the indexed project: a cloned repository must not decide
where its index goes or which model is loaded.
"""

import difflib
import hashlib
import ipaddress
import json
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from vector_index_mcp import editors
from vector_index_mcp.errors import SettingsError

PREFIX = "VECTOR_INDEX_"
SECRETS = frozenset({"embedding_key", "http_token", "lancedb_key", "llm_key"})
"""Fields whose values no message repeats."""
# The others are refused if they hold a password, and a message must not repeat that either.
_UNSHOWN = SECRETS | {
    "embedding_url",
    "lancedb_host",
    "lancedb_uri",
    "llm_url",
    "shared_cache",
    "shared_index",
}

_OTHERS = frozenset({"ENV_FILE", "RUNTIME_DIR"})
"""Variables with our prefix that are no settings; they are read before settings are loaded."""
# Deliberately narrow: no other parser of URLs can find another host in what matches.
_SERVER = re.compile(
    r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:/[A-Za-z0-9._~/%-]*)?"
)
_ADDRESS = r"^(https?://.+)?$"
_BUCKETS = ("s3", "gs", "az")
_STORE = re.compile(rf"(?:{'|'.join(_BUCKETS)})://[A-Za-z0-9]")
_STAMP_DIGITS = 16
_MOST = 1_000_000_000  # the limit of numbers that have no limit of their own


class Settings(BaseModel):
    """The settings of one process. The environment variable is the field's name with the prefix."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    lancedb_uri: str = Field(
        ".lancedb",
        min_length=1,
        description="Where the index lies: a folder (relative to the project) or a LanceDB URI",
    )
    remote_owner: str = Field(
        "",
        max_length=200,
        pattern=r"^[!-~]*$",
        description="The owner's name of an index on object storage or a server, the same on all "
        "machines that are meant to keep it; empty: only this project on this machine is",
    )
    lancedb_key: str = Field(
        "",
        repr=False,
        pattern=r"^[!-~]*$",
        max_length=10_000,
        description="The key of LanceDB's own server, for an index at db://",
    )
    lancedb_key_file: str = Field(
        "", description="A file that holds this key and nothing else, instead of it"
    )
    lancedb_region: str = Field("us-east-1", description="The region of LanceDB's own server")
    lancedb_host: str = Field(
        "",
        pattern=_ADDRESS,
        description="The address of LanceDB's own server, if it is not that of LanceDB Cloud",
    )
    shared_index: str = Field(
        "",
        description="Where a team publishes the index of the project: a folder (an absolute path) "
        "or s3://, gs:// or az://; an index that is empty is fetched from there; empty for none",
    )
    embedding_model: str = Field(
        "all-MiniLM-L6-v2",
        min_length=1,
        description="The embedding model: a name on the Hugging Face hub, or a folder",
    )
    embedding_device: str = Field(
        "cpu", description="The device that embeds, in PyTorch's words: cpu, cuda, mps"
    )
    embedding_dimension: int = Field(
        0,
        ge=0,
        le=_MOST,
        description="How many numbers of each vector are used, the first ones, of a model that was "
        "trained for that (Matryoshka); empty or 0 for all",
    )
    allow_remote_embedding: bool = Field(
        False,
        description="Whether the server at the embedding URL may be another machine: texts of what "
        "is indexed, and queries, then leave this one",
    )
    embedding_url: str = Field(
        "",
        description="An OpenAI-compatible server, up to /v1, that embeds instead of this program, "
        "with the embedding model of that name there; empty for none",
    )
    embedding_key: str = Field(
        "",
        repr=False,
        pattern=r"^[!-~]*$",
        max_length=10_000,
        description="The bearer token of that server, if any",
    )
    embedding_key_file: str = Field(
        "", description="A file that holds this token and nothing else, instead of it"
    )
    rerank_model: str = Field(
        "",
        description="A cross-encoder that ranks what questions in words find in code and "
        "documents: a name on the Hugging Face hub, or a folder; empty for none",
    )
    rerank_seconds: float = Field(
        1,
        gt=0,
        le=60,
        description="Longest wait for the cross-encoder, for each search of code, in seconds; what "
        "it has not judged by then is ranked without it",
    )
    llm_url: str = Field(
        "",
        pattern=_ADDRESS,
        description="An OpenAI-compatible server, up to /v1, that words queries over documents in "
        "other ways and ranks what they find; empty for none",
    )
    llm_model: str = Field("", description="The model that the server at the LLM URL is to use")
    llm_key: str = Field("", repr=False, description="The bearer token of that server, if any")
    llm_seconds: float = Field(
        5, gt=0, le=300, description="Longest wait for that server, for each query, in seconds"
    )
    embedding_cache_dir: str = Field(
        "", description="Folder of the embedding cache; empty: the user's cache folder"
    )
    embedding_cache_max_mb: int = Field(
        1024,
        ge=0,
        le=_MOST,
        description="Size at which the embedding cache drops its oldest vectors, in MB",
    )
    shared_cache: str = Field(
        "",
        description="A folder or bucket (s3://, gs://, az://) with vectors that others have made, "
        "which are used instead of embedding the same chunks again; empty for none",
    )
    ignore_patterns: tuple[str, ...] = Field(
        (),
        description="More patterns to ignore, in .gitignore syntax; comma-separated or JSON",
    )
    max_file_bytes: int = Field(
        1_000_000,
        ge=1,
        le=_MOST,
        description="Files of a project larger than this many bytes are skipped; documents "
        "may have 10,000,000",
    )
    chunk_max_chars: int = Field(
        1_200, ge=100, le=20_000, description="Longest chunk, in characters"
    )
    debounce_quiet_ms: int = Field(
        200, ge=0, le=60_000, description="Quiet time after a change before it is indexed, in ms"
    )
    debounce_longest_ms: int = Field(
        2_000, ge=0, le=600_000, description="Longest wait while changes keep coming, in ms"
    )
    rescan_seconds: int = Field(
        300,
        ge=5,
        le=_MOST,
        description="Time between two scans that look for missed changes, in seconds",
    )
    service_idle_minutes: float = Field(
        30, gt=0, description="Time without clients and work after which the service ends, in min"
    )
    worker_idle_minutes: float = Field(
        10, gt=0, description="Time unused after which the embedding worker ends, in min"
    )
    allow_broad_path: bool = Field(
        False, description="Whether a drive's root or a home folder may be indexed"
    )
    http_token: str = Field(
        "",
        pattern=r"^[!-~]*$",
        max_length=1_000,
        description="The token that HTTP requests to documents and datasets must show; empty: none",
    )
    editor: str = Field(
        editors.DEFAULT,
        description="What opens a file from the page: vscode, cursor, zed, idea and others; an "
        "address with {path} and {line}; or none",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        "WARNING", description="How much is logged to stderr"
    )

    def stamps(self) -> dict[str, str]:
        """A hash of each value, by field: shows which of them differ, and does not show them."""
        values = self.model_dump(mode="json")
        return {
            field: hashlib.sha256(json.dumps(value).encode()).hexdigest()[:_STAMP_DIGITS]
            for field, value in values.items()
        }

    @field_validator("lancedb_uri")
    @classmethod
    def _a_place(cls, value: str) -> str:
        scheme, has_scheme, rest = value.partition("://")
        if has_scheme and scheme in _BUCKETS and "@" in rest.partition("/")[0]:
            raise ValueError("must not hold a key, give the key as the cloud's own tools expect it")
        return value

    @field_validator("embedding_dimension", mode="before")
    @classmethod
    def _all(cls, value: object) -> object:
        return 0 if value == "" else value

    @field_validator("embedding_url", "lancedb_host", "llm_url")
    @classmethod
    def _without_password(cls, value: str, info: ValidationInfo) -> str:
        if "@" in value:
            key = f"{PREFIX}{str(info.field_name).partition('_')[0].upper()}_KEY"
            raise ValueError(f"must not hold a name or password, give {key} instead")
        return value

    @field_validator("embedding_url")
    @classmethod
    def _a_server(cls, value: str, info: ValidationInfo) -> str:
        if value and not _SERVER.fullmatch(value):
            raise ValueError("is not an address such as http://127.0.0.1:8080/v1")
        if value and not is_local(value) and not info.data.get("allow_remote_embedding"):
            raise ValueError(
                f"texts would leave this machine for {host_of(value)}, set "
                f"{PREFIX}ALLOW_REMOTE_EMBEDDING=true if they may"
            )
        return value

    @field_validator("embedding_key_file", "lancedb_key_file")
    @classmethod
    def _one_key(cls, value: str, info: ValidationInfo) -> str:
        key = str(info.field_name).removesuffix("_file")
        if value and info.data.get(key):
            raise ValueError(f"there is a key in {PREFIX}{key.upper()} as well, unset one of them")
        return value

    @field_validator("shared_cache", "shared_index")
    @classmethod
    def _a_store(cls, value: str) -> str:
        return store_of(value) if value else value

    @field_validator("ignore_patterns", mode="before")
    @classmethod
    def _split_patterns(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("["):
            try:
                return json.loads(value)
            except (ValueError, RecursionError) as error:  # the latter: too many brackets
                raise ValueError(f"starts with [ but is not a JSON list ({error})") from None
        return [part.strip() for part in value.split(",") if part.strip()]

    @field_validator("editor")
    @classmethod
    def _an_editor(cls, value: str) -> str:
        editors.template_of(value)
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


def host_of(url: str) -> str:
    """The host that an embedding URL names."""
    named = _SERVER.fullmatch(url)
    return named[1].lower() if named else ""


def is_local(url: str) -> bool:
    """Whether an embedding URL leads to this machine, so that texts sent there stay here."""
    host = host_of(url).strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or no host at all
        return False


def load(env_file: str | None = None) -> Settings:
    """Read the settings from the environment and from `env_file`; the environment takes precedence.

    Raises:
        SettingsError: If a value is out of range, or `env_file` is not a readable file.
    """
    if env_file is not None and not os.path.isfile(env_file):
        raise SettingsError(f"the env file {env_file} is not a file; give the path of a .env file")
    try:
        return Settings.model_validate({**_given(_lines_of(env_file)), **_given(os.environ)})
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"the env file {env_file} cannot be read ({error}); make it a UTF-8 file you may read"
        ) from None


def store_of(value: str) -> str:
    """The absolute path of a folder, or the URI of a bucket, that `value` names.

    Raises:
        ValueError: If it is neither, or holds a name or a password; the message does not repeat it.
    """
    if "://" in value and "@" in value:
        raise ValueError("must not hold a name or password")
    if _STORE.match(value):
        return value
    try:
        path = Path(value).expanduser()
    except RuntimeError:
        raise ValueError("begins with the home folder of nobody") from None
    if "://" in value or not path.is_absolute():
        raise ValueError("must be the full path of a folder, or a URI like s3://bucket/folder")
    return str(path)


def origins(env_file: str | None = None) -> dict[str, str]:
    """The source of each given setting, by field: `environment`, or the path of the env file."""
    lines, variables = _given(_lines_of(env_file)), _given(os.environ)
    found = {**dict.fromkeys(lines, f"{env_file}"), **dict.fromkeys(variables, "environment")}
    return {field: found[field] for field in Settings.model_fields if field in found}


def mistyped(env_file: str | None = None) -> list[str]:
    """A sentence for each variable that has our prefix but is no setting."""
    names = {name.upper() for name in (*os.environ, *_lines_of(env_file))}
    known = {field.upper() for field in Settings.model_fields} | _OTHERS
    ours = {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)}
    return [_hint(name, known) for name in sorted(ours - known)]


def _lines_of(env_file: str | None) -> Mapping[str, str | None]:
    """The variables in `env_file`; the value is None on a line without `=`."""
    if not env_file:
        return {}
    from dotenv import dotenv_values  # here, since it costs 0.01 s and few use an env file

    return dotenv_values(env_file, encoding="utf-8")


def _given(variables: Mapping[str, str | None]) -> dict[str, str]:
    """The values of settings among `variables`, by field; the case of names does not matter."""
    named = {name.upper(): value for name, value in variables.items() if value is not None}
    fields = {field: f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    return {field: named[name] for field, name in fields.items() if name in named}


def _hint(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {PREFIX}{near[0]}?" if near else ""
    return f"{PREFIX}{name} is set but is no setting, so it has no effect{meant}"


def _explain(error: ValidationError) -> str:
    """Name the variable of each wrong setting and what is wrong with it."""
    lines = []
    for problem in error.errors():
        field = str(problem["loc"][0])
        shown = "…" if field in _UNSHOWN else repr(problem["input"])
        message = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{PREFIX}{field.upper()}={shown}: {message[:1].lower()}{message[1:]}")
    return "; ".join(lines) + " (correct the variable, or unset it to use the default)"
