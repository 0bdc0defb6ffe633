"""A snippet is the lines of a chunk that matter most to the query."""

from vector_index_mcp.codebase.lines import best_line, best_lines
from vector_index_mcp.engine.ranking.query import Query

TEXT = "".join(f"line {number}\n" for number in range(10)) + "wait for the retry\n" + "end\n" * 5


def test_the_line_with_most_words_of_the_query_is_shown_with_its_neighbours():
    first, shown = best_lines(TEXT, Query("retry wait"), ())
    assert (first, shown) == (8, "line 8\nline 9\nwait for the retry\nend\nend\n")


def test_at_the_end_of_a_chunk_as_many_lines_are_shown():
    first, shown = best_lines(TEXT, Query("end"), ())
    assert (first, shown.count("\n")) == (9, 5)


def test_a_short_text_is_shown_whole():
    assert best_lines("a\nb\n", Query("b"), ()) == (0, "a\nb\n")


def test_long_lines_are_left_out_before_the_best_one_is_cut():
    long = "x" * 500 + "\n"
    first, shown = best_lines(long * 3 + "retry\n" + long, Query("retry"), ())
    assert "retry\n" in shown
    assert len(shown) <= 600
    assert (long * 3 + "retry\n" + long).split("\n")[first] == shown.split("\n")[0]


def test_of_a_long_line_the_part_with_the_words_is_shown():
    line = "x = 1; " * 200 + "let needle_here = 2; " + "y = 3; " * 200
    first, shown = best_lines(f"a\n{line}\nb\n", Query("needle_here"), ())
    assert first == 1
    assert "needle_here" in shown
    assert len(shown) <= 600


def test_what_was_found_by_meaning_is_shown_from_its_definition_on():
    assert best_line(["# no", "def charge():", "    pay()"], Query("zebra"), ["charge"]) == 1


def test_where_nothing_tells_the_first_line_that_says_something_is_the_best():
    assert best_line(["", "  ", "x = 1"], Query("zebra"), []) == 2


def test_an_inflected_word_is_that_word():
    assert best_line(["```js", "keys", "a secret here"], Query("secrets"), ()) == 2


def test_a_word_that_many_lines_have_says_little():
    lines = ["socket = open_socket()", "socket.bind()", "socket.listen()", "retries = 3"]
    assert best_line(lines, Query("socket retries"), ()) == 3


def test_the_lines_around_the_best_one_are_those_with_most_words():
    lines = [*"abcdefghij", "retry later", *"klm", "the backoff grows", *"nopqrst"]
    first, shown = best_lines("\n".join(lines), Query("retry later backoff"), ())
    assert (first, shown.split("\n")[0]) == (10, "retry later")
    assert "backoff" in shown
