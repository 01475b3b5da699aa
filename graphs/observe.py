"""Reports runs to the operators of a service: searches to LangChain's callbacks, and each node as one log line.

LangSmith, OpenTelemetry and a user's own handlers listen to these callbacks. Model calls and nodes are reported
by LangChain and LangGraph themselves. The log lines go to Python's logger `ras_agent` (see ras_agent.logs).
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
)

from ras_agent.contracts.records import Hit, Passage
from ras_agent.graphs.state import Update
from ras_agent.logs import LOGGER, shows_text
from ras_agent.running.budget import Ledger
from ras_agent.running.calling import acall, call, name_of
from ras_agent.tools.retrieve.search import searched_by

_ID = "question_id"
_OUTSIDE_HOPS = frozenset(("begin", "rewrite", "answer"))
_KNOWN = re.compile(
    r"\b(?:[A-Z]\w+(?:Error|Exception|Status)|Error code: \d{3}|failed after \d+ tr(?:y|ies)|nothing listens at \S+\w"
    r"|check the API key)\b"
)
_EMPTYING = ("begin", "merge")  # nodes that empty hits and facts


def search(
    config: RunnableConfig | None, role: Any, method: str, *args: Any, within: float
) -> Any:
    """Call a retriever, and report the search to the callbacks of the run.

    Args:
        method, args: the retriever's method and its arguments, of which the first is the query.
        within: the seconds that the call may take.
    """
    manager = _manager(config, role, get_callback_manager_for_config)
    if manager is None:
        return call(role, method, *args, within=within)
    run = manager.on_retriever_start(None, args[0], name=name_of(searched_by(role)))
    try:
        hits = call(role, method, *args, within=within)
    except BaseException as error:
        run.on_retriever_error(error)
        raise
    run.on_retriever_end(_documents(hits))
    return hits


async def asearch(
    config: RunnableConfig | None, role: Any, method: str, *args: Any, within: float
) -> Any:
    """Do the same as `search`, as a coroutine."""
    manager = _manager(config, role, get_async_callback_manager_for_config)
    if manager is None:
        return await acall(role, method, *args, within=within)
    run = await manager.on_retriever_start(
        None, args[0], name=name_of(searched_by(role))
    )
    try:
        hits = await acall(role, method, *args, within=within)
    except BaseException as error:
        await run.on_retriever_error(error)
        raise
    await run.on_retriever_end(_documents(hits))
    return hits


def _manager(config: RunnableConfig | None, role: Any, make: Any) -> Any:
    """Return the callback manager; None if no handler listens, or if LangChain's own retriever already reports
    the search.
    """
    if config is None or getattr(searched_by(role), "reports_searches", False):
        return None
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager) and not _listens(callbacks):
        return None  # LangGraph's manager already contains the handlers of the whole process
    manager = make(config)
    if _listens(manager):
        return manager
    return None


def _listens(manager: BaseCallbackManager) -> bool:
    return any(not handler.ignore_retriever for handler in manager.handlers)


def _documents(hits: object) -> Sequence[Document]:
    documents: list[Document] = []
    if not isinstance(hits, Sequence):
        return documents
    for hit in hits:
        # the node refuses a hit that is not a passage of texts
        if (
            not isinstance(hit, Hit)
            or not isinstance(hit.passage, Passage)
            or not isinstance(hit.passage.text, str)
        ):
            continue
        passage = hit.passage
        document = Document(
            passage.text,
            id=str(passage.id),
            metadata={"title": passage.title, "score": hit.score},
        )
        documents.append(document)
    return documents


def log_node(
    name: str,
    config: RunnableConfig | None,
    state: Any,
    update: Update,
    ledger: Ledger,
    seconds: float,
) -> None:
    """Log a node's run: counts, ids, times and failures. Question and answer are included only if a handler
    asks for texts.
    """
    failures = update.get("failures") or ()
    level = logging.WARNING if failures else logging.INFO
    if not LOGGER.isEnabledFor(level):
        return
    hop = len(state.get("steps") or ()) + (name not in _OUTSIDE_HOPS)
    fields: dict[str, Any] = {
        _ID: question_id(config, {**state, **update}),
        "node": name,
        "hop": hop,
    }
    configurable = (config or {}).get("configurable") or {}
    if thread := configurable.get("thread_id"):
        fields["thread"] = str(thread).rpartition("/")[2]
    fields["seconds"] = round(seconds, 4)
    if ledger.calls:
        fields["model_calls"] = len(ledger.calls)
        fields["input_tokens"] = sum(
            model_call.input_tokens for model_call in ledger.calls
        )
        fields["output_tokens"] = sum(
            model_call.output_tokens for model_call in ledger.calls
        )
    if "hits" in update and name not in _EMPTYING:
        fields["passage_ids"] = [hit["passage_id"] for hit in update["hits"]]
    if "triples" in update and name not in _EMPTYING:
        fields["facts_read"] = len(update["triples"])
    for key in ("stop_reason", "grounded", "abstained"):
        if update.get(key) not in (None, "") and name != "begin":
            fields[key] = update[key]
    if name == "answer":
        fields["citations"] = len(update.get("citations", ()))
    reasons = []
    texts = []
    lines = [name]
    for failure in failures:
        role = failure["role"]
        reason = _reason(failure["message"])
        reasons.append({"role": role, "message": reason})
        texts.append({"role": role, "message": failure["message"]})
        lines.append(f"{role}: {reason}")
    if reasons:
        fields["failures"] = reasons
    extra: dict[str, Any] = {"ras_agent": fields}
    if shows_text():
        shown = {key: update.get(key) for key in ("question", "subquery", "answer")} | {
            "failures": texts
        }
        extra["ras_agent_text"] = {key: text for key, text in shown.items() if text}
    LOGGER.log(level, "%s", "; ".join(lines), extra=extra)


def _reason(message: str) -> str:
    """Return a failure's message without quoted texts: its beginning, and only known words of the rest."""
    kind, _, rest = message.partition(": ")
    known = ", ".join(dict.fromkeys(_KNOWN.findall(rest)))
    return f"{kind} ({known})" if known else kind


def question_id(config: RunnableConfig | None, state: Any) -> str:
    """Return the caller's `metadata["question_id"]`, or without one a short digest of the user's question."""
    if question_id := ((config or {}).get("metadata") or {}).get(_ID):
        return str(question_id)
    question = str(state.get("asked") or state.get("question") or "")
    return hashlib.sha256(question.encode("utf-8", "replace")).hexdigest()[:12]
