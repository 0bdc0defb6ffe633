"""Whether a process is stopped by a signal, such as Ctrl-Z sends to a command."""


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, by a signal or by a debugger; False if nobody can tell."""
    import psutil  # here, since the children that somebody waits for start without it

    try:
        return psutil.Process(pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
    except (OSError, ValueError, psutil.Error):  # Linux may lack /proc
        return False
