"""2WikiMultihopQA (Ho et al., 2020): questions that compare, infer and compose, with their evidence triples."""

from ras_agent.eval.benchmarks.multi_hop import MULTI_HOP
from ras_agent.eval.benchmarks.record import Benchmark
from ras_agent.eval.benchmarks.titled_sentences import titled_sentences_question

__all__ = ["TWO_WIKI"]

TWO_WIKI = Benchmark(
    name="2wikimultihopqa",
    title="2WikiMultihopQA",
    source="get data_ids_april7.zip from github.com/Alab-NII/2wikimultihop (Apache-2.0); dev.json is what is reported",
    read=titled_sentences_question,
    metrics=MULTI_HOP,
    files={"validation": "dev.json", "train": "train.json"},
    counts={"dev.json": 12576, "train.json": 167454},
    gold_by="title",
)
