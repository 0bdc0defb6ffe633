"""Links that open a file at a line in an editor. Pure.

An editor registers a scheme with the system, and a browser hands it what has that scheme. A link
stands on a page that others' texts are shown on, so it must be no address that the browser itself
follows: nothing that it would run there, and nothing that it would load.
"""

import os
import re
from pathlib import PurePath
from urllib.parse import quote

NONE = "none"
DEFAULT = "vscode"
KNOWN = {
    "vscode": "vscode://file/{path}:{line}",
    "vscode-insiders": "vscode-insiders://file/{path}:{line}",
    "vscodium": "vscodium://file/{path}:{line}",
    "cursor": "cursor://file/{path}:{line}",
    "windsurf": "windsurf://file/{path}:{line}",
    "zed": "zed://file/{path}:{line}",
    "idea": "idea://open?file={path}&line={line}",
    "pycharm": "pycharm://open?file={path}&line={line}",
    "textmate": "txmt://open?url=file://{path}&line={line}",
}
"""By name, the address of a line, with `{path}` and `{line}` for what it is about."""

_TEMPLATE = re.compile(r"([a-z][a-z0-9+.-]{0,60})://([!#-;=?-z|~]|\{path\}|\{line\}){1,500}")
_PLACES = ("{path}", "{line}")
_OF_BROWSERS = frozenset(
    "about blob brave chrome chrome-error chrome-extension chrome-search chrome-untrusted content "
    "data devtools edge feed file filesystem ftp ftps gopher http https intent isolated-app jar "
    "javascript livescript mocha moz-extension moz-icon opera resource safari-extension "
    "safari-web-extension view-source vbscript vivaldi wais webcal ws wss wyciwyg".split()
)
"""What a browser follows itself: it would run or load it, or leave the page."""


def template_of(setting: str) -> str:
    """The address that a setting stands for; empty if there are to be no links.

    Args:
        setting: The name of a known editor, `none`, or an address as in `KNOWN`.

    Raises:
        ValueError: If it is nothing of these, with the reason.
    """
    name = setting.strip().lower()
    if name == NONE:
        return ""
    if name in KNOWN:
        return KNOWN[name]
    if ":" not in setting:
        raise ValueError(
            f"no such editor is known; there are {', '.join(KNOWN)}, {NONE}, "
            f"and addresses such as {KNOWN[DEFAULT]}"
        )
    scheme = setting.partition(":")[0].strip().lower()
    if scheme in _OF_BROWSERS:
        raise ValueError(
            f"a browser follows {scheme}: itself instead of asking an editor to open a file; "
            "use the scheme that your editor registers"
        )
    found = _TEMPLATE.fullmatch(setting)
    if found is None or any(setting.count(place) != 1 for place in _PLACES):
        raise ValueError(
            "an address has a scheme, ://, and {path} and {line} once each, without blanks, quotes "
            f"or other braces: {KNOWN[DEFAULT]}"
        )
    return setting


def link(template: str, path: PurePath, line: int) -> str:
    """The address that opens the file at `path`, which is absolute, at a line.

    Whatever the path is made of, no character of it means anything in the address.
    """
    place = quote(os.fsencode(path.as_posix()), safe="/")
    if place.startswith("/"):  # `scheme://file/{path}` means no two slashes
        template = re.sub(r"(?<=[^/:])/\{path\}", "{path}", template)
    return template.replace("{line}", str(line)).replace("{path}", place)
