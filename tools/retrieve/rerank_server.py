"""The reranker "http://host/rerank#model" sends the query and the texts to a server, which scores them.

The request has the form of Jina, Cohere's v2, vLLM, llama.cpp, Infinity and LiteLLM: {"model", "query",
"documents", "top_n"}. If a server refuses it, the form of TEI, {"query", "texts", "truncate"}, is tried, and if
that works it is used from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from ras_agent.tools.chat.http import BrokenReply, ErrorStatus
from ras_agent.tools.chat.model_server import SECONDS, ModelServer
from ras_agent.tools.chat.models import server_address
from ras_agent.tools.roles import RoleOptions

_OWN_PATHS = ("/rerank", "/reranking", "/rank")
# status codes of servers that expect another form of body
_OTHER_FORM = frozenset((400, 404, 415, 422))
_SCORES = ("relevance_score", "score")
_LISTS = ("results", "data")


class RerankServer:
    """Scores texts by a reranking server. Thread safe; nothing is sent before the first query."""

    def __init__(self, address: str, options: RoleOptions) -> None:
        """Parse an address, `http://host:port/rerank#model`. Raises SettingsError, and MissingExtra without `aiohttp`.

        The key is read from the environment variable that the setting roles.reranker.api_keys names, else from
        VLLM_API_KEY. Keys and headers for the models of other roles are not sent.
        """
        url, model, key = server_address(address, "")
        chat = options.for_role("reranker").chat
        keys: tuple[str, ...] = ()
        headers: dict[str, str] = {}
        if chat.request.keys != options.chat.request.keys:
            keys = chat.request.sent_keys()
        if chat.request.headers != options.chat.request.headers:
            headers = chat.request.sent_headers()
        self.name = address
        self._model = model
        is_whole = urlsplit(url).path.rstrip("/").endswith(_OWN_PATHS)
        self._path = "" if is_whole else "/rerank"
        self._takes_texts = False
        self._server = ModelServer(
            f"reranker {model!r}",
            url,
            SecretStr(keys[0] if keys else key),
            headers=headers,
            seconds=chat.timeout or SECONDS,
            retry=chat.retry,
            clock=chat.clock,
            key_remedy="set the variable that roles.reranker.api_keys names, or VLLM_API_KEY, to a key that it accepts",
            address_remedy="correct --reranker, http://host:port/rerank#model",
        )

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the server's score of each text.

        Raises ModelCallError if a call fails, and ModelRefused if the server cannot be reached, refuses the key or does
        not know the model.
        """
        # servers refuse an empty text
        sent = [text or " " for text in texts]
        try:
            return self._asked(query, sent)
        except Exception as error:
            raise self._server.error_of(error) from None

    def _asked(self, query: str, texts: list[str]) -> list[float]:
        of_tei = {"query": query, "texts": texts, "truncate": True}
        if self._takes_texts:
            return self._posted(of_tei, len(texts))
        try:
            return self._posted(self._usual_body(query, texts), len(texts))
        except ErrorStatus as error:
            if error.status_code not in _OTHER_FORM:
                raise
            refused = error
        try:
            found = self._posted(of_tei, len(texts))
        except ErrorStatus:
            # the form was not the reason of the refusal
            raise refused from None
        self._takes_texts = True
        return found

    def _usual_body(self, query: str, texts: list[str]) -> dict[str, Any]:
        return {
            "model": self._model,
            "query": query,
            "documents": texts,
            "top_n": len(texts),
        }

    def _posted(self, body: dict[str, Any], count: int) -> list[float]:
        read = partial(scores_in, count=count)
        return self._server.ask(self._path, body, read)


def scores_in(reply: Any, count: int) -> list[float]:
    """Return the scores in a server's reply, in the order of the texts. Raises BrokenReply if a text has no score.

    >>> scores_in({"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}, 2)
    [0.1, 0.9]
    >>> scores_in([{"index": 0, "score": 2}], 1)
    [2.0]
    """
    found: dict[int, float] = {}
    for result in _results_in(reply):
        place = result.get("index")
        score = next((result[name] for name in _SCORES if name in result), None)
        if not isinstance(place, int) or not isinstance(score, int | float):
            raise BrokenReply(f"a result has no index and score: {result!r:.200}")
        found[place] = float(score)
    if found.keys() != set(range(count)):
        raise BrokenReply(f"the reply scores {len(found)} texts of {count}")
    return [found[place] for place in range(count)]


def _results_in(reply: Any) -> list[dict[str, Any]]:
    results = reply
    if isinstance(reply, dict):
        results = next((reply[name] for name in _LISTS if name in reply), None)
    if not isinstance(results, list):
        raise BrokenReply(f"the reply holds no list of results: {reply!r:.200}")
    return [result for result in results if isinstance(result, dict)]


def over_http(place: str, options: RoleOptions) -> RerankServer:
    """Build the reranker "http://host/rerank#model", given the text after "http:"."""
    return RerankServer(f"http:{place}", options)


def over_https(place: str, options: RoleOptions) -> RerankServer:
    """Build the reranker "https://host/rerank#model", given the text after "https:"."""
    return RerankServer(f"https:{place}", options)
