"""The arguments of the tools, and their validation. Pure."""

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


_FIELDS: Mapping[str, Object] = {
    SEARCH: Object(
        {
            "dataset": Field(
                Text(1, 8_000),
                "Id of the dataset to search, from knowledge.listDatasets; or several ids, "
                'separated by commas; or "*" for all',
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
                "What you want to know, in your own words; exact names and numbers work, too",
            ),
            "topK": Field(
                TOP_K,
                "Number of results; by default the dataset's defaultTopK",
                is_required=False,
            ),
        }
    ),
    LIST: Object(
        {
            "includeErrors": Field(
                Boolean(),
                "Whether to list also datasets that cannot be searched, with the reason",
                is_required=False,
                default=False,
            )
        }
    ),
}
_HEADLINES = {SEARCH: "Invalid search parameters", LIST: "Invalid arguments"}


class WrongArguments(Exception):
    """Raised for a call with wrong arguments; its message goes to the client."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of a search."""

    ids: tuple[str, ...]
    """The ids of the datasets to search; empty for all."""
    query: str
    top_k: int | None
    """How many results to return; None for the default of the datasets."""


def asked(given: object) -> Asked:
    """Check the arguments of a search.

    Raises:
        WrongArguments: If they do not fit the tool's schema.
    """
    if isinstance(given, dict) and isinstance(ids := given.get("dataset"), list):
        if len(ids) > _MOST_IDS or not all(isinstance(each, str) and each for each in ids):
            raise WrongArguments(f"{_HEADLINES[SEARCH]}: Expected ids of datasets at dataset")
        given = {**given, "dataset": ",".join(ids)}
    found = _checked(SEARCH, given)
    named = tuple(dict.fromkeys(each.strip() for each in found["dataset"].split(",")))
    ids = tuple(each for each in named if each) or (found["dataset"],)
    return Asked(() if EVERYTHING in ids else ids, found["query"], found.get("topK"))


def includes_errors(given: object) -> bool:
    """Check the arguments of a list, and return whether it is to include bad datasets.

    Raises:
        WrongArguments: If the arguments do not fit the tool's schema.
    """
    return bool(_checked(LIST, given)["includeErrors"])


def schema_of(name: str) -> Schema:
    """Return the JSON schema of a tool's arguments."""
    return _FIELDS[name].schema()


def _checked(name: str, given: object) -> Mapping[str, Any]:
    issues = Issues()
    found: Mapping[str, Any] = _FIELDS[name].check({} if given is None else given, (), issues)
    problems = [_sentence(issue) for issue in issues.found]
    if isinstance(given, dict) and (unknown := [k for k in given if k not in _FIELDS[name].fields]):
        keys = ", ".join(f"'{shown(str(key))}'" for key in unknown[:_MOST_IDS])
        problems.append(f": Unrecognized key(s) in object: {keys}")
    if problems:
        raise WrongArguments(f"{_HEADLINES[name]}: {', '.join(problems)}")
    return found


def _sentence(issue: Mapping[str, Any]) -> str:
    place = ".".join(map(str, issue["path"]))
    return f"{issue['message']} at {place}" if place else str(issue["message"])
