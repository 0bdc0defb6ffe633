"""Finds the language of a file by its name, or by how its text begins. Pure."""

import re
from collections.abc import Iterable, Iterator

VERSION = "languages-4"
"""Changes whenever the same file would get another language."""

_BY_SUFFIX = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "kotlin": "kt kts",
    "scala": "scala sc sbt",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp tpp",
    "csharp": "cs csx",
    "swift": "swift",
    "objc": "m mm",
    "ruby": "rb rake gemspec",
    "php": "php phtml",
    "lua": "lua",
    "perl": "pl pm t",
    "r": "r",
    "julia": "jl",
    "bash": "sh bash zsh ksh bats",
    "fish": "fish",
    "powershell": "ps1 psm1 psd1",
    "batch": "bat cmd",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "haskell": "hs lhs",
    "ocaml": "ml mli",
    "fsharp": "fs fsi fsx",
    "clojure": "clj cljs cljc edn",
    "lisp": "lisp lsp el",
    "scheme": "scm ss rkt",
    "zig": "zig",
    "nim": "nim",
    "d": "d",
    "dart": "dart",
    "groovy": "groovy gradle",
    "vue": "vue",
    "svelte": "svelte",
    "astro": "astro",
    "html": "html htm xhtml",
    "css": "css",
    "scss": "scss sass less",
    "sql": "sql",
    "graphql": "graphql gql",
    "proto": "proto",
    "terraform": "tf tfvars hcl",
    "nix": "nix",
    "cmake": "cmake",
    "make": "mk mak",
    "dockerfile": "dockerfile",
    "json": "json jsonc json5",
    "yaml": "yaml yml",
    "toml": "toml",
    "ini": "ini cfg conf properties",
    "xml": "xml xsd xsl xslt svg",
    "notebook": "ipynb",
    "pdf": "pdf",
    "docx": "docx",
    "markdown": "md markdown mdx",
    "rst": "rst",
    "asciidoc": "adoc asciidoc asc",
    "org": "org",
    "latex": "tex sty",
    "text": "txt text",
    "csv": "csv tsv",
    "solidity": "sol",
    "verilog": "v sv svh",
    "vhdl": "vhd vhdl",
    "assembly": "s asm",
    "cuda": "cu cuh",
    "glsl": "glsl vert frag",
    "vim": "vim",
    "fortran": "f f90 f95 f03 for",
    "pascal": "pas pp",
    "diff": "diff patch",
}
LANGUAGES = tuple(_BY_SUFFIX)
"""The names of all languages."""
_SUFFIXES = {suffix: name for name, all_of in _BY_SUFFIX.items() for suffix in all_of.split()}
_NAMES = {
    "makefile": "make",
    "gnumakefile": "make",
    "justfile": "make",
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "cmakelists.txt": "cmake",
    "gemfile": "ruby",
    "rakefile": "ruby",
    "vagrantfile": "ruby",
    "podfile": "ruby",
    "jenkinsfile": "groovy",
    "build": "python",
    "build.bazel": "python",
    "workspace": "python",
    "go.mod": "go",
    ".bashrc": "bash",
    ".zshrc": "bash",
    ".profile": "bash",
    ".gitignore": "ini",
    ".editorconfig": "ini",
}
_SYNONYMS = {
    "c#": "csharp",
    "f#": "fsharp",
    "golang": "go",
    "objective-c": "objc",
    "shell": "bash",
    "sh": "bash",
    "restructuredtext": "rst",
    "jupyter": "notebook",
    "docker": "dockerfile",
    "makefile": "make",
}
# What the first line of a script may name, without its version.
_RUN_BY = {
    "bash": "sh bash dash zsh ksh mksh ash busybox bats",
    "python": "python pypy uv",
    "perl": "perl",
    "ruby": "ruby jruby",
    "lua": "lua luajit",
    "php": "php",
    "javascript": "node nodejs",
    "typescript": "deno bun tsx ts-node",
    "r": "rscript",
    "julia": "julia",
    "elixir": "elixir",
    "erlang": "escript",
    "haskell": "runhaskell runghc stack",
    "fish": "fish",
    "powershell": "pwsh powershell",
    "groovy": "groovy",
    "scala": "scala scala-cli",
    "swift": "swift",
    "make": "make gmake",
}
_PROGRAMS = {program: name for name, all_of in _RUN_BY.items() for program in all_of.split()}
_LONGEST_FIRST_LINE = 256
"""Characters; Linux reads no more of it (`BINPRM_BUF_SIZE`)."""
_HEADER_CHARS = 1 << 16
# What only one of the three languages has whose headers end in `.h`, at the start of a line.
_OF_OBJC = re.compile(r"^[ \t]*(?:@(?:interface|protocol|class|import)|#[ \t]*import)\b", re.M)
_OF_CPP = re.compile(
    r"^[ \t]*(?:(?:inline[ \t]+)?namespace[ \t]+[\w:]+[ \t]*(?:\{|$)|template[ \t]*<"
    r"|using[ \t]+(?:namespace[ \t]+[\w:]+[ \t]*;|[\w:]*::\w+[ \t]*;|\w+[ \t]*=)"
    r"|(?:public|protected|private)[ \t]*:|enum[ \t]+class\b|friend[ \t]+class\b"
    r"|class[ \t]+(?:\w+[ \t]+){0,2}\w+[ \t]*(?:[:{;]|final\b|$)"
    r"|#[ \t]*include[ \t]*<(?:string|vector|map|memory|functional|utility|type_traits|c\w+)>)"
    r"|\bstd::",
    re.M,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|el|endif)")
_ONLY_CPP = "__cplusplus"  # defined by compilers of C++ alone
_DIALECTS = {"typescript": ("tsx",)}
_PROSE = frozenset({"markdown", "rst", "asciidoc", "org", "latex", "text"})
OTHER = "other"


def language_of(path: str, text: str = "") -> str:
    """Return the language of a file, in lower case; `other` if nothing tells it.

    Args:
        path: Its path. If its name has a language, this is it.
        text: The beginning of its text, or all of it; a script may begin with `#!` and a program,
            and a header `.h` is of C unless its text is of C++ or Objective-C.
    """
    name = _by_name(path)
    if name == "c" and text and path.lower().endswith(".h"):
        return _of_header(text[:_HEADER_CHARS])
    return _by_program(text) if name == OTHER and text.startswith("#!") else name


def _of_header(text: str) -> str:
    code = _COMMENT.sub(" ", text)
    if _OF_OBJC.search(code):
        return "objc"
    if _ONLY_CPP in code:
        code = "\n".join(_for_c(code.split("\n")))
    return "cpp" if _OF_CPP.search(code) else "c"


def _for_c(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that a compiler of C reads, too: those outside of `#ifdef __cplusplus`."""
    depth = 0  # of conditions, inside of one for C++
    for line in lines:
        found = _CONDITION.match(line)
        kind = found[1] if found else ""
        if depth:
            depth += (kind == "if") - (kind == "endif" or (kind == "el" and depth == 1))
        elif kind == "if" and _ONLY_CPP in line and "#ifndef" not in line and "!" not in line:
            depth = 1
        else:
            yield line


def _by_name(path: str) -> str:
    name = path.rsplit("/", 1)[-1].lower()
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("dockerfile."):
        return "dockerfile"
    return _SUFFIXES.get(name.rsplit(".", 1)[-1], OTHER) if "." in name else OTHER


def _by_program(text: str) -> str:
    words = text[2:_LONGEST_FIRST_LINE].split("\n", 1)[0].split()
    programs = (word.rpartition("/")[2].lower() for word in words if not _is_of_env(word))
    program = next((program for program in programs if program != "env"), "")
    return _PROGRAMS.get(program.rstrip("-.0123456789"), OTHER)  # without its version


def _is_of_env(word: str) -> bool:
    """Return whether a word is an option of `env`, or a variable."""
    return word.startswith("-") or "=" in word


def known_language(name: str) -> str | None:
    """Return the language with this name, extension or usual synonym; None if there is none."""
    wanted = name.strip().lower().removeprefix(".")
    if wanted in _BY_SUFFIX or wanted == OTHER:
        return wanted
    return _SYNONYMS.get(wanted) or _SUFFIXES.get(wanted)


def languages_meant_by(name: str) -> tuple[str, ...] | None:
    """Return `known_language(name)` and its dialects, which users mean as well; None if unknown."""
    known = known_language(name)
    return None if known is None else (known, *_DIALECTS.get(known, ()))


def is_prose(language: str) -> bool:
    """Return whether the language is prose, in which a line may be a whole paragraph."""
    return language in _PROSE
