"""Makes the HTML page of a run, from parts that every self-contained page uses."""

from ras_agent.page.self_contained import (
    SERVED_POLICY,
    filled,
    json_for_html,
    page_file,
    page_script,
    policy,
)
from ras_agent.page.trace_page import (
    picture,
    trace_data,
    trace_frame,
    trace_html,
    trace_script,
)

__all__ = [
    "SERVED_POLICY",
    "filled",
    "json_for_html",
    "page_file",
    "page_script",
    "picture",
    "policy",
    "trace_data",
    "trace_frame",
    "trace_html",
    "trace_script",
]
