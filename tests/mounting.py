"""Runs commands in a namespace of mounts of their own, where the system allows it."""

import shutil
import subprocess
import sys

IN_A_NAMESPACE = ("unshare", "--mount", "sh", "-c")
"""What precedes a script for the shell that may mount as it likes."""
CAN_MOUNT = (
    sys.platform == "linux"
    and shutil.which("unshare") is not None
    and subprocess.run([*IN_A_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
)
