"""The help and usage texts of the command line, which its users call `qmd` by an alias. Pure."""

HELP = """\
Usage:
  qmd collection add [path] --name <name> --mask <pattern>  - Create/index collection
  qmd collection list           - List all collections with details
  qmd collection remove <name>  - Remove a collection by name
  qmd collection rename <old> <new>  - Rename a collection
  qmd ls [collection[/path]]    - List collections or files in a collection
  qmd context add [path] "text" - Add context for path (defaults to current dir)
  qmd context list              - List all contexts
  qmd context rm <path>         - Remove context
  qmd get <file>[:line] [-l N] [--from N]  - Get document (optionally from line, max N lines)
  qmd multi-get <pattern> [-l N] [--max-bytes N]  - Get multiple docs by glob or \
comma-separated list
  qmd status                    - Show index status and collections
  qmd update [--pull]           - Re-index all collections (--pull: git pull first)
  qmd embed [-f]                - Create vector embeddings (800 tokens/chunk, 15% overlap)
  qmd cleanup                   - Remove cache and orphaned data, vacuum DB
  qmd search <query>            - Full-text search (BM25)
  qmd vsearch <query>           - Vector similarity search
  qmd query <query>             - Combined search with query expansion + reranking
  qmd mcp                       - Start MCP server (for AI agent integration)

Global options:
  --index <name>             - Use custom index name (default: index)

Search options:
  -n <num>                   - Number of results (default: 5, or 20 for --files)
  --all                      - Return all matches (use with --min-score to filter)
  --min-score <num>          - Minimum similarity score
  --full                     - Output full document instead of snippet
  --line-numbers             - Add line numbers to output
  --files                    - Output docid,score,filepath,context (default: 20 results)
  --json                     - JSON output with snippets (default: 20 results)
  --csv                      - CSV output with snippets
  --md                       - Markdown output
  --xml                      - XML output
  -c, --collection <name>    - Filter results to a specific collection

Multi-get options:
  -l <num>                   - Maximum lines per file
  --max-bytes <num>          - Skip files larger than N bytes (default: 10240)
  --json/--csv/--md/--xml/--files - Output format (same as search)
"""
OURS = """
The background service, which MCP clients start and share:
  qmd server [--transport both|mcp|http] [--port N]  - Serve REST and MCP over HTTP
  qmd ui [--no-open]         - Search and read in a browser
  qmd status --watch         - Show live what the service does
  qmd logs [--follow]        - Show what it has logged
  qmd stop                   - End it
  qmd doctor [--json]        - Examine the machine, the model and the index
  vector-index-mcp install --set documents  - Add the documents to your MCP clients

`qmd` stands for `vector-index-mcp documents`: alias qmd='vector-index-mcp documents'
"""
"""What our help adds to that of the original program, `qmd`."""
COLLECTION_REMOVE = """\
Usage: qmd collection remove <name>
  Use 'qmd collection list' to see available collections
"""
COLLECTION_RENAME = """\
Usage: qmd collection rename <old-name> <new-name>
  Use 'qmd collection list' to see available collections
"""
CONTEXT = """\
Usage: qmd context <add|list|check|rm>

Commands:
  qmd context add [path] "text"  - Add context (defaults to current dir)
  qmd context add / "text"       - Add global context to all collections
  qmd context list                - List all contexts
  qmd context check               - Check for missing contexts
  qmd context rm <path>           - Remove context
"""
CONTEXT_ADD = """\
Usage: qmd context add [path] "text"

Examples:
  qmd context add "Context for current directory"
  qmd context add . "Context for current directory"
  qmd context add /subfolder "Context for subfolder"
  qmd context add / "Global context for all collections"

  Using virtual paths:
  qmd context add qmd://journals/ "Context for entire journals collection"
  qmd context add qmd://journals/2024 "Context for 2024 journals"
"""
GET = """\
Usage: qmd get <filepath>[:line] [--from <line>] [-l <lines>] [--line-numbers]
"""
MULTI_GET = """\
Usage: qmd multi-get <pattern> [-l <lines>] [--max-bytes <bytes>] [--json|--csv|--md|--xml|--files]
  pattern: glob (e.g., 'journals/2025-05*.md') or comma-separated list
"""
SEARCH = "Usage: qmd {command} [options] <query>\n"
UNKNOWN_COMMAND = "Unknown command: {command}\nRun 'qmd --help' for usage.\n"
UNKNOWN_SUBCOMMAND = "Unknown subcommand: {command}\nAvailable: list, add, remove, rename\n"
CONTEXT_SUBCOMMAND = "Unknown subcommand: {command}\nAvailable: add, list, check, rm\n"
CONTEXT_REMOVE = "Usage: qmd context rm <path>\n  Use 'qmd context list' to see all contexts\n"
