"""Searching by words: any of them, anywhere in a text, as they stand; the best document first."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from writing import put

from vector_index_mcp.notes import document_calls
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts.reading import Shelf

FILLER = "nothing to see in here\n" * 5
INTRODUCTION = "(Document Introduction)"


def searched(query, **texts):
    """The results of a search in documents, given by their names without an ending."""
    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            put(Path(folder), f"projects/p/knowledge/{name}.md", text)
        disk = Disk(Path(folder))
        given = {"project_id": "p", "query": query, "all_projects": False}
        answer = document_calls.search(Store(disk, Shelf(disk), None), given)
    results = answer["results"]
    assert answer["total_documents"] == len(results)
    assert answer["total_matches"] == sum(each["match_count"] for each in results)
    return results


def names(query, **texts):
    return [result["document"].removesuffix(".md") for result in searched(query, **texts)]


def matches(query, text):
    """For each chapter: its title and the words found there."""
    found = []
    for result in searched(query, a=text):
        for chapter, match in zip(result["chapters"], result["matching_chapters"], strict=True):
            assert chapter == {"title": match["chapter"], "matches": len(match["keywords_found"])}
            assert list(match["match_context"]) == match["keywords_found"]
            found.append((match["chapter"], match["keywords_found"]))
    return found


def contexts(word, text):
    """What stands around a word in the only chapter that has it."""
    [result] = searched(word, a=text)
    [match] = result["matching_chapters"]
    return match["match_context"][word]


# -- what is found -----------------------------------------------------------------------------


def test_any_word_is_found_in_chapters_their_titles_and_the_introduction():
    text = "About Keys.\n\n## API\n\nnone\n\n## Other\n\nan api, and keys\n\n## Empty\n"
    assert matches("KEYS api", text) == [
        ("API", ["api"]), ("Other", ["keys", "api"]), (INTRODUCTION, ["keys"]),
    ]  # fmt: skip


def test_a_word_is_found_within_another():
    assert matches("key", "## A\n\nmonkeys") == [("A", ["key"])]


def test_front_matter_is_not_searched():
    text = "---\ntitle: Secret\nkeywords: [secret]\n---\n## A\n\nopen\n"
    assert matches("secret title keywords", text) == []


def test_headings_in_code_are_text():
    assert matches("inner", "## A\n```\n## inner\n```\n") == [("A", ["inner"])]


@pytest.mark.parametrize(
    "word", ["C++", "regex.*stuff", "a|b", "(x", "[a-z]", "\\d+", "^", "$", "ünïcode", "~~~", "**"]
)
def test_words_are_taken_as_they_stand(word):
    text = f"## A\n\nbefore {word} after"
    assert names(word, a=text, b="## B\n\nregex and stuff, C, a b x d 1") == ["a"]
    assert contexts(word.lower(), text) == [f"...A before {word} after..."]


def test_a_word_that_is_there_twice_is_looked_for_once():
    assert matches("  One two\tone  TWO ", "## A\n\none two") == [("A", ["one", "two"])]


def test_a_word_whose_lower_case_is_longer_is_found():
    assert [title for title, _ in matches("i̇stanbul", "## A\n\nİSTANBUL")] == ["A"]


ALPHABET = st.text("abAB .*", max_size=12)


@given(st.lists(ALPHABET, max_size=5), st.text("ab .*", max_size=5).filter(str.strip))
def test_all_that_has_a_word_is_found_and_nothing_else(texts, query):
    documents = {f"d{number}": f"## T\n\n{text}" for number, text in enumerate(texts)}
    expected = [
        name
        for name, text in documents.items()
        if any(word in text.lower() for word in query.lower().split())
    ]
    assert sorted(names(query, **documents)) == expected


# -- what stands around ------------------------------------------------------------------------


def test_fifty_characters_stand_around_a_word_on_one_line():
    text = "## A\n\n" + "a" * 60 + "\n" + "b" * 30 + " \n needle \n\n" + "c" * 70
    [context] = contexts("needle", text)
    assert context == "..." + "a" * 16 + " " + "b" * 30 + " needle " + "c" * 47 + "..."


def test_the_first_place_of_a_word_is_shown():
    text = "## A\n\none needle" + " needle ".join(["x" * 200] * 9)
    assert contexts("needle", text) == ["...A one needle" + "x" * 50 + "..."]


def test_a_match_says_what_its_chapter_is_about():
    [found] = searched("needle", x="First line.\nneedle\n\n## A\n\nSecond line.\nneedle\n")
    said = [(match["chapter"], match["chapter_summary"]) for match in found["matching_chapters"]]
    assert said == [("A", "Second line...."), (INTRODUCTION, "First line.")]


# -- the order ---------------------------------------------------------------------------------


def test_a_rarer_word_counts_more():
    usual = {f"x{number}": f"## T\n\nusual {FILLER}" for number in range(5)}
    scarce = {"z": f"## T\n\nrarer {FILLER}"}
    assert names("usual rarer", **usual, **scarce)[0] == "z"


def test_more_of_the_words_count_more():
    texts = {"a": f"## T\n\none {FILLER}", "b": f"## T\n\none two {FILLER}"}
    assert names("one two", **texts) == ["b", "a"]


@pytest.mark.parametrize(
    "better",
    [
        f"---\ntitle: About needles\n---\n## T\n\nneedle {FILLER}",
        f"---\nkeywords: [needle]\n---\n## T\n\nneedle {FILLER}",
        f"## The needle\n\n{FILLER}",
        f"## T\n\nneedle needle {FILLER}",
        "## T\n\nneedle",
    ],
    ids=["title", "keyword", "heading", "more often", "shorter"],
)
def test_what_is_about_a_word_comes_first(better):
    assert names("needle", a=f"## T\n\nneedle {FILLER}", b=better) == ["b", "a"]


def test_a_word_repeated_without_end_does_not_win():
    many = {f"x{number}": f"## T\n\nother {FILLER}" for number in range(9)}
    often = {"often": "## T\n\n" + "one " * 500}
    both = {"both": f"## T\n\none two {FILLER}"}
    assert names("one two", **many, **often, **both) == ["both", "often"]


def test_equal_ones_come_in_the_order_of_their_names():
    texts = dict.fromkeys("cab", "## T\n\nneedle")
    assert names("needle", **texts) == ["a", "b", "c"]


def test_nothing_is_found_in_nothing():
    assert searched("needle") == []
    assert searched("needle", a="") == []


# -- how much is shown -------------------------------------------------------------------------


def test_of_many_chapters_those_with_the_most_words_are_quoted():
    common = "".join(f"## Chapter {n}\n\nthe parser\n\n" for n in range(60))
    first, second = searched(
        "parser cache",
        a=f"{common}## Best\n\nthe parser's cache\n\n{common.replace('Chapter', 'Late')}",
        b="## Only\n\nthe parser\n",
    )
    assert first["match_count"] == 121
    assert len(first["chapters"]) == 50
    quoted = [match["chapter"] for match in first["matching_chapters"]]
    assert quoted == [*(f"Chapter {n}" for n in range(49)), "Best"]  # in the order of the text
    assert [match["chapter"] for match in second["matching_chapters"]] == ["Only"]


def test_an_answer_says_that_chapters_are_left_out():
    with TemporaryDirectory() as folder:
        text = "".join(f"## Chapter {n}\n\nthe parser\n\n" for n in range(101))
        put(Path(folder), "projects/p/knowledge/a.md", text)
        disk = Disk(Path(folder))
        given = {"project_id": "p", "query": "parser", "all_projects": False}
        answer = document_calls.search(Store(disk, Shelf(disk), None), given)
    assert answer["total_matches"] == 101
    assert answer["note"].startswith("At most 100 chapters of each document are shown")


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("Deploying", "deploying"),
        ("when rollout canary", "rollout"),
        ("roll", "roll"),
        ("(Rollout)?", "rollout"),
        ("部署", "部署"),
        ("session", "session"),
        ("plo op lout", None),  # only inside of words, or too short to say anything
    ],
)
def test_an_answer_without_a_match_names_a_document_with_the_word_in_its_title(query, word):
    with TemporaryDirectory() as folder:
        head = "---\ntitle: Deploying\nkeywords: [rollout, ops, 部署, cookie-session]\n---\n\n"
        put(Path(folder), "projects/p/knowledge/a.md", f"{head}How we ship.\n\n## One\n\ntext\n")
        disk = Disk(Path(folder))
        given = {"project_id": "p", "query": query, "all_projects": False}
        answer = document_calls.search(Store(disk, Shelf(disk), None), given)
    assert answer["results"] == []
    expected = f"a.md has '{word}' in its title or keywords, which mode both searches"
    assert answer.get("note") == (expected if word else None)
