"""Whether a process is there, and whether a signal has stopped it, such as Ctrl-Z sends."""


def is_there(pid: int) -> bool:
    """Whether there is a process with this number."""
    import psutil  # here, since the children that somebody waits for start without it

    try:
        return bool(psutil.pid_exists(pid))
    except (OSError, OverflowError):
        return False


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, by a signal or by a debugger; False if nobody can tell."""
    import psutil

    try:
        return psutil.Process(pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
    except (OSError, ValueError, psutil.Error):  # Linux may lack /proc
        return False
