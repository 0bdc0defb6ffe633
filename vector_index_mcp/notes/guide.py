"""The texts about the notes that an agent sees: the server's instructions, and each tool's."""

from collections.abc import Mapping
from dataclasses import dataclass

INSTRUCTIONS = (
    "Notes about projects that outlive a conversation: instructions, knowledge and to-do lists. "
    "Each project has a project_id: the name of its git repository, or of its folder. Begin with "
    "get_project_main to read the project's instructions (they replace its CLAUDE.md, not "
    "CLAUDE.local.md or ~/.claude/CLAUDE.md). Call search_knowledge before you work out what "
    "somebody may have written down already. Write down what the next conversation needs: "
    "create_knowledge_file, add_chapter. Each change is kept in git. A read returns the revision "
    "of the text; pass it to a change, and the change is refused if the text has changed since."
)


@dataclass(frozen=True, slots=True)
class Words:
    """How a tool is listed."""

    title: str
    description: str
    reads_only: bool = False
    destroys: bool = False

    @property
    def annotations(self) -> dict[str, bool]:
        """What clients are told about the tool's effects."""
        return {
            "readOnlyHint": self.reads_only,
            "destructiveHint": self.destroys,
            "openWorldHint": False,
        }


_DELETED = "It can be brought back from the history."

TOOLS: Mapping[str, Words] = {
    "get_project_main": Words(
        "Get Project Main Instructions",
        "Read a project's main instructions, with the names of its documents and the numbers of "
        "its to-do lists. Do this first. exists is false if no instructions are written yet.",
        reads_only=True,
    ),
    "update_project_main": Words(
        "Update Project Main",
        "Replace a project's whole main instructions, or write the first ones. To change a part, "
        "use the section tools.",
        destroys=True,
    ),
    "update_project_section": Words(
        "Update Project Section",
        "Replace the text below one heading of level two (## …) of the main instructions.",
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
        "Delete a project with all its documents and to-do lists. Ask the user first. "
        "`vector-index-mcp notes restore` brings it back.",
        destroys=True,
    ),
    "create_knowledge_file": Words(
        "Create Knowledge File",
        "Write down what is worth knowing about a subject: a document with a title, an "
        "introduction, keywords and chapters. The file's name is derived from the given one.",
    ),
    "get_knowledge_file": Words(
        "Get Knowledge File",
        "Read a whole document. For a long one, use list_chapters and get_chapter instead.",
        reads_only=True,
    ),
    "delete_knowledge_file": Words(
        "Delete Knowledge File", f"Delete a document. {_DELETED}", destroys=True
    ),
    "search_knowledge": Words(
        "Search Knowledge",
        "Find documents and chapters, best first. mode keywords finds the chapters of documents "
        "that contain any of the words, also inside longer words. mode meaning finds texts that "
        "say the same in other words; it also searches titles, keywords, main instructions and "
        "to-do lists. mode both combines them. all_projects searches the notes of every project.",
        reads_only=True,
    ),
    "update_chapter": Words(
        "Update Chapter",
        "Replace the text below one chapter's heading. The title must match exactly. "
        "new_summary is not stored: a chapter's summary is its first lines.",
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
        "Get Next Chapter", "Read the chapter that follows another one.", reads_only=True
    ),
    "get_server_info": Words(
        "Get Server Information", "Show the server's version and storage path.", reads_only=True
    ),
    "get_storage_status": Words(
        "Get Storage Status",
        "Show whether everything is committed and pushed, what cannot be read, and which chapters "
        "were changed on two machines.",
        reads_only=True,
    ),
    "sync_storage": Words(
        "Sync Storage", "Commit edits made by hand, then fetch and push if there is a remote."
    ),
    "list_todos": Words(
        "List TODOs", "List a project's to-do lists and how many tasks are done.", reads_only=True
    ),
    "create_todo": Words("Create TODO", "Create a to-do list, with its first tasks if you like."),
    "add_todo_task": Words("Add TODO Task", "Add a task at the end of a to-do list."),
    "remove_todo_task": Words(
        "Remove TODO Task",
        f"Remove a task from a to-do list; the others keep their numbers. {_DELETED}",
        destroys=True,
    ),
    "complete_todo_task": Words("Complete TODO Task", "Mark a task as done."),
    "get_next_todo_task": Words(
        "Get Next TODO Task", "Read the first task of a list that is not done yet.", reads_only=True
    ),
    "get_todo_tasks": Words(
        "Get TODO Tasks", "List all tasks of a to-do list with their state.", reads_only=True
    ),
    "delete_todo": Words(
        "Delete TODO", f"Delete a to-do list with its tasks. {_DELETED}", destroys=True
    ),
}
