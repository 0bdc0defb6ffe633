"""What the tools take, and what is said of wrong arguments. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.checks import BLANKS, Boolean, Field, Issues, Object, Schema, Text, shown
from vector_index_mcp.datasets.manifest import TOP_K

SEARCH, LIST = "knowledge.search", "knowledge.listDatasets"
EVERYTHING = "*"
_LONGEST_QUERY = 1_024
_MOST_IDS = 100
_QUERY_WORDS = "Query must be non-empty and less than 1024 characters"


def _is_said(query: str) -> bool:
    return not query or bool(query.strip(BLANKS))


_FIELDS: Mapping[str, Object] = {
    SEARCH: Object(
        {
            "dataset": Field(
                Text(1, 8_000),
                "Id of the dataset to search, as knowledge.listDatasets lists it; several, "
                'separated by commas, or "*" for all',
            ),
            "query": Field(
                Text(
                    1,
                    _LONGEST_QUERY,
                    refinements=(
                        (lambda text: not text or bool(text.strip(BLANKS)), _QUERY_WORDS),
                    ),
                    is_trimmed=True,
                ),
                "What you want to know, in words; names and numbers are found, too",
            ),
            "topK": Field(
                TOP_K,
                "Number of results; the dataset's defaultTopK if left out",
                is_required=False,
            ),
        }
    ),
    LIST: Object(
        {
            "includeErrors": Field(
                Boolean(),
                "Whether datasets that cannot be served are listed, with the reason",
                is_required=False,
                default=False,
            )
        }
    ),
}
_SAID = {SEARCH: "Invalid search parameters", LIST: "Invalid arguments"}


class WrongArguments(Exception):
    """Raised for a call that is none; says what the client is told."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a search is asked for."""

    ids: tuple[str, ...]
    """Of datasets; empty for all of them."""
    query: str
    top_k: int | None
    """How many results; None for as many as a dataset usually gives."""


def asked(given: object) -> Asked:
    """The arguments of a search as they are to be used.

    Raises:
        WrongArguments: If they are not for it.
    """
    if isinstance(given, dict) and isinstance(ids := given.get("dataset"), list):
        if len(ids) > _MOST_IDS or not all(isinstance(each, str) and each for each in ids):
            raise WrongArguments(f"{_SAID[SEARCH]}: Expected ids of datasets at dataset")
        given = {**given, "dataset": ",".join(ids)}
    found = _checked(SEARCH, given)
    named = tuple(dict.fromkeys(each.strip() for each in found["dataset"].split(",")))
    ids = tuple(each for each in named if each) or (found["dataset"],)
    return Asked(() if EVERYTHING in ids else ids, found["query"], found.get("topK"))


def includes_errors(given: object) -> bool:
    """Whether a list is to name what cannot be served.

    Raises:
        WrongArguments: If the arguments are not for it.
    """
    return bool(_checked(LIST, given)["includeErrors"])


def schema_of(name: str) -> Schema:
    """The JSON schema of a tool's arguments."""
    return _FIELDS[name].schema()


def _checked(name: str, given: object) -> Mapping[str, Any]:
    issues = Issues()
    found: Mapping[str, Any] = _FIELDS[name].check({} if given is None else given, (), issues)
    said = [_sentence(issue) for issue in issues.found]
    if isinstance(given, dict) and (unknown := [k for k in given if k not in _FIELDS[name].fields]):
        keys = ", ".join(f"'{shown(str(key))}'" for key in unknown[:_MOST_IDS])
        said.append(f": Unrecognized key(s) in object: {keys}")
    if said:
        raise WrongArguments(f"{_SAID[name]}: {', '.join(said)}")
    return found


def _sentence(issue: Mapping[str, Any]) -> str:
    place = ".".join(map(str, issue["path"]))
    return f"{issue['message']} at {place}" if place else str(issue["message"])
