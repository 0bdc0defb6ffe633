"""Who begins to read, or names what is not there, is told what there is."""

import pytest
from kept import Kept
from stores import writer_of

from vector_index_mcp.notes import document_calls, main_calls, todo_calls
from vector_index_mcp.notes.arguments import checked
from vector_index_mcp.notes.refusal import Refusal

READS = {**main_calls.READS, **document_calls.READS, **todo_calls.READS}


@pytest.fixture
def kept(tmp_path):
    with writer_of(tmp_path) as writer:
        yield Kept(tmp_path, writer)


def asked(kept, tool, **given):
    return READS[tool](kept.store, checked(tool, given))


def refused(ask, *arguments, **given):
    with pytest.raises(Refusal) as caught:
        ask(*arguments, **given)
    return caught.value.context


@pytest.mark.slow
def test_the_instructions_come_with_the_names_of_documents_and_lists(kept):
    kept.document("Tide Pool", "auth")
    kept.todo("Tide Pool", "A list")
    others = {"documents": ["auth.md"], "todo_numbers": [1]}
    answer = asked(kept, "get_project_main", project_id="Tide Pool")
    assert answer == {"exists": False, "content": "", **others}
    kept.main("Tide Pool", "Hello.")
    answer = asked(kept, "get_project_main", project_id="Tide Pool")
    assert answer.pop("revision")
    assert answer == {"exists": True, "content": "Hello.", **others}


@pytest.mark.slow
def test_of_an_unknown_project_those_with_a_similar_name_are_named(kept):
    kept.main("Tide Pool", "Hello.")
    kept.main("Other", "Hello.")
    answer = asked(kept, "get_project_main", project_id="tidepool")
    assert answer == {"exists": False, "content": "", "similar_projects": ["Tide Pool"]}
    assert asked(kept, "get_project_main", project_id="x") == {"exists": False, "content": ""}
    context = refused(asked, kept, "get_chapter", project_id="TIDE-POOLS", filename="a.md")
    assert context["similar_projects"] == ["Tide Pool"]


@pytest.mark.usefixtures("one_case")
def test_another_spelling_of_a_document_is_none_where_case_does_not_count(kept):
    kept.put("projects/p/knowledge/Setup.md", "## Chapter\n\nold\n")
    context = refused(asked, kept, "get_knowledge_file", project_id="p", filename="setup.md")
    assert context["documents"] == ["Setup.md"]
    refused(kept.chapter, "p", "setup", "new")
    assert kept.texts["projects/p/knowledge/Setup.md"] == b"## Chapter\n\nold\n"
    answer = asked(kept, "get_knowledge_file", project_id="p", filename="Setup.md")
    assert answer["document"]["filename"] == "Setup.md"


def test_whose_lists_are_asked_for_under_a_wrong_name_is_told(kept):
    kept.todo("Tide Pool", "A list", "task")
    answer = asked(kept, "list_todos", project_id="tidepool")
    assert answer["todos"] == []
    assert answer["similar_projects"] == ["Tide Pool"]
    assert answer["note"] == "There is no project 'tidepool'; did you mean 'Tide Pool'?"
    assert asked(kept, "list_todos", project_id="something else") == {"todos": []}


@pytest.mark.slow
def test_why_a_name_in_another_script_is_taken_is_told(kept):
    kept.document("p", "数据")
    context = refused(kept.document, "p", "Проект")
    assert context["filename"] == "untitled.md"
    assert context["hint"].startswith("of a file name only Latin letters and digits are kept")
    kept.document("p", "data")
    assert "hint" not in refused(kept.document, "p", "data")


@pytest.mark.slow
def test_a_list_without_a_task_is_not_taken_for_one_that_is_done(kept):
    kept.todo("p", "empty")
    kept.todo("p", "done", "task")
    kept.call("complete_todo_task", project_id="p", todo_number=2, task_number=1)
    empty, done = (asked(kept, "get_next_todo_task", project_id="p", todo_number=n) for n in (1, 2))
    assert empty == {"message": "All tasks completed", "note": "The list has no task"}
    assert done == {"message": "All tasks completed"}


@pytest.mark.slow
def test_what_is_not_there_is_answered_with_what_is(kept):
    kept.document("p", "auth")
    kept.main("p", "## Build\n\nmake\n")
    document = {"project_id": "p", "filename": "auth.md", "chapter_title": "chapter"}
    assert refused(asked, kept, "get_chapter", **document)["chapters"] == ["Chapter"]
    changed = refused(kept.call, "update_chapter", **document, new_content="x")
    assert changed["chapters"] == ["Chapter"]
    missing = refused(asked, kept, "get_knowledge_file", project_id="p", filename="auht.md")
    assert missing["documents"] == ["auth.md"]
    section = refused(kept.call, "remove_project_section", project_id="p", section_header="## X")
    assert section["sections"] == ["Build"]


@pytest.mark.slow
def test_a_reference_that_is_not_there_is_answered_with_what_is(kept):
    kept.document("p", "auth")
    kept.main("p", "## Build\n\nmake\n")
    text = {"project_id": "p", "content": "x", "position": "before"}
    chapter = {"filename": "auth.md", "chapter_title": "New", "reference_chapter": "chapter"}
    assert refused(kept.call, "add_chapter", **text, **chapter)["chapters"] == ["Chapter"]
    section = {"section_header": "## New", "reference_header": "## build"}
    assert refused(kept.call, "add_project_section", **text, **section)["sections"] == ["Build"]


def test_a_number_that_is_not_there_is_answered_with_those_that_are(kept):
    kept.todo("p", "A list", "One", "Two")
    done = {"project_id": "p", "todo_number": 1, "task_number": 9}
    assert refused(kept.call, "complete_todo_task", **done)["task_numbers"] == [1, 2]
    done["todo_number"] = 9
    assert refused(kept.call, "complete_todo_task", **done)["todo_numbers"] == [1]


@pytest.mark.slow
def test_a_chapter_that_was_read_can_be_written_back(kept):
    kept.document("p", "auth", "Old text.")
    name = {"project_id": "p", "filename": "auth.md"}
    before = asked(kept, "get_knowledge_file", **name)["document"]["chapters"]
    read = asked(kept, "get_chapter", **name, chapter_title="Chapter")
    assert read["content"].startswith("## Chapter\n")
    kept.call("update_chapter", **name, chapter_title="Chapter", new_content=read["content"])
    assert asked(kept, "get_knowledge_file", **name)["document"]["chapters"] == before
    kept.call("add_chapter", **name, chapter_title="New", content="\n## New\n\nText.")
    kept.call("add_chapter", **name, chapter_title="Last", content="## Another\n\nText.")
    titles = [each["title"] for each in asked(kept, "list_chapters", **name)["chapters"]]
    assert titles == ["Chapter", "New", "Last", "Another"]


@pytest.mark.slow
def test_a_section_that_was_read_can_be_written_back(kept):
    kept.main("p", "## Build\n\nmake\n")
    again = {
        "project_id": "p",
        "section_header": "## Build",
        "new_content": "## Build\n\nmake all\n",
    }
    kept.call("update_project_section", **again)
    assert asked(kept, "get_project_main", project_id="p")["content"] == "## Build\n\nmake all\n"
