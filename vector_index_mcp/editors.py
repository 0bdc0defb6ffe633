"""Links that open a file at a line in an editor. Pure.

An editor registers a URL scheme with the system, and a browser passes links of that scheme to the
editor. The page also shows texts that strangers wrote, so a link must never have a scheme that the
browser handles itself: it would run or load something.
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
"""The address that opens a line, by editor, with `{path}` and `{line}` as placeholders."""

_TEMPLATE = re.compile(r"([a-z][a-z0-9+.-]{0,60})://([!#-;=?-z|~]|\{path\}|\{line\}){1,500}")
_PLACES = ("{path}", "{line}")
_OF_BROWSERS = frozenset(
    "about blob brave chrome chrome-error chrome-extension chrome-search chrome-untrusted content "
    "data devtools edge feed file filesystem ftp ftps gopher http https intent isolated-app jar "
    "javascript livescript mocha moz-extension moz-icon opera resource safari-extension "
    "safari-web-extension view-source vbscript vivaldi wais webcal ws wss wyciwyg".split()
)
"""Schemes that a browser handles itself: it would run or load the link, or leave the page."""


def template_of(setting: str) -> str:
    """The address template that the setting `editor` stands for; empty for no links.

    Args:
        setting: The name of a known editor, `none`, or an address as in `KNOWN`.

    Raises:
        ValueError: If it is none of these, with the reason.
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

    Characters of the path that have a meaning in an address are escaped.
    """
    place = quote(os.fsencode(path.as_posix()), safe="/")
    if place.startswith("/"):  # else `scheme://file/{path}` would get two slashes
        template = re.sub(r"(?<=[^/:])/\{path\}", "{path}", template)
    return template.replace("{line}", str(line)).replace("{path}", place)
