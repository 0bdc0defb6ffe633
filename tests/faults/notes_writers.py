"""Eight clients that write notes until somebody kills the process; each answer is printed.

A line is a token that the answered write has put into the store, or `begun` once the store is open.
"""

import random
import sys
from pathlib import Path

import anyio
from machines import Machine, notes_at

CLIENTS = 8


async def write_on(machine: Machine, client: int, start: int) -> None:
    """Add something new, again and again."""
    project = f"Project {client % 3}"  # several clients write the same files
    count = start
    while True:
        count += 1
        token = f"token-{client}-{count}-end"
        kind = random.choice(["section", "document", "chapter", "todo", "task"])
        await write(machine, project, kind, token)
        sys.stdout.write(f"{token}\n")
        sys.stdout.flush()


async def write(machine: Machine, project: str, kind: str, token: str) -> None:
    if kind == "section":
        await machine.done(
            "add_project_section", project_id=project, section_header=f"## {token}", content=token
        )
    elif kind == "document":
        await machine.done(
            "create_knowledge_file",
            project_id=project,
            filename=token,
            title=token,
            introduction=token,
            keywords=["k"],
            chapters=[],
        )
    elif kind == "chapter":
        await machine.done(
            "add_chapter",
            project_id=project,
            filename="shared.md",
            chapter_title=token,
            content=token,
        )
    elif kind == "todo":
        await machine.done("create_todo", project_id=project, description=token, tasks=[token, "b"])
    elif kind == "task":
        await machine.done("add_todo_task", project_id=project, todo_number=1, title=token)


async def begin(machine: Machine, project: str) -> None:
    await machine.done("update_project_main", project_id=project, content="# P\n")
    await machine.done("create_todo", project_id=project, description="shared")
    await machine.done(
        "create_knowledge_file",
        project_id=project,
        filename="shared",
        title="Shared",
        introduction="All write here.",
        keywords=["k"],
        chapters=[],
    )


async def main(home: Path, start: int) -> None:
    notes = notes_at(home)
    async with notes.running(), anyio.create_task_group() as tasks:
        machine = Machine(notes)
        if not start:
            for project in range(3):
                await begin(machine, f"Project {project}")
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        for client in range(CLIENTS):
            tasks.start_soon(write_on, machine, client, start)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
