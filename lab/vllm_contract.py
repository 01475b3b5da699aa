"""Asks vLLM's own HTTP server for a GraphLLM's replies, with transformers in its engine's place, and compares.

    python -m lab.vllm_contract FOLDER

runs where vLLM's Python is installed, 0.33 for one; a GPU and its compiled parts are not needed. Of vLLM are the
routes, the classes of requests, the renderer that decodes prompt embeddings, and the handlers of completions and of
errors. The engine's stand-in gets what the renderer made, and generates with transformers. Prints a JSON object a case.
"""

# pyright: reportMissingImports=false
# vLLM is not among the packages that this project is checked with

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ras_agent.errors import RasError
from ras_agent.prompts import Turn
from ras_agent.records import Triple
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat
from ras_agent.tools.graph_tokens.chat import GraphLLMChat
from ras_agent.tools.graph_tokens.served import ServedGraphLLM

_BELL, _LEITH = Triple("Bell", "was born in", "Edinburgh"), Triple("Water of Leith", "flows through", "Edinburgh")
_GRAPHS: tuple[tuple[tuple[Triple, ...], ...], ...] = ((), ((_BELL,),), ((_BELL,), (_LEITH, _BELL)))
_TURNS = (Turn("system", "You plan."), Turn("user", "Question: Which river flows through Bell's birthplace?"))
_ADAPTED = "tuned"


class _Engine:
    """Stands in for vLLM's engine client."""

    errored, input_processor = False, None

    def __init__(self, config: Any, renderer: Any, name: str, adapter: Path | None) -> None:
        self.vllm_config, self.model_config, self.renderer = config, config.model_config, renderer
        from ras_agent.tools.graph_tokens.graph_llm import load_language_model

        self._model, self._tokenizer = load_language_model(name)
        if adapter is not None:
            from peft import PeftModel

            self._model = PeftModel.from_pretrained(self._model, adapter)
        self._adapter, self._lock = adapter, threading.Lock()

    def check_admission(self, n: int = 1, request_id: str | None = None) -> None:
        """Admit every request."""

    async def generate(
        self, prompt: Any, params: Any, request_id: str, *, lora_request: Any = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Yield the reply to a prompt as vLLM's engine does: whole, or in two parts for a stream."""
        from vllm.outputs import CompletionOutput, RequestOutput

        vectors = prompt["prompt_embeds"]
        tokens, ending = self._written(vectors, params, plain=lora_request is None)
        shown = tokens[:-1] if ending == "stop" else tokens
        text = self._tokenizer.decode(shown, skip_special_tokens=params.skip_special_tokens)
        middle = len(text) // 2 if params.output_kind.name == "DELTA" else 0
        first = [(text[:middle], tokens[:1], None)] if middle else []
        for part, written, reason in [*first, (text[middle:], tokens[len(first) :], ending)]:
            output = CompletionOutput(0, part, written, None, None, finish_reason=reason)
            yield RequestOutput(request_id, None, [0] * len(vectors), None, [output], reason is not None)

    def _written(self, vectors: Any, params: Any, *, plain: bool) -> tuple[list[int], str]:
        import torch

        off = self._model.disable_adapter() if plain and self._adapter is not None else nullcontext()
        with self._lock, torch.no_grad(), off:
            tokens: list[int] = self._model.generate(
                inputs_embeds=vectors.unsqueeze(0),
                attention_mask=torch.ones(1, len(vectors), dtype=torch.long),
                max_new_tokens=params.max_tokens,
                do_sample=params.temperature > 0,
                pad_token_id=self._tokenizer.eos_token_id,
            )[0].tolist()
        return tokens, "stop" if tokens[-1] == self._tokenizer.eos_token_id else "length"


@contextmanager
def serving(name: str, adapter: Path | None, *, flag: bool) -> Iterator[str]:
    """Serve a language model on the loopback interface by vLLM's own routes and handlers; give the address."""
    from transformers import AutoConfig
    from vllm.config import DeviceConfig, ModelConfig, VllmConfig
    from vllm.entrypoints.openai.completion.api_router import router
    from vllm.entrypoints.openai.completion.serving import OpenAIServingCompletion
    from vllm.entrypoints.openai.models.protocol import BaseModelPath
    from vllm.entrypoints.openai.models.serving import OpenAIServingModels
    from vllm.entrypoints.serve.exception_handling.register import init_exception_handler
    from vllm.lora.request import LoRARequest
    from vllm.renderers import renderer_from_config
    from vllm.renderers.online_renderer import OnlineRenderer

    # by itself vLLM makes a float32 model a half-precision one
    numbers = str(AutoConfig.from_pretrained(name).dtype).removeprefix("torch.")
    model = ModelConfig(model=name, dtype=numbers, enable_prompt_embeds=flag)
    config = VllmConfig(model_config=model, device_config=DeviceConfig(device="cpu"))
    renderer: Any = renderer_from_config(config)
    engine: Any = _Engine(config, renderer, name, adapter)
    models = OpenAIServingModels(engine, [BaseModelPath(name, name)])
    if adapter is not None:
        models.lora_requests[_ADAPTED] = LoRARequest(_ADAPTED, 1, str(adapter))
    online = OnlineRenderer(
        model, renderer, request_logger=None, chat_template=None, chat_template_content_format="auto"
    )
    uvicorn: Any = import_module("uvicorn")  # it and fastapi come with vLLM
    app = import_module("fastapi").FastAPI()
    app.include_router(router)
    init_exception_handler(app)
    app.state.openai_serving_completion = OpenAIServingCompletion(
        engine, models, online_renderer=online, request_logger=None
    )
    app.state.args = SimpleNamespace(sse_keep_alive_interval=0, log_error_stack=False)
    app.state.enable_server_load_tracking, app.state.server_load_metrics = False, 0
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()


def compare(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what the server and the model here write, case by case, and what the server refuses."""
    from ras_agent.tools.graph_tokens.graph_llm import ADAPTER, base_model, read_config

    config = read_config(folder)
    name, adapter = base_model(folder, config), folder / ADAPTER if config.tuning == "lora" else None
    served = _ADAPTED if adapter is not None else name
    here = Chat(GraphLLMChat.in_folder(folder))
    with serving(name, adapter, flag=True) as url:
        there = Chat(ServedGraphLLM.at(folder, url, served))
        for graph in _GRAPHS:
            for streamed in (False, True):
                asked = Request(_TURNS, (lambda text: None) if streamed else None, 16, graph)
                made, wanted = there.complete(asked), here.complete(asked)
                numbers = [(one.input_tokens, one.output_tokens, one.truncated) for one in (made, wanted)]
                same = {"same text": made.text == wanted.text, "same tokens": numbers[0] == numbers[1]}
                yield {"case": f"{len(graph)} sub-queries", "streamed": streamed, "text": made.text, **same}
        yield _refused("a model that is not served", Chat(ServedGraphLLM.at(folder, url, "nobody")))
    with serving(name, adapter, flag=False) as url:
        yield _refused("no flag", Chat(ServedGraphLLM.at(folder, url, served)))


def _refused(case: str, chat: Chat) -> dict[str, Any]:
    try:
        return {"case": case, "text": chat.complete(Request(_TURNS, max_tokens=4)).text}
    except RasError as error:
        return {"case": case, "refused": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a GraphLLM's folder")
    for result in compare(parser.parse_args().folder):
        print(json.dumps(result), flush=True)
