"""Make a trained GFM network ready to ship: half-precision weights and a card.

    python -m ras_agent.train.gfm.export RUN --out ras_agent/data/gfm --scores scores.json

RUN is a folder that ras_agent.train.gfm.train wrote. scores.json is copied into the card as its scores.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ras_agent.program import run_program
from ras_agent.tools.gfm.weights import load_gfm, save_gfm
from ras_agent.tools.retrieve.document_ranker import PACKAGED

_ENCODERS = {"minilm": "all-MiniLM-L6-v2, as packaged"}

_SOURCES = {
    "hotpotqa": "HotpotQA training set, 100 questions and their corpus (CC BY-SA 4.0)",
    "musique": "MuSiQue training set, 199 questions and their paragraphs (CC BY 4.0)",
    "2wiki": "2WikiMultihopQA's corpus, without its questions (Apache-2.0)",
}


def export(run: Path, out: Path, scores: Any) -> dict[str, Any]:
    """Write config.json, model.safetensors (float16) and card.json into `out`, and return the card."""
    config, weights = load_gfm(run)
    save_gfm(out, config, weights, half=True)
    training = json.loads((run / "training.json").read_text(encoding="utf-8"))
    card = {
        "made_by": "ras_agent.train.gfm.train",
        "method": "GFM-RAG (arXiv:2502.01113)",
        "licence": "Apache-2.0",
        "parameters": config.parameters(),
        "encoder": _ENCODERS.get(config.text_model, config.text_model or "unknown"),
        "graphs": "read by the offline extractor, equivalences above 0.8",
        "data": [_SOURCES.get(name, name) for name in training["sets"]],
        "questions": "labelled ones, and pseudo questions made from the passages",
        "ranker": asdict(PACKAGED),
        "training": training,
        "scores": scores,
    }
    (out / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return card


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and export."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a training")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the weights to write")
    parser.add_argument("--scores", type=Path, required=True, help="a JSON file of scores, for the card")
    options = parser.parse_args(arguments)
    scores = json.loads(options.scores.read_text("utf-8"))
    print(json.dumps(export(options.run, options.out, scores), indent=2))


if __name__ == "__main__":
    run_program(main)
