"""What is said of commands and options that there are not. Pure."""

import argparse
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

_OPTION = re.compile(r"^  (?:-\w(?: \S+)?, )?(--[\w-]+)", re.MULTILINE)  # in a help
_ELSEWHERE = {
    **dict.fromkeys(("monitor", "progress"), ("status",)),
    **dict.fromkeys(("find", "query", "ask", "grep"), ("search",)),
    **dict.fromkeys(("reindex", "refresh", "rebuild", "scan"), ("index",)),
    **dict.fromkeys(("list", "ls"), ("ps", "list")),
    **dict.fromkeys(("delete", "remove", "reset"), ("clear", "delete")),
    **dict.fromkeys(("start", "run"), ("serve",)),
}
"""By what other programs call them, our commands; the first that a grammar has is meant."""
_NEAR = 0.6  # difflib's own: a word is refused anyway, so a poor guess does no harm


def mistyped(
    word: str,
    commands: Iterable[str],
    nearness: float = _NEAR,
    with_options: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """An error message with the command that `word` may be meant for; empty if none is like it.

    Args:
        word: It stands in the place of a command, and is none.
        commands: Those that there are.
        nearness: How like it one has to be, from 0 to 1, as difflib measures it.
        with_options: Words for which a command is meant with an option.
    """
    known, lower = {*commands}, word.lower()
    others = (with_options.get(lower), *_ELSEWHERE.get(lower, ()))
    near = [each for each in others if each and each.partition(" ")[0] in known]
    near = near or difflib.get_close_matches(lower, known, 1, nearness)
    return f"there is no command {word!a}; did you mean {near[0]}?" if near else ""


def refuse_command(grammar: argparse.ArgumentParser, word: str, known: Iterable[str]) -> None:
    """Exit with status 2 and the command that may be meant, unless `word` is one or an option."""
    if word in known or not word or word.startswith("-"):
        return
    grammar.error(mistyped(word, known) or f"there is no command {word!a}; --help lists them all")


def refuse(
    grammar: argparse.ArgumentParser,
    extra: Sequence[str],
    meant: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Exit with status 2, a usage line and the option that may be meant, if `extra` has any word.

    Args:
        grammar: That of the command; argparse would show the usage of the whole program.
        extra: The words that it does not know.
        meant: Its options by names that other programs have for them.
    """
    if extra:
        unknown = next((word for word in extra if word.startswith("-")), "").partition("=")[0]
        known = _options_of(grammar)
        near = [meant[unknown]] if unknown in meant else _near(unknown, known)
        guess = f"; did you mean {near[0]}?" if near else ""
        if not near and unknown and grammar.prog.endswith(" search"):
            guess = f"; a query that begins with a dash stands behind --: search -- {unknown!a}"
        grammar.error(f"unrecognized arguments: {' '.join(extra)}{guess}")


def refuse_instead_of_a_command(grammar: argparse.ArgumentParser, options: Sequence[str]) -> None:
    """Exit like `refuse` if there are options alone, and one that the program does not have."""
    known = {"-h", "--help", *_options_of(grammar)}
    extra = [option for option in options if option.partition("=")[0] not in known]
    refuse(grammar, extra, dict.fromkeys(("-v", "-V"), "--version"))


def refuse_before_a_command(
    grammar: argparse.ArgumentParser, arguments: Sequence[str], commands: Iterable[str]
) -> None:
    """Exit with status 2 if a command's option stands before the command."""
    option = arguments[0].partition("=")[0]
    if not option.startswith("-") or option in {"-h", "--help", *_options_of(grammar)}:
        return
    if command := next((word for word in arguments if word in commands), ""):
        grammar.error(
            f"the options of a command stand behind it: `vector-index-mcp {command} ... {option}`"
        )


def _options_of(grammar: argparse.ArgumentParser) -> list[str]:
    return _OPTION.findall(grammar.format_help())


def _near(unknown: str, known: Sequence[str]) -> list[str]:
    if not unknown.startswith("--"):
        return []
    names = {option.removeprefix("--"): option for option in known}
    near = difflib.get_close_matches(unknown.removeprefix("--").lower(), names, 1, _NEAR)
    return [names[name] for name in near]
