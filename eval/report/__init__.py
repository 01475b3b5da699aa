"""Reports on evaluation runs, as Markdown tables and as one self-contained page.

report = make_report(load_runs([Path("runs/mine"), Path("runs/other")]), load_prices())
Path("report.html").write_text(report_html(report))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ras_agent.eval.report.figures import load_runs
    from ras_agent.eval.report.html_page import make_report, report_html
    from ras_agent.eval.report.markdown import report_markdown

__all__ = ["load_runs", "make_report", "report_html", "report_markdown"]

_MODULES = {
    "load_runs": "figures",
    "make_report": "html_page",
    "report_html": "html_page",
    "report_markdown": "markdown",
}


def __getattr__(name: str) -> Any:
    # lazy: the processes that draw traces import this package before they may import numpy (see traces.py)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
