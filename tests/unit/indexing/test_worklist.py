from vector_index_mcp.files.scan import Changes
from vector_index_mcp.indexing.writing.worklist import Worklist


def worklist_of(*changes):
    worklist = Worklist()
    for each in changes:
        worklist.add(each)
    return worklist


def test_what_a_scan_found_is_given_out_in_portions():
    worklist = worklist_of(Changes(["a", "b", "c"], ["d"]))

    first, second = worklist.take(2), worklist.take(2)

    assert (first.dirty, first.gone, second.dirty) == (["a", "b"], ["d"], ["c"])
    assert len(worklist) == 0


def test_what_a_scan_found_of_a_file_is_outdated_once_the_file_was_looked_at_again():
    worklist = worklist_of(Changes(["a", "saved"], ["came back", "d"]))

    worklist.settle(Changes(["saved", "came back"]))

    changes = worklist.take(10)
    assert (changes.dirty, changes.gone) == (["a"], ["d"])


def test_a_file_that_is_found_twice_is_there_once():
    assert worklist_of(Changes(["a"]), Changes(["b", "a"])).take(10).dirty == ["a", "b"]


def test_what_was_found_in_folders_can_be_dropped_by_their_names():
    worklist = worklist_of(Changes(["docs/a", "docs2/a", "notes/docs"], ["docs/b"]))

    worklist.drop({"docs", "nobody"})

    assert worklist.take(10) == Changes(["docs2/a", "notes/docs"])
