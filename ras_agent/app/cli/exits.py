"""Exit codes, the same for all commands."""

from __future__ import annotations

__all__ = ["DONE", "EPILOG", "ERROR", "INCOMPLETE", "INTERRUPTED", "UNANSWERED", "USAGE"]

DONE, ERROR, USAGE, INCOMPLETE, UNANSWERED, INTERRUPTED = 0, 1, 2, 3, 4, 130

EPILOG = (
    "Exit codes: 0 done; 1 error; 2 wrong usage; 3 done, but `ask` found no answer in the text, "
    "`index` or `structure` could not read all of its input, or a question of `eval` failed; "
    "4 `ask` searched, but its answerer failed or a limit forbade its call; 130 interrupted."
)
