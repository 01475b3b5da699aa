"""Merges the adapter of a GraphLLM into the weights of its language model.

    python -m ras_agent.train.graphllm.merge FOLDER OUT

OUT is a GraphLLM without an adapter. It gives the same replies, is as large on disk as the language model, and
can be served by any vLLM server that accepts prompt embeddings.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from ras_agent.tools.graph_tokens.roles import PROMPTS


def merge(folder: Path, out: Path) -> None:
    """Write the GraphLLM in `folder` to `out`, with its adapter merged. Raises as GraphLLM's `load` and `merged` do."""
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    GraphLLM.load(folder).merged().save(out)
    if (folder / PROMPTS).is_dir():
        shutil.copytree(folder / PROMPTS, out / PROMPTS, dirs_exist_ok=True)


def main() -> None:
    """Merge the model that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m ras_agent.train.graphllm.merge", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="a GraphLLM with an adapter")
    parser.add_argument("out", type=Path, help="where the merged one is written")
    given = parser.parse_args()
    merge(given.folder, given.out)
    print(f"{given.out}: a GraphLLM without an adapter")


if __name__ == "__main__":
    main()
