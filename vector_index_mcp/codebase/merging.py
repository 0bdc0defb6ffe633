"""Merges the answers of several projects into one. Pure."""

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from vector_index_mcp.codebase.hits import Mode, SearchHit, SearchResult
from vector_index_mcp.foreign import visible


def merge(
    projects: Mapping[str, Path],
    results: Mapping[str, SearchResult],
    notes: Sequence[str],
    is_sample: Callable[[str, int, int], bool] | None = None,
    query: str = "",
) -> SearchResult:
    """Merge the hits of all projects, best first, without duplicates and the sample itself.

    Args:
        projects: The folders of the projects, by name.
        results: What each project has answered, the first project first.
        notes: What else limits the answer, in sentences.
        is_sample: Whether lines of a path, from the first to the last, are the sample's.
        query: What was asked for, as it was typed.
    """
    places: dict[tuple[str, int, int], SearchHit] = {}
    searched = [result for result in results.values() if not result.why_none]
    absent = _in_all([result.absent for result in searched])
    respelled = _only({result.respelled for result in results.values()}) if absent else ""
    is_found = any(result.results and not _is_nearest(result) for result in results.values())
    is_text = any(_has_text(result, query) for result in results.values())
    is_pattern = not is_text and any(r.is_pattern and r.results for r in results.values())
    # If one project has the word, the file, the name that was meant or what an expression matches,
    # the hits of the others are only the nearest ones: they are left out.
    for name, result in results.items():
        if (is_found and _is_nearest(result)) or result.is_pattern != is_pattern:
            continue
        if result.respelled != respelled and (respelled or not absent):
            continue
        for hit in result.results:
            path = f"{projects[name].as_posix()}/{hit.file_path}"
            place = (path, hit.start_line, hit.end_line)
            if is_sample is not None and is_sample(*place):
                continue
            if place not in places or places[place].score < hit.score:
                places[place] = hit.model_copy(update={"file_path": path})
    hits = sorted(places.values(), key=lambda hit: -hit.score)  # stable: the first project first
    whys = {name: r.why_none for name, r in results.items() if r.why_none and not hits}
    limits = {name: r.note for name, r in results.items() if r.note}
    return SearchResult(
        results=hits,
        mode=_mode_of(results),
        is_pattern=is_pattern,
        absent=absent,
        meant={w: name for r in reversed([*results.values()]) for w, name in r.meant.items()},
        respelled=respelled,
        no_file=next(iter(_in_all([[result.no_file] for result in results.values()])), ""),
        missing=_in_all([result.missing for result in searched]),
        is_unlikely=bool(hits)
        and all(each.is_unlikely for each in results.values() if each.results),
        why_none=" ".join(_by_names(whys)) or None,
        note=" ".join([*_by_names(limits), *notes]) or None,
    )


def _is_nearest(result: SearchResult) -> bool:
    """Whether a project has not what was asked for by its name, but only what is near it."""
    return bool(result.absent or result.no_file)


def _has_text(result: SearchResult, query: str) -> bool:
    """Whether a project took for text what may be an expression, since a file contains it."""
    found = (hit.extracted_text_chunk for hit in result.results)
    return bool(query) and not result.is_pattern and any(query in text for text in found)


def _by_names(notes: Mapping[str, str]) -> list[str]:
    """The notes of projects, each after the names of all projects that have it."""
    names: dict[str, list[str]] = {}
    for name, note in notes.items():
        names.setdefault(note, []).append(name)
    return [f"{visible(', '.join(which))}: {note}" for note, which in names.items()]


def _mode_of(results: Mapping[str, SearchResult]) -> Mode:
    return "lexical" if all(r.mode == "lexical" for r in results.values()) else "hybrid"


def _only(names: Set[str]) -> str:
    """The name that is not empty, if there is one alone; else an empty one."""
    given = names - {""}
    return next(iter(given)) if len(given) == 1 else ""


def _in_all(lists: Sequence[list[str]]) -> list[str]:
    first, *others = lists or [[]]
    return [word for word in first if all(word in other for other in others)]
