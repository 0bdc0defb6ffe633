"""What a search prints: for a person on a terminal, for one without, and for an editor."""

import re

import pytest
from rich.ansi import AnsiDecoder

from vector_index_mcp.codebase.hits import FileMetadata, Reasons, SearchHit, SearchResult
from vector_index_mcp.console.results import (
    count_without_lines,
    grep_lines,
    notes,
    paint_for,
    plain,
    readable,
)
from vector_index_mcp.engine.ranking.query import Query

LOADER = 'class Loader:\n\n    # reads\n    def parse_config(self):\n\treturn "x" * 42\n'


def hit(text=LOADER, path="src/load.py", start=10, **fields):
    values = {
        "file_path": path,
        "start_line": start,
        "end_line": start + text.rstrip("\n").count("\n"),
        "score": 0.876,
        "language": "python",
        "scope": "",
        "symbols": [],
        "is_stale": False,
        "is_cut": False,
        "extracted_text_chunk": text,
        "document_id": f"{path}::0",
        "content_hash": "",
        "last_modified_timestamp": 0.0,
        "chunk_index": 0,
        "total_chunks": 1,
        "metadata": FileMetadata(original_path=path),
    }
    return SearchHit(**values | fields)


def result(*hits, mode="hybrid", note=None):
    return SearchResult(results=list(hits), mode=mode, note=note)


def painted(found):
    return readable(found, Query("x"), ".", paint_for("always"))


def test_lines_are_numbered_as_in_the_file():
    assert readable(result(hit()), Query("x"), ".").splitlines() == [
        "1. src/load.py:10-14 (score 0.88)",
        "  10  class Loader:",
        "  11",
        "  12      # reads",
        "  13      def parse_config(self):",
        '  14      return "x" * 42',
        "",
        "1 result, by words and by meaning",
    ]


def test_a_header_tells_the_definitions_around_and_whether_it_is_stale():
    found = result(hit(scope="class Loader › function parse", is_stale=True))
    header = readable(found, Query("x"), ".").splitlines()[0]
    assert header == (
        "1. src/load.py:10-14 in class Loader › function parse "
        "(score 0.88, changed since it was indexed)"
    )


def test_of_a_regular_expression_the_lines_that_match_are_printed_once():
    piece = '\tand "x" again\n'
    found = result(hit(), hit("# none\n", "b.py"), hit(piece, start=14))
    assert grep_lines(found, Query(r"\w+_config\(|x{1}"), ".") == [
        "src/load.py:13:    def parse_config(self):",
        'src/load.py:14:\treturn "x" * 42',
    ]
    assert grep_lines(result(hit(), hit()), Query("parse_config"), ".") == [
        "src/load.py:13:    def parse_config(self):"
    ]


def test_only_what_matches_over_several_lines_lacks_a_line():
    found = result(hit(), hit("# none\n", "b.py"), hit("x(\n  parse_config)\n", "c.py"))
    assert count_without_lines(found, Query(r"x\(\s+parse_config\)$")) == 1
    assert count_without_lines(found, Query("parse_config")) == 0


def test_the_lines_of_a_file_are_in_order_and_none_is_behind_its_end():
    found = result(hit("c\nab\n", start=7), hit("x\n", "b.py"), hit("ab\n\n  ab\n", start=4))
    assert grep_lines(found, Query(r"^\s*$|ab\b"), ".") == [
        "src/load.py:4:ab",
        "src/load.py:5:",
        "src/load.py:6:  ab",
        "src/load.py:8:ab",
    ]


def test_below_the_project_places_begin_where_one_stands(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert grep_lines(result(hit()), Query("x"), "..")[0].startswith("load.py:")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    assert grep_lines(result(hit()), Query("x"), "..")[0].startswith("../src/load.py:")


def test_places_are_told_from_where_the_project_was_called():
    for folder, place in [("../p", "../p/src/load.py"), ("/p", "/p/src/load.py")]:
        assert readable(result(hit()), Query("x"), folder).startswith(f"1. {place}:10-14 ")
        assert grep_lines(result(hit()), Query("x"), folder)[0].startswith(f"{place}:")


def test_the_last_lines_tell_how_many_there_are_and_what_limits_them():
    found = result(hit(), hit(), mode="lexical", note="No vectors.")
    assert readable(found, Query("x"), ".").endswith(
        "\n\n2 results, by words only\n\nNote: No vectors."
    )


def test_an_answer_without_a_likely_result_says_so():
    said = "No result is likely to be what you look for"
    found = result(hit()).model_copy(update={"is_unlikely": True})
    assert said in readable(found, Query("x"), ".")
    assert said in found.compact()["note"]
    assert said in notes(found)[-1]
    assert not result(hit()).remarks


def test_of_files_that_have_changed_nobody_knows_what_they_contain():
    found = result(hit(is_stale=True)).model_copy(update={"absent": ["zebra"], "missing": ["x"]})
    assert found.miss == "When last indexed, no searched file contained `zebra`"
    assert found.remarks == "When last indexed, no searched file contained 'x'."


def test_nothing_found_is_told():
    assert readable(result(), Query("x"), ".") == "Nothing found. Try other words, or fewer."


def test_a_text_that_was_cut_ends_so():
    assert "\n ...\n" in readable(result(hit(is_cut=True)), Query("x"), ".")


def test_painted_and_plain_are_the_same_words():
    found = result(hit(), hit("func main() {}", "b.go", language="go", scope="x › y"))
    lines = [line.plain for line in AnsiDecoder().decode(painted(found))]
    assert lines == readable(found, Query("x"), ".").splitlines()


@pytest.mark.parametrize(("language", "path"), [("python", "x"), ("notebook", "a.ipynb")])
def test_code_is_painted_by_its_language(language, path):
    shown = painted(result(hit("def f():\n    return 1", path, language=language)))
    assert "\x1b[35mreturn\x1b[0m" in shown


def test_code_of_no_known_language_stays_as_it_is():
    found = result(hit("return [1", "a.unknown", language=""))
    assert "\n\x1b[2m  10  \x1b[0mreturn [1\n" in painted(found)


def test_only_colours_that_read_on_light_and_dark_are_used():
    shown = painted(result(hit(is_stale=True), note="x"))
    used = {code for codes in re.findall(r"\x1b\[([\d;]*)m", shown) for code in codes.split(";")}
    assert used <= {"0", "1", "2", "31", "32", "35", "36"}
    assert {"31", "32", "35"} <= used


HOSTILE = "\x1b]52;c;aGk=\x07\x9b2J\r\u202e"


def test_what_a_terminal_would_obey_is_shown_wherever_it_stands():
    found = result(hit(f"a = '{HOSTILE}'\n", f"e{HOSTILE}\n.py", scope=HOSTILE), note=HOSTILE)
    shown = readable(found, Query("x"), ".") + "\n".join(grep_lines(found, Query(HOSTILE), "."))
    assert shown.count("\\x1b]52;c;aGk=\\x07\\x9b2J\\r\\u202e") == 6
    assert "e\\x1b]52;c;aGk=\\x07\\x9b2J\\r\\u202e\\n.py:10" in shown
    colours = re.sub(r"\x1b\[[\d;]*m", "", painted(found))
    for text in (shown, colours):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


@pytest.mark.parametrize("color", ["never", "auto"])
def test_nothing_is_painted_unless_on_a_terminal_or_wanted(color, capsys):
    assert paint_for(color) is plain  # pytest captures the output: it is no terminal


@pytest.mark.parametrize(
    ("text", "symbols", "query", "line"),
    [
        (LOADER, [], "where is the config parsed: parse_config", "13:    def parse_config(self):"),
        (LOADER, [], "reads", "12:    # reads"),
        ("\n\n  first\nsecond\n", [], "by meaning", "12:  first"),
        ("# a\ndef boot(): pass\n", ["boot"], "by meaning", "11:def boot(): pass"),
        ("x = 1\r\ny = parse(x)\r\n", [], "parse", "11:y = parse(x)"),
        ("parse\nparse\n", [], "parse", "10:parse"),
        ("", [], "parse", "10:"),
    ],
)
def test_an_editor_is_led_to_the_most_telling_line(text, symbols, query, line):
    [told] = grep_lines(result(hit(text, symbols=symbols)), Query(query), ".")
    assert told == f"src/load.py:{line}"


LONG = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.mark.parametrize(("rows", "first", "other"), [(24, 6, 1), (50, 12, 6), (10, 2, 1)])
def test_on_a_terminal_the_best_hit_stays_in_sight(rows, first, other):
    hits = [hit(LONG, f"{name}.py", start_line=1, end_line=30) for name in "abcde"]
    shown = readable(result(*hits), Query("line 20"), ".", rows=rows)
    blocks = shown.split("\n\n")
    assert [len(block.splitlines()) - 1 for block in blocks[:5]] == [first, *[other] * 4]
    assert all("  20  line 20" in block for block in blocks[:5])
    assert blocks[5].endswith("; --full shows all lines")
    assert rows < 24 or len(shown.splitlines()) < rows


def test_what_fits_a_terminal_is_shown_whole():
    assert readable(result(hit()), Query("x"), ".", rows=24) == readable(
        result(hit()), Query("x"), "."
    )


WHY = Reasons(
    words=0.5,
    meaning=None,
    factors={"path": 1.25},
    chunk=0.75,
    file={"score": 3.5, "size": -0.5, "second": 0.001},
    in_file={"alone": 2.0, "head": -0.82},
    likelihood={"base": -2.0, "score": 2.5},
)


def test_a_hit_says_below_its_text_why_it_stands_there():
    assert readable(result(hit(why=WHY)), Query("x"), ".").splitlines()[6:10] == [
        "why: words 0.50, not found by meaning, path ×1.25; beside the best 0.75",
        "file: score +3.50, size -0.50 = 3.00",
        "in its file: alone +2.00, head -0.82 = 1.18",
        "score: base -2.00, score +2.50 = 0.50 in logits",
    ]


def test_on_a_terminal_the_best_hit_stays_in_sight_though_explained():
    hits = [hit(LONG, f"{name}.py", start_line=1, end_line=30, why=WHY) for name in "abc"]
    assert len(readable(result(*hits), Query("line 20"), ".", rows=30).splitlines()) < 30


def test_what_stands_nowhere_is_told_first():
    found = SearchResult(results=[hit()], mode="hybrid", absent=["zebra"])
    assert readable(found, Query("zebra"), ".").startswith(
        "No searched file contains `zebra`; nearest:\n\n1. "
    )


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({}, []),
        (
            {"absent": ["zebra"], "missing": ["stripe"], "note": "By words only."},
            [
                "No searched file contains `zebra`; nearest:",
                "Note: No searched file contains 'stripe'. By words only.",
            ],
        ),
        (
            {"results": [], "why_none": "No file is of that kind."},
            ["Nothing found in what could be searched.", "Note: No file is of that kind."],
        ),
        ({"results": []}, ["Nothing found. Try other words, or fewer."]),
    ],
)
def test_an_editor_is_told_beside_the_lines_what_a_person_reads_among_them(found, told):
    answer = SearchResult(**{"results": [hit()], "mode": "hybrid"} | found)
    assert notes(answer) == told
    assert all(note.removeprefix("Note: ") in readable(answer, Query("x"), ".") for note in told)
