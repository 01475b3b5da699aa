"""The files of the core that are mutated, and the tests that are to notice it."""

from __future__ import annotations

TESTS: dict[str, tuple[str, ...]] = {
    "eval/significance.py": ("tests/eval/test_significance.py",),
    "tools/store/journal.py": (
        "tests/tools/index/test_journal.py",
        "tests/tools/index/test_ingest.py::TestErasing",
    ),
    "tools/index/uploads.py": (
        "tests/tools/index/test_uploads.py",
        "tests/app/serve/test_index_paths.py",
    ),
    "tools/store/durable.py": ("tests/tools/store/test_durable.py",),
    "tools/store/sqlite.py": ("tests/tools/store", "tests/tools/index/test_store.py"),
    "tools/store/postgres.py": (
        "tests/tools/store/test_database.py",
        "tests/tools/index/test_postgres.py",
    ),
    "tools/store/cache.py": (
        "tests/tools/store/test_cache.py",
        "tests/tools/chat/test_cache.py",
    ),
    "tools/answer/citations.py": (
        "tests/tools/answer/test_llm_citations.py",
        "tests/tools/answer/test_llm_answerer.py",
        "tests/graphs/test_paper_preset.py",
    ),
    "ras_agent/running/budget.py": ("tests/test_budget.py",),
    "ras_agent/question_graph/graph.py": ("tests/question_graph",),
    "ras_agent/question_graph/merge.py": (
        "tests/question_graph/test_graph.py",
        "tests/question_graph/test_export.py",
    ),
    "ras_agent/question_graph/conflicts.py": ("tests/question_graph",),
    "ras_agent/text/canonical.py": ("tests/text/test_canonical.py",),
    "tools/plan/llm.py": ("tests/tools/plan",),
    "tools/plan/grammar.py": (
        "tests/tools/plan",
        "tests/tools/structure",
        "tests/replies",
    ),
    "tools/structure/parse_triples.py": (
        "tests/tools/structure/test_parse_triples.py",
        "tests/replies",
    ),
    "tools/structure/triple_lines.py": (
        "tests/tools/structure/test_triple_lines.py",
        "tests/replies",
    ),
    "ras_agent/contracts/marks.py": (
        "tests/test_marks.py",
        "tests/tools/plan",
        "tests/tools/structure",
        "tests/replies",
    ),
    "tools/store/array_file.py": (
        "tests/tools/store/test_array_file.py",
        "tests/tools/index/test_segment.py",
    ),
    "tools/kg/facts.py": (
        "tests/tools/kg/test_rows.py",
        "tests/tools/kg/test_build.py",
        "tests/tools/kg/test_writer.py",
        "tests/tools/kg/test_edits.py",
    ),
    "tools/kg/assemble.py": (
        "tests/tools/kg/test_assemble.py",
        "tests/tools/kg/test_index.py",
        "tests/tools/retrieve/test_tenants.py",
    ),
    "tools/store/statements.py": (
        "tests/tools/index/test_passages.py",
        "tests/tools/index/test_journal.py",
    ),
    "tools/store/passages.py": ("tests/tools/index/test_passages.py",),
    "tools/store/graph.py": (
        "tests/tools/kg/test_rows.py",
        "tests/tools/kg/test_build.py",
        "tests/tools/kg/test_writer.py",
    ),
    "tools/kg/edit_rows.py": (
        "tests/tools/kg/test_rows.py",
        "tests/tools/kg/test_build.py",
        "tests/tools/kg/test_edits.py",
    ),
    "tools/kg/make.py": (
        "tests/tools/kg/test_build.py",
        "tests/tools/kg/test_writer.py",
        "tests/tools/kg/test_edits.py",
        "tests/tools/kg/test_index.py",
    ),
    "tools/kg/forget.py": (
        "tests/tools/kg/test_forget.py",
        "tests/tools/kg/test_build.py",
        "tests/tools/kg/test_edits.py",
    ),
    "tools/index/identity.py": ("tests/tools/index/test_identity.py",),
    "tools/index/changes.py": (
        "tests/tools/index/test_store.py",
        "tests/tools/index/test_random_writes.py",
    ),
    "tools/index/snapshot.py": (
        "tests/tools/index/test_views.py",
        "tests/tools/index/test_store.py",
    ),
    "tools/index/segment.py": (
        "tests/tools/index/test_segment.py",
        "tests/tools/index/test_random_writes.py",
    ),
    "tools/index/passages.py": (
        "tests/tools/index/test_passages.py",
        "tests/tools/index/test_store.py",
    ),
    "tools/index/postings.py": ("tests/tools/index/test_postings.py",),
    "tools/index/bm25_matrix.py": (
        "tests/tools/index/test_bm25_matrix.py",
        "tests/tools/index/test_views.py",
    ),
    "tools/index/store.py": (
        "tests/tools/index/test_store.py",
        "tests/tools/index/test_ties.py",
    ),
    "tools/index/ties.py": (
        "tests/tools/index/test_ties.py",
        "tests/tools/retrieve/test_ranking.py",
    ),
    "tools/kg/page_rank.py": ("tests/tools/kg/test_page_rank.py",),
    "tools/retrieve/ppr.py": ("tests/tools/retrieve/test_ppr.py",),
    "tools/retrieve/ranking.py": (
        "tests/tools/retrieve/test_ranking.py",
        "tests/tools/retrieve/test_bm25.py",
    ),
    "tools/retrieve/mix.py": ("tests/tools/retrieve/test_mix.py",),
    "tools/retrieve/completeness.py": ("tests/tools/retrieve/test_completeness.py",),
    "tools/gfm/reach.py": ("tests/tools/gfm/test_reach.py",),
    "eval/metrics/answers.py": (
        "tests/eval/metrics/test_answers.py",
        "tests/eval/metrics/test_rouge.py",
        "tests/eval/metrics/test_registry.py",
    ),
    "eval/metrics/ranking.py": (
        "tests/eval/metrics/test_ranking.py",
        "tests/eval/metrics/test_registry.py",
    ),
    "eval/metrics/answer_sets.py": (
        "tests/eval/metrics/test_answer_sets.py",
        "tests/eval/metrics/test_registry.py",
    ),
    "eval/run/runner.py": ("tests/eval/run/test_runner.py",),
    "eval/run/folder.py": (
        "tests/eval/run/test_folder.py",
        "tests/eval/run/test_runner.py",
    ),
    "eval/run/manifest.py": (
        "tests/eval/run/test_manifest.py",
        "tests/eval/run/test_folder.py",
    ),
    "ras_agent/config/filters.py": ("tests/test_filters.py",),
    "ras_agent/app/serve/access.py": ("tests/app/serve/test_access.py",),
    "ras_agent/train/subq/samples.py": (
        "tests/train/subq/test_samples.py",
        "tests/train/subq/test_samples_properties.py",
        "tests/train/subq/test_build.py",
    ),
    "ras_agent/running/review.py": ("tests/graphs/test_review.py",),
    "ras_agent/running/calling.py": (
        "tests/test_calling.py",
        "tests/graphs/test_time_limits.py",
    ),
    "ras_agent/contracts/scoped_value.py": (
        "tests/test_budget.py",
        "tests/test_events.py",
    ),
    "tools/chat/limits.py": (
        "tests/tools/chat/test_limits.py",
        "tests/tools/chat/test_deadline.py",
    ),
    "tools/chat/retry.py": (
        "tests/tools/chat/test_retry.py",
        "tests/tools/chat/test_client.py",
    ),
    "tools/chat/client.py": (
        "tests/tools/chat/test_client.py",
        "tests/tools/chat/test_reply_limits.py",
        "tests/tools/chat/test_faulty_servers.py",
        "tests/tools/chat/test_deadline.py",
        "tests/tools/chat/test_window.py",
        "tests/tools/chat/test_cache.py",
    ),
    "tools/chat/window.py": (
        "tests/tools/chat/test_window.py",
        "tests/tools/chat/test_faulty_servers.py",
    ),
    "tools/graph_tokens/aligner.py": ("tests/tools/graph_tokens/test_aligner.py",),
    "tools/graph_tokens/encoders.py": (
        "tests/tools/graph_tokens/test_encoders.py",
        "tests/conformance/test_graph_encoders.py",
    ),
    "tools/graph_tokens/fact_orders.py": (
        "tests/tools/graph_tokens/test_fact_orders.py",
        "tests/graphs/test_pruning.py",
    ),
    "tools/graph_tokens/served.py": (
        "tests/tools/graph_tokens/test_prompt_embeds.py",
        "tests/tools/graph_tokens/test_served.py",
    ),
    "tools/retrieve/search.py": (
        "tests/tools/retrieve/test_search.py",
        "tests/tools/retrieve/test_live_retriever.py",
        "tests/tools/retrieve/test_tenants.py",
    ),
}
