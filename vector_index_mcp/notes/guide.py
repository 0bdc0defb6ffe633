"""What an agent is told about the notes: the server's instructions, and each tool."""

from collections.abc import Mapping
from dataclasses import dataclass

INSTRUCTIONS = (
    "Notes about projects that outlive a conversation: instructions, knowledge and to-do lists. "
    "Each project has a project_id: the name of its git repository, or of its folder. Begin with "
    "get_project_main to read the project's instructions (they replace its CLAUDE.md, not "
    "CLAUDE.local.md or ~/.claude/CLAUDE.md), and with search_knowledge before you work out what "
    "somebody may have written down already. Write down what the next conversation needs: "
    "create_knowledge_file, add_chapter. Each change is kept in git. A read says the revision of "
    "what it read; give it to a change, and the change is refused if somebody was faster."
)


@dataclass(frozen=True, slots=True)
class Words:
    """A tool as it is listed."""

    title: str
    description: str
    reads_only: bool = False
    destroys: bool = False


_DELETED = "It can be brought back from the history."

TOOLS: Mapping[str, Words] = {
    "get_project_main": Words(
        "Get Project Main Instructions",
        "Read a project's main instructions, with the names of its documents and the numbers of "
        "its to-do lists. Do this first. exists is false where no instructions are written yet.",
        reads_only=True,
    ),
    "update_project_main": Words(
        "Update Project Main",
        "Replace the whole of a project's main instructions, or begin them. To change a part, use "
        "the section tools.",
        destroys=True,
    ),
    "update_project_section": Words(
        "Update Project Section",
        "Replace what stands under one heading of level two (## …) of the main instructions.",
        destroys=True,
    ),
    "remove_project_section": Words(
        "Remove Project Section",
        f"Remove one section of the main instructions, with its heading. {_DELETED}",
        destroys=True,
    ),
    "add_project_section": Words(
        "Add Project Section",
        "Add a section to the main instructions: at the end, or before or after another one.",
    ),
    "delete_project": Words(
        "Delete Project",
        "Delete a project with all its documents and to-do lists. Ask the user before. "
        "`vector-index-mcp notes restore` brings it back.",
        destroys=True,
    ),
    "create_knowledge_file": Words(
        "Create Knowledge File",
        "Write down what is worth knowing about a subject: a document with a title, an "
        "introduction, keywords and chapters. The file's name is made of the given one.",
    ),
    "get_knowledge_file": Words(
        "Get Knowledge File",
        "Read a whole document. Of a long one, list_chapters and get_chapter read what is needed.",
        reads_only=True,
    ),
    "delete_knowledge_file": Words(
        "Delete Knowledge File", f"Delete a document. {_DELETED}", destroys=True
    ),
    "search_knowledge": Words(
        "Search Knowledge",
        "Find documents and chapters, best first. mode keywords finds chapters of documents with "
        "any of the words, also inside of other words; meaning finds what says the same in other "
        "words, also by a document's title and keywords, in main instructions and in to-do lists; "
        "both unites them. all_projects searches the notes of every project.",
        reads_only=True,
    ),
    "update_chapter": Words(
        "Update Chapter",
        "Replace what stands under one chapter's heading. The title must match exactly. "
        "new_summary is not kept: a chapter's summary is its first lines.",
        destroys=True,
    ),
    "remove_chapter": Words(
        "Remove Chapter", f"Remove one chapter of a document. {_DELETED}", destroys=True
    ),
    "add_chapter": Words(
        "Add Chapter", "Add a chapter to a document: at the end, or before or after another one."
    ),
    "list_chapters": Words(
        "List Chapters", "List the chapters of a document with their first lines.", reads_only=True
    ),
    "get_chapter": Words(
        "Get Chapter", "Read one chapter, by its title or its index from 0.", reads_only=True
    ),
    "get_next_chapter": Words(
        "Get Next Chapter", "Read the chapter behind another one.", reads_only=True
    ),
    "get_server_info": Words(
        "Get Server Information", "Show version and storage path.", reads_only=True
    ),
    "get_storage_status": Words(
        "Get Storage Status",
        "Show whether everything is committed and pushed, what cannot be read, and which chapters "
        "were changed on two machines.",
        reads_only=True,
    ),
    "sync_storage": Words(
        "Sync Storage", "Commit what was edited by hand, then fetch and push if there is a remote."
    ),
    "list_todos": Words(
        "List TODOs", "List a project's to-do lists and how many tasks are done.", reads_only=True
    ),
    "create_todo": Words("Create TODO", "Begin a to-do list, with tasks if you have some."),
    "add_todo_task": Words("Add TODO Task", "Add a task at the end of a to-do list."),
    "remove_todo_task": Words(
        "Remove TODO Task",
        f"Remove a task of a to-do list; the others keep their numbers. {_DELETED}",
        destroys=True,
    ),
    "complete_todo_task": Words("Complete TODO Task", "Mark a task as done."),
    "get_next_todo_task": Words(
        "Get Next TODO Task", "Read the first task of a list that is not done.", reads_only=True
    ),
    "get_todo_tasks": Words(
        "Get TODO Tasks", "List all tasks of a to-do list with their state.", reads_only=True
    ),
    "delete_todo": Words(
        "Delete TODO", f"Delete a to-do list with its tasks. {_DELETED}", destroys=True
    ),
}
