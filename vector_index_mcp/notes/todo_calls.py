"""The calls about to-do lists and their tasks."""

from collections.abc import Mapping

from vector_index_mcp.notes.calls import (
    Answer,
    Given,
    Read,
    Store,
    Write,
    found_project,
    plan_of,
    project_of,
)
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Change
from vector_index_mcp.notes.store.writer import Plan
from vector_index_mcp.notes.texts import todos
from vector_index_mcp.notes.texts.projects import Projects
from vector_index_mcp.notes.texts.todos import Task, Todo

_LARGEST_NUMBER = 99_999  # of the contract's arguments


def _list(store: Store, given: Given) -> Answer:
    project = found_project(store, given)
    if project is None and (similar := Projects(store.disk).similar(given["project_id"])):
        note = f"There is no project {given['project_id']!r}; did you mean {similar[0]!r}?"
        return {"todos": [], "similar_projects": similar, "note": note}
    found = list(todos.lists(store.disk, project.todos)) if project is not None else []
    problems = [each for todo in found for each in (*todo.problems, *todo.conflicts)]
    answer: Answer = {"todos": [{**_head(todo), **_state(todo)} for todo in found]}
    return {**answer, "problems": problems} if problems else answer


def _tasks(store: Store, given: Given) -> Answer:
    todo = _todo(store, given)
    answer: Answer = {
        "todo": {**_head(todo), **_state(todo)},
        "tasks": [
            {**_task(task), "completed": task.completed} for task in todo.tasks if not task.problem
        ],
    }
    problems = [*todo.problems, *todo.conflicts]
    return {**answer, "problems": problems} if problems else answer


def _next(store: Store, given: Given) -> Answer:
    tasks = _todo(store, given).tasks
    for task in tasks:
        if not task.completed and not task.problem:
            return {"task": _task(task)}
    answer: Answer = {"message": "All tasks completed"}
    return answer if tasks else {**answer, "note": "The list has no task"}


def _todo(store: Store, given: Given) -> Todo:
    return todos.one(store.disk, project_of(store, given).todos, given["todo_number"])


def _head(todo: Todo) -> Answer:
    return {"number": todo.number, "description": todo.description, "created": todo.created}


def _state(todo: Todo) -> Answer:
    return {
        "completed": todo.completed,
        "task_count": len(todo.tasks),
        "completed_count": todo.completed_count,
    }


def _task(task: Task) -> Answer:
    content = {"content": task.content} if task.content else {}
    return {"number": task.number, "description": task.title, **content}


def _create(store: Store, given: Given) -> Plan:
    project, puts = Projects(store.disk).with_project(given["project_id"])
    number = _free(max(todos.numbers(store.disk, project.todos), default=0) + 1)
    tasks = [(task["title"], task.get("content", "")) for task in given.get("tasks", ())]
    files = todos.new_list(project.todos, number, given["description"], tasks)
    folder = f"{project.todos}/{number}"
    message = f"Created TODO #{number}"
    if tasks:
        message += f" with {len(tasks)} initial task{'s' if len(tasks) > 1 else ''}"
    return Plan(
        Change({**files, **puts}, folder=folder),
        f"Update knowledge for {project.id}: Created TODO #{number}",
        {"todo_number": number, "message": message},
    )


def _add(store: Store, given: Given) -> Plan:
    project, number = found_project(store, given), given["todo_number"]
    if project is None:
        raise Refusal(Code.TODO_NOT_FOUND, f"TODO #{number} not found", todo_number=number)
    todo = todos.one(store.disk, project.todos, number)
    task = _free(todos.next_number(todo))
    puts = todos.new_task(todo.folder, task, given["title"], given.get("content", ""))
    message = f"Added task #{task} to TODO #{number}"
    return plan_of(project, message, puts, {"task_number": task, "message": message})


def _free(number: int) -> int:
    """Return `number` if the tools accept such a number.

    Raises:
        Refusal: If it is too large.
    """
    if number > _LARGEST_NUMBER:
        raise Refusal(
            Code.INVALID_INPUT,
            f"Numbers end at {_LARGEST_NUMBER}; delete the list or task with the largest number",
        )
    return number


def _complete(store: Store, given: Given) -> Plan:
    todo = _todo(store, given)
    task = todo.task(given["task_number"])
    message = f"Marked task #{task.number} as completed in TODO #{todo.number}"
    return plan_of(
        project_of(store, given),
        message,
        todos.completed(store.disk, task),
        {"message": message},
    )


def _remove(store: Store, given: Given) -> Plan:
    todo = _todo(store, given)
    task = todo.task(given["task_number"])
    message = f"Removed task #{task.number} from TODO #{todo.number}"
    return plan_of(project_of(store, given), message, {}, {"message": message}, task.path)


def _delete(store: Store, given: Given) -> Plan:
    todo = _todo(store, given)
    message = f"Deleted TODO #{todo.number}"
    return plan_of(project_of(store, given), message, {}, {"message": message}, todo.folder)


READS: Mapping[str, Read] = {
    "list_todos": _list,
    "get_todo_tasks": _tasks,
    "get_next_todo_task": _next,
}
WRITES: Mapping[str, Write] = {
    "create_todo": _create,
    "add_todo_task": _add,
    "complete_todo_task": _complete,
    "remove_todo_task": _remove,
    "delete_todo": _delete,
}
