"""The released packages whose sources the benchmarks search."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Corpus:
    """One package whose sources are searched."""

    name: str
    origin: str
    """`pypi`, `npm` or `debian`."""
    package: str
    version: str
    folders: tuple[str, ...] = ()
    """Which folders of the package are taken; all of them when empty."""


CORPORA = (
    Corpus("flask", "pypi", "flask", "3.1.2"),
    Corpus("httpx", "pypi", "httpx", "0.28.1"),
    Corpus("rich", "pypi", "rich", "14.1.0"),
    Corpus("celery", "pypi", "celery", "5.5.3"),
    Corpus("scrapy", "pypi", "scrapy", "2.13.3"),
    Corpus("jpype", "pypi", "jpype1", "1.6.0", ("native", "jpype", "test", "doc")),
    Corpus("pythonnet", "pypi", "pythonnet", "3.0.5"),
    Corpus("pybind11", "pypi", "pybind11", "3.0.1"),
    Corpus("zstandard", "pypi", "zstandard", "0.25.0", ("c-ext", "rust-ext", "tests", "zstandard")),
    Corpus("tokenizers", "pypi", "tokenizers", "0.22.1"),
    Corpus("wandb-core", "pypi", "wandb", "0.22.2", ("core/cmd", "core/internal", "core/pkg")),
    Corpus("lua", "pypi", "lupa", "2.5", ("third-party/lua54", "third-party/luajit21/src/jit")),
    Corpus("fastify", "npm", "fastify", "5.6.1"),
    Corpus("rxjs", "npm", "rxjs", "7.8.2", ("src",)),
    Corpus("zod", "npm", "zod", "4.1.12", ("src",)),
    Corpus("redux", "npm", "redux", "5.0.1", ("src",)),
    Corpus("preact", "npm", "preact", "10.27.2", ("src", "compat", "debug", "hooks")),
    Corpus("svelte", "npm", "svelte", "5.39.11", ("src",)),
    Corpus("capacitor-ios", "npm", "@capacitor/ios", "7.4.3"),
    Corpus("capacitor-android", "npm", "@capacitor/android", "7.4.3"),
    Corpus(
        "expo-modules-core",
        "npm",
        "expo-modules-core",
        "3.0.21",
        ("android", "ios", "common", "src"),
    ),
    Corpus("bats", "npm", "bats", "1.12.0"),
    Corpus("block-library", "npm", "@wordpress/block-library", "9.32.0", ("src",)),
    Corpus("aiohttp", "pypi", "aiohttp", "3.14.5", ("aiohttp", "examples", "tests", "tools")),
    Corpus("awesome", "debian", "awesome", "4.3-7", ("lib",)),
    Corpus(
        "bat",
        "debian",
        "rust-bat",
        "0.22.1-4",
        ("src", "examples", "doc", "assets/completions", "assets/manual"),
    ),
    Corpus(
        "black",
        "pypi",
        "black",
        "26.10.1",
        ("src", "tests", "scripts", "action", "plugin", "autoload"),
    ),
    Corpus("caddy", "debian", "caddy", "2.6.2-5"),
    Corpus("click", "pypi", "click", "8.5.1"),
    Corpus("cobra", "debian", "golang-github-spf13-cobra", "1.6.1-1"),
    Corpus(
        "commons-lang3", "debian", "libcommons-lang3-java", "3.12.0-2+deb12u1", ("src/main/java",)
    ),
    Corpus("composer", "debian", "composer", "2.5.5-1+deb12u5", ("src", "res", "bin")),
    Corpus(
        "dbus-sharp", "debian", "dbus-sharp", "0.8.1-2.1", ("src", "tools", "examples", "tests")
    ),
    Corpus("devscripts", "debian", "devscripts", "2.23.4+deb12u2", ("scripts",)),
    Corpus(
        "eslint",
        "npm",
        "eslint",
        "10.15.0",
        (
            "bin",
            "conf",
            "messages",
            "lib/cli-engine",
            "lib/config",
            "lib/eslint",
            "lib/languages",
            "lib/linter",
            "lib/rule-tester",
            "lib/services",
            "lib/shared",
        ),
    ),
    Corpus("expo-updates", "npm", "expo-updates", "57.0.24", ("android",)),
    Corpus("fzf", "debian", "fzf", "0.38.0-1"),
    Corpus("gin", "debian", "golang-github-gin-gonic-gin", "1.8.1-1"),
    Corpus("hapi", "npm", "@hapi/hapi", "21.4.10", ("lib",)),
    Corpus(
        "haskell-hakyll", "debian", "haskell-hakyll", "4.15.1.1-1", ("lib", "src", "data", "tests")
    ),
    Corpus("haskell-hledger-lib", "debian", "haskell-hledger-lib", "1.25-1", ("Hledger", "Text")),
    Corpus("initramfs-tools", "debian", "initramfs-tools", "0.142+deb12u3"),
    Corpus("jinja2", "pypi", "jinja2", "3.1.6"),
    Corpus("jq", "debian", "jq", "1.6-2.1+deb12u2", ("src", "tests")),
    Corpus("jsoup", "debian", "jsoup", "1.15.3-1", ("src/main/java", "src/test/java")),
    Corpus("keepass2", "debian", "keepass2", "2.47+dfsg-2", ("KeePass", "KeePassLib")),
    Corpus(
        "leveldb",
        "debian",
        "leveldb",
        "1.23-4",
        ("db", "table", "util", "include", "helpers", "port"),
    ),
    Corpus("libmojolicious-perl", "debian", "libmojolicious-perl", "9.31+dfsg-1", ("lib",)),
    Corpus("lottie-ios", "npm", "lottie-ios", "4.6.1", ("Sources",)),
    Corpus("luarocks", "debian", "luarocks", "3.8.0+dfsg1-1", ("src", "spec")),
    Corpus("luigi", "pypi", "luigi", "3.8.1", ("luigi", "examples", "test")),
    Corpus("mobx", "npm", "mobx", "7.1.3", ("src",)),
    Corpus("mocha", "npm", "mocha", "12.0.3", ("lib",)),
    Corpus("monolog", "debian", "php-monolog", "2.9.1-1", ("src", "tests")),
    Corpus("paramiko", "pypi", "paramiko", "5.1.0", ("paramiko", "tests")),
    Corpus("puma", "debian", "puma", "5.6.5-3+deb12u1", ("lib", "ext", "test", "tools")),
    Corpus("pydantic-core", "pypi", "pydantic_core", "2.50.4"),
    Corpus("pytest", "pypi", "pytest", "9.2.0", ("src", "testing", "bench", "extra", "scripts")),
    Corpus("query-core", "npm", "@tanstack/query-core", "5.108.0", ("src",)),
    Corpus("react-native-screens", "npm", "react-native-screens", "4.30.1", ("android",)),
    Corpus("redis", "debian", "redis", "5:7.0.15-1~deb12u7", ("src",)),
    Corpus("redux-toolkit", "npm", "@reduxjs/toolkit", "2.14.0", ("src",)),
    Corpus("ripgrep", "debian", "rust-ripgrep", "13.0.0-4"),
    Corpus(
        "ruff",
        "pypi",
        "ruff",
        "0.17.6",
        (
            "crates/ruff/src",
            "crates/ruff_server/src",
            "crates/ruff_cache/src",
            "crates/ruff_notebook/src",
            "crates/ruff_workspace/src",
            "crates/ruff_graph/src",
            "crates/ruff_markdown/src",
            "crates/ruff_command_line/src",
            "crates/ruff_diagnostics/src",
            "crates/ruff_python_parser/src",
            "crates/ruff_source_file/src",
            "crates/ruff_linter/src/fix",
            "crates/ruff_linter/src/checkers",
        ),
    ),
    Corpus("scala-repl", "debian", "scala", "2.11.12-5", ("src/repl", "src/repl-jline")),
    Corpus("scaladoc", "debian", "scala", "2.11.12-5", ("src/scaladoc",)),
    Corpus("sidekiq", "debian", "ruby-sidekiq", "6.4.1+dfsg-1", ("lib", "bin", "web")),
    Corpus(
        "streamlink",
        "pypi",
        "streamlink",
        "8.6.3",
        ("src", "tests", "script", "build_backend", "completions"),
    ),
    Corpus("tmux", "debian", "tmux", "3.3a-3"),
    Corpus("trpc-server", "npm", "@trpc/server", "11.25.2", ("src",)),
    Corpus("twig", "debian", "php-twig", "3.5.1-1+deb12u3", ("src", "extra")),
    Corpus("webpack", "npm", "webpack", "5.112.2", ("lib",)),
    Corpus("axios", "npm", "axios", "1.21.1", ("lib",)),
    Corpus("commonmark", "debian", "php-league-commonmark", "2.3.9-1+deb12u1"),
    Corpus("fd", "debian", "rust-fd-find", "8.6.0-3"),
    Corpus("htop", "debian", "htop", "3.2.2-2"),
    Corpus("marshmallow", "pypi", "marshmallow", "4.4.0"),
    Corpus("mix", "debian", "elixir-lang", "1.14.0.dfsg-2", ("lib/mix/lib", "lib/ex_unit/lib")),
    Corpus("okhttp", "debian", "libokhttp-java", "3.13.1-3", ("okhttp/src/main",)),
    Corpus("password-store", "debian", "password-store", "1.7.4-6"),
    Corpus("psr7", "debian", "php-guzzlehttp-psr7", "2.4.5-1+deb12u1"),
    Corpus("viper", "debian", "golang-github-spf13-viper", "1.10.1-1"),
    Corpus("websockets", "pypi", "websockets", "17.4"),
    Corpus("xmonad", "debian", "xmonad", "0.17.1-1"),
)
