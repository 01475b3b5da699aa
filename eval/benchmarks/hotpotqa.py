"""HotpotQA (Yang et al., 2018): two-hop questions over Wikipedia's introductions, distractor and full-wiki setting."""

from ras_agent.eval.benchmarks.multi_hop import MULTI_HOP
from ras_agent.eval.benchmarks.record import Benchmark, Hub
from ras_agent.eval.benchmarks.titled_sentences import titled_sentences_question

__all__ = ["HOTPOTQA"]

HOTPOTQA = Benchmark(
    name="hotpotqa",
    title="HotpotQA",
    source="get hotpot_dev_distractor_v1.json from hotpotqa.github.io (CC BY-SA 4.0)",
    read=titled_sentences_question,
    metrics=MULTI_HOP,
    files={
        "validation": "hotpot_dev_distractor_v1.json",
        "fullwiki": "hotpot_dev_fullwiki_v1.json",
        "train": "hotpot_train_v1.1.json",
    },
    counts={
        "hotpot_dev_distractor_v1.json": 7405,
        "hotpot_dev_fullwiki_v1.json": 7405,
        "hotpot_train_v1.1.json": 90447,
    },
    # as the datasets library records them for its downloads
    sha256={
        "hotpot_dev_distractor_v1.json": "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea",
        "hotpot_dev_fullwiki_v1.json": "2f1f3e594a3066a3084cc57950ca2713c24712adaad03af6ccce18d1846d5618",
        "hotpot_train_v1.1.json": "26650cf50234ef5fb2e664ed70bbecdfd87815e6bffc257e068efea5cf7cd316",
    },
    gold_by="title",
    hub=Hub("hotpotqa/hotpot_qa", "distractor"),
)
