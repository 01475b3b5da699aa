"""The files of the core that are mutated, and the tests that are to notice it."""

from __future__ import annotations

TESTS: dict[str, tuple[str, ...]] = {
    "eval/significance.py": ("tests/eval/test_significance.py",),
    "tools/index/journal.py": ("tests/tools/index/test_journal.py", "tests/tools/index/test_ingest.py::TestErasing"),
    "tools/index/durable.py": ("tests/tools/index/test_durable.py",),
    "tools/answer/citations.py": (
        "tests/tools/answer/test_llm_citations.py",
        "tests/tools/answer/test_llm_answerer.py",
        "tests/graphs/test_paper_preset.py",
    ),
    "ras_agent/budget.py": ("tests/test_budget.py",),
    "ras_agent/question_graph/graph.py": ("tests/question_graph",),
    "ras_agent/question_graph/merge.py": ("tests/question_graph",),
    "ras_agent/question_graph/conflicts.py": ("tests/question_graph",),
    "ras_agent/text/canonical.py": ("tests/text/test_canonical.py",),
    "tools/plan/llm.py": ("tests/tools/plan",),
    "tools/plan/grammar.py": ("tests/tools/plan/test_grammar.py", "tests/replies"),
    "tools/structure/parse_triples.py": ("tests/tools/structure/test_parse_triples.py", "tests/replies"),
    "tools/structure/triple_lines.py": ("tests/tools/structure/test_triple_lines.py", "tests/replies"),
    "tools/index/merge.py": ("tests/tools/index/test_store.py",),
    "tools/index/store.py": ("tests/tools/index/test_store.py", "tests/tools/index/test_ties.py"),
    "tools/index/ties.py": ("tests/tools/index/test_ties.py", "tests/tools/retrieve/test_ranking.py"),
    "tools/kg/page_rank.py": ("tests/tools/kg/test_page_rank.py",),
    "tools/retrieve/ppr.py": ("tests/tools/retrieve/test_ppr.py",),
    "tools/retrieve/ranking.py": ("tests/tools/retrieve/test_ranking.py", "tests/tools/retrieve/test_bm25.py"),
    "tools/retrieve/mix.py": ("tests/tools/retrieve/test_mix.py",),
    "tools/retrieve/rerank.py": ("tests/tools/retrieve/test_rerank.py",),
    "tools/retrieve/hybrid.py": ("tests/tools/retrieve/test_hybrid.py",),
    "tools/gfm/reach.py": ("tests/tools/gfm/test_reach.py",),
    "eval/metrics/answers.py": (
        "tests/eval/metrics/test_answers.py",
        "tests/eval/metrics/test_rouge.py",
        "tests/eval/metrics/test_registry.py",
    ),
    "eval/metrics/ranking.py": ("tests/eval/metrics/test_ranking.py", "tests/eval/metrics/test_registry.py"),
    "eval/metrics/answer_sets.py": ("tests/eval/metrics/test_answer_sets.py", "tests/eval/metrics/test_registry.py"),
    "eval/run/runner.py": ("tests/eval/run/test_runner.py",),
    "eval/run/folder.py": ("tests/eval/run/test_folder.py", "tests/eval/run/test_runner.py"),
    "eval/run/manifest.py": ("tests/eval/run/test_manifest.py", "tests/eval/run/test_folder.py"),
}
