"""Searches several projects as one: asks the service of each, and merges the answers.

No project is indexed twice for this, and none waits for another. Hits of different projects are
merged by their scores, which say how often such a hit is right. Results have absolute paths, since
a relative path would not show in which project the file lies.
"""

import difflib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from vector_index_mcp.codebase import rendering, wire
from vector_index_mcp.codebase.arguments import (
    SearchArguments,
    StatusArguments,
    TriggerArguments,
    WorkspaceArguments,
)
from vector_index_mcp.codebase.hits import SearchResult
from vector_index_mcp.codebase.limits import LARGEST_OFFSET, LONGEST_QUERY_CHARS, MAX_TOKENS, TOP_K
from vector_index_mcp.codebase.merging import merge
from vector_index_mcp.codebase.places import without_line
from vector_index_mcp.codebase.triggering import PATIENCE_SECONDS
from vector_index_mcp.errors import SYSTEM_ERRORS, BackgroundError, QueryError, VectorIndexError
from vector_index_mcp.errors import sentence as sentence_of
from vector_index_mcp.files.glob import first_wild
from vector_index_mcp.foreign import visible

Values: TypeAlias = dict[str, Any]
Ask: TypeAlias = Callable[[Path, str, Values], Awaitable[Values]]
"""Sends one of `codebase.calls` to the service of a project, and starts the service if needed.

Raises a VectorIndexError if that fails.
"""

_PATIENCE_SECONDS = 20.0  # for one project, whose service may take one or two to start


class Workspace:
    """The projects that one client searches at once. It has no index, but asks their services."""

    def __init__(self, projects: Sequence[Path], ask: Ask) -> None:
        """Make one.

        Args:
            projects: The folders of the projects, resolved; each once.
            ask: Asks the service of a project.
        """
        self.projects = names_of(projects)
        self._ask = ask

    is_busy = False  # the services do all work
    state = "WATCHING"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer questions while the context lasts."""
        yield

    async def search(self, asked: WorkspaceArguments) -> SearchResult:
        """The best hits of all projects, best first, their paths absolute.

        Raises:
            QueryError: If the query or a filter is invalid for all projects.
            BackgroundError: If no service of a project answers.
        """
        chosen = self._meant_by(asked)
        given = {name: self._given(asked, path) for name, path in chosen.items()}
        sample, most = None, asked.offset + asked.top_k
        failed: dict[str, Exception] = {}
        if asked.similar_to and asked.similar_to.strip():
            sample, failed = await self._share_sample(asked.similar_to, given)
            most = min(most + 1, LARGEST_OFFSET + TOP_K[1])  # one hit may be the sample itself

        async def found(name: str) -> SearchResult | str:
            return await self._found(name, given[name], most)

        others = [name for name in given if name not in failed]
        answers = failed | await self._of_each(others, found)
        refused = [answer for answer in answers.values() if isinstance(answer, str)]
        results = {n: answer for n, answer in answers.items() if isinstance(answer, SearchResult)}
        failures = {n: answer for n, answer in answers.items() if isinstance(answer, Exception)}
        if not results:
            if refused:
                raise QueryError(refused[0])
            raise BackgroundError("; ".join(_in_words(failures)))
        is_sample = sample.overlap if sample is not None else None
        merged = merge(self.projects, results, _in_words(failures), is_sample, asked.query.strip())
        shown = merged.results[asked.offset : asked.offset + asked.top_k]
        return rendering.fitted(merged.model_copy(update={"results": shown}), asked.max_tokens)

    async def status(self, _: StatusArguments) -> dict[str, wire.IndexStatus | Exception]:
        """The status of each project's index, or the error if it is unknown."""

        async def found(name: str) -> wire.IndexStatus:
            return wire.IndexStatus.model_validate(await self._asked(name, "status", {}))

        return await self._of_each(self.projects, found)

    async def trigger(
        self, asked: TriggerArguments
    ) -> dict[str, wire.ProjectTriggered | Exception]:
        """Bring every index up to date; see `triggering`."""

        async def found(name: str) -> wire.ProjectTriggered:
            answer = await self._asked(name, "trigger", asked.model_dump())
            result = wire.TriggerResult.model_validate(answer)
            return wire.ProjectTriggered(
                project_path=str(self.projects[name]),
                **result.model_dump(include={*wire.ProjectTriggered.model_fields}),
            )

        return await self._of_each(self.projects, found, PATIENCE_SECONDS + _PATIENCE_SECONDS)

    async def _of_each(
        self,
        names: Iterable[str],
        ask: Callable[[str], Awaitable[Any]],
        patience: float | None = None,
        is_enough: Callable[[dict[str, Any]], bool] = lambda _: False,
    ) -> dict[str, Any]:
        """Ask all projects at once; returns the answer of each, or its error.

        Args:
            names: The projects.
            ask: Asks the one of this name.
            patience: How many seconds each may take.
            is_enough: Whether these answers suffice; those that are missing are None then.
        """
        answers: dict[str, Any] = dict.fromkeys(names)
        patience = patience or _PATIENCE_SECONDS

        async def one(name: str) -> None:
            try:
                with anyio.fail_after(patience):
                    answers[name] = await ask(name)
            except TimeoutError:
                why = f"`vector-index-mcp logs {self.projects[name]}` may show why"
                answers[name] = BackgroundError(f"no answer within {patience:.0f} s; {why}")
            except (VectorIndexError, *SYSTEM_ERRORS) as error:
                answers[name] = error
            if is_enough(answers):
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for name in answers:
                tasks.start_soon(one, name)
        return answers

    async def _asked(self, name: str, call: str, given: Values) -> Values:
        return await self._ask(self.projects[name], call, given)

    async def _found(self, name: str, given: Values, most: int) -> SearchResult | str:
        """The best hits of one project; if it rejects the query, a sentence that says why."""
        pages: list[SearchResult] = []
        for first in range(0, most, TOP_K[1]):
            page = {"offset": first, "top_k": min(TOP_K[1], most - first)}
            answer = await self._asked(name, "find", given | page)
            if "refused" in answer:
                return str(answer["refused"])
            pages.append(SearchResult.model_validate(answer))
            if len(pages[-1].results) < page["top_k"]:
                break
        hits = [hit for page in pages for hit in page.results]
        return pages[0].model_copy(update={"results": hits})

    def _meant_by(self, asked: WorkspaceArguments) -> dict[str, str]:
        """The projects to search, each with the path in it that limits the search.

        Raises:
            QueryError: If there is no such project, or several.
        """
        chosen = self.projects
        if wanted := (asked.project or "").strip():
            name = _name_meant(wanted, self.projects)
            chosen = {name: self.projects[name]}
        paths = {name: path_in(root, asked.path or "", name) for name, root in chosen.items()}
        inside = {name: path for name, path in paths.items() if path is not None}
        if not inside:
            roots = ", ".join(visible(str(root)) for root in chosen.values())
            raise QueryError(f"path={asked.path!a} lies in none of the projects: {roots}")
        return inside

    def _given(self, asked: WorkspaceArguments, path: str) -> Values:
        """The arguments for one project, with room for whole hits: merged ones are shortened."""
        own = asked.model_dump(include={*SearchArguments.model_fields}, exclude_unset=True)
        return own | {"path": path, "max_tokens": MAX_TOKENS[1]}

    async def _share_sample(
        self, similar_to: str, given: dict[str, Values]
    ) -> "tuple[_Lines, dict[str, Exception]]":
        """Change `given`: each project searches for similar code, or if it cannot, for its text.

        Returns:
            The place of the sample, since nested projects may contain it, too; and the errors of
            the projects of `given` that failed meanwhile, by name.

        Raises:
            QueryError: If `similar_to` names no sample.
            BackgroundError: If no sample was found, but not every project could be asked.
        """
        inside = {name: path_in(root, similar_to, name) for name, root in self.projects.items()}

        async def sampled(name: str) -> Values:
            return await self._asked(name, "sample", {"similar_to": inside[name]})

        asked = [name for name, path in inside.items() if path is not None]
        answers = await self._of_each(asked, sampled, is_enough=_has_first_sample)
        failures = {n: answer for n, answer in answers.items() if isinstance(answer, Exception)}
        name = next((name for name, answer in answers.items() if _is_sample(answer)), None)
        if name is None:
            raise _no_sample(similar_to, failures)
        answer = answers[name]
        for other, values in given.items():
            if other == name:
                values["similar_to"] = inside[name]
            else:
                about = values["query"]
                query = f"{about}\n{answer['text']}"[:LONGEST_QUERY_CHARS]
                values.update(similar_to=None, query=query, regex=False)
                if like := answer.get("like"):
                    values["like"] = like | {"about": about}
        lines = _Lines(f"{self.projects[name].as_posix()}/{answer['path']}", *answer["lines"])
        return lines, {name: error for name, error in failures.items() if name in given}


@dataclass(frozen=True, slots=True)
class _Lines:
    """Some lines of a file, by its absolute path."""

    path: str
    first: int
    last: int

    def overlap(self, path: str, first: int, last: int) -> bool:
        return path == self.path and first <= self.last and self.first <= last


def names_of(projects: Sequence[Path]) -> dict[str, Path]:
    """Projects by the names of their folders, with parent folders where several have one name."""

    def named(project: Path, length: int) -> tuple[str, ...]:
        return project.parts[-length:]

    names: dict[str, Path] = {}
    for project in dict.fromkeys(projects):
        length, others = 1, [other for other in projects if other != project]
        while length < len(project.parts) and named(project, length) in (
            named(other, length) for other in others
        ):
            length += 1
        is_whole = 1 < length == len(project.parts)
        names[project.as_posix() if is_whole else "/".join(named(project, length))] = project
    return names


def path_in(project: Path, path: str, name: str = "") -> str | None:
    """A path or glob relative to a project; empty for the whole project, None if it lies elsewhere.

    Args:
        project: The project's folder, resolved.
        path: The path as the user wrote it; a relative one counts in every project.
        name: What the project is called. A relative path may begin with it, unless that is the
            path of something in the project.
    """
    wanted = path.strip()
    if not Path(wanted).is_absolute():
        beginning = f"{name}/"
        if not name or not wanted.startswith(beginning):
            return wanted
        below = wanted[len(beginning) :]
        is_own = _holds(project, wanted) or not _holds(project, below)
        return wanted if is_own and os.path.exists(project / name) else below
    root, ways = project.as_posix(), [wanted.replace(os.sep, "/")]
    with suppress(OSError, ValueError):  # no valid path
        ways.append(os.path.realpath(wanted))
    for written in dict.fromkeys(ways):
        if f"{root}/".startswith(f"{written.rstrip('/')}/"):  # the project or a folder above it
            return ""
        if written.startswith(f"{root}/"):
            return written[len(root) + 1 :]
    return None


def _holds(project: Path, path: str) -> bool:
    """Return whether there is what a path, perhaps with a line, or the folders of a glob mean."""
    names = without_line(path).split("/")
    with suppress(OSError, ValueError):  # no valid path
        return project.joinpath(*names[: first_wild(names)]).exists()
    return False


def _name_meant(wanted: str, projects: Mapping[str, Path]) -> str:
    """The name of the project that is meant by its name, its path, or an end of its path.

    Raises:
        QueryError: If there is no such project, or several.
    """
    if (path := wanted.rstrip("/\\")) in projects:
        return path
    end = Path(path).parts
    meant = [name for name, root in projects.items() if root.parts[-len(end) :] == end]
    if len(meant) == 1:
        return meant[0]
    if meant:
        choices = ", ".join(visible(f"{name} ({projects[name]})") for name in meant)
        raise QueryError(f"project={wanted[:100]!a} means several: {choices}; name one of them")
    nearest = difflib.get_close_matches(path[:100], projects, 1)
    known = ", ".join(map(visible, dict.fromkeys([*nearest, *projects])))
    raise QueryError(f"there is no project {wanted[:100]!a} here; there are {known}")


def _is_sample(answer: Values | Exception | None) -> bool:
    return isinstance(answer, dict) and "text" in answer


def _has_first_sample(answers: Mapping[str, Values | Exception | None]) -> bool:
    """Whether a project has answered with a sample, and all before it have answered otherwise."""
    return any(map(_is_sample, takewhile(lambda answer: answer is not None, answers.values())))


def _no_sample(similar_to: str, failures: Mapping[str, Exception]) -> VectorIndexError:
    """The error that `similar_to` names nothing, or nothing in the projects that have answered."""
    if failures:
        said = " ".join(_in_words(failures))
        return BackgroundError(f"similar_to={similar_to[:200]!a} was not found. {said}")
    return QueryError(
        f"similar_to names no indexed line of a project here: {similar_to[:200]!a}; write it "
        'as results show it, "/path/to/project/src/app.py:120"'
    )


def _in_words(failures: Mapping[str, Exception]) -> list[str]:
    return [
        f"{visible(name)} could not be searched: {visible(sentence_of(e))}."
        for name, e in failures.items()
    ]
