"""Mutants that behave as the original does, so that no test can notice them, with the reason."""

from __future__ import annotations

# file: {(the line, the mutant's line): why}
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "ras_agent/app/serve/access.py": {
        (
            "if len(digits) != 64 or not set(digits) <= set(string.hexdigits):",
            "if len(digits) != 64 or not set(digits) < set(string.hexdigits):",
        ): "the digits are in lower case, so they are never all of those of both cases",
    },
    "ras_agent/question_graph/graph.py": {
        (
            "if spare > 0:",
            "if spare >= 0:",
        ): "of just as many facts none is hidden",
    },
    "ras_agent/question_graph/merge.py": {
        (
            "if len(label_counts) == 1 and not others:",
            "if len(label_counts) == 0 and not others:",
        ): "the longer way leads to the same",
    },
    "tools/store/graph.py": {
        (
            "return secrets.randbits(60) | 1 << 60",
            "return secrets.randbits( 59) | 1 << 60",
        ): "half or twice as many stamps are as good as never the same",
        (
            "return secrets.randbits(60) | 1 << 60",
            "return secrets.randbits( 61) | 1 << 60",
        ): "half or twice as many stamps are as good as never the same",
    },
    "tools/index/ties.py": {
        (
            "allowed = np.abs(scores) * TIE if relative else np.full(len(scores), TIE)",
            "allowed = np.abs(scores) / TIE if relative else np.full(len(scores), TIE)",
        ): "a wider tolerance here picks more places to look at, and each is looked at with the right one",
        (
            "close = np.flatnonzero(scores[:-1] - scores[1:] <= allowed[:-1]) + 1",
            "close = np.flatnonzero(scores[:-1] - scores[1:] <= allowed[:1]) + 1",
        ): "the first tolerance is the widest, and each place is looked at with its own",
    },
    "tools/store/statements.py": {
        (
            "return row[0] if row else None",
            "return row[ -1] if row else None",
        ): "the row has one column",
    },
    "tools/kg/make.py": {
        (
            "if not before or how.kind == IMPORTED:",
            "if not before and how.kind == IMPORTED:",
        ): "an imported graph has no lists, and without lists all names are compared anew",
    },
    "tools/kg/page_rank.py": {
        (
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
            "self._most = 2 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
        ): "further steps change nothing, and the last ones change less than the tolerance",
        (
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
            "self._most = 4 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
        ): "further steps change nothing, and the last ones change less than the tolerance",
        (
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
            "self._most = 3 + (ceil(log(least * 2) / log(damping)) if damping else 0)",
        ): "further steps change nothing, and the last ones change less than the tolerance",
        (
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
            "self._most = 3 + (ceil(log(least / 1) / log(damping)) if damping else 0)",
        ): "further steps change nothing, and the last ones change less than the tolerance",
        (
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
            "self._most = 3 + (ceil(log(least / 3) / log(damping)) if damping else 0)",
        ): "further steps change nothing, and the last ones change less than the tolerance",
        (
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else -1)",
        ): "further steps change nothing, and the last ones change less than the tolerance",
        (
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
            "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 1)",
        ): "further steps change nothing, and the last ones change less than the tolerance",
        (
            "degree = np.asarray(weights.sum(axis=0), dtype=self._dtype).ravel()",
            "degree = np.asarray(weights.sum(axis= -1), dtype=self._dtype).ravel()",
        ): "the weights are symmetric",
        (
            "degree = np.asarray(weights.sum(axis=0), dtype=self._dtype).ravel()",
            "degree = np.asarray(weights.sum(axis= 1), dtype=self._dtype).ravel()",
        ): "the weights are symmetric",
        (
            "if float(np.abs(after - scores).sum()) < self._tolerance:",
            "if float(np.abs(after + scores).sum()) < self._tolerance:",
        ): "the steps that are enough come to the same scores, only later",
        (
            "if float(np.abs(after - scores).sum()) < self._tolerance:",
            "if float(np.abs(after - scores).sum()) <= self._tolerance:",
        ): "the steps that are enough come to the same scores, only later",
    },
    "eval/run/folder.py": {
        (
            "path.unlink(missing_ok=True)",
            "path.unlink(missing_ok=False)",
        ): "the lock is held, and the files were listed",
    },
    "tools/retrieve/mix.py": {
        (
            "self.passages = rankers[0].passages",
            "self.passages = rankers[ -1].passages",
        ): "all rankers are over the same passages",
    },
    "tools/retrieve/ranking.py": {
        (
            "if len(rows) > k:",
            "if len(rows) >= k:",
        ): "of just k rows all are among the k best",
        (
            "if k > _BLOCKS or width < 2:",
            "if k > _BLOCKS or width < 1:",
        ): "blocks of one row each are a bound too",
        (
            "if k > _BLOCKS or width < 2:",
            "if k > _BLOCKS or width <= 2:",
        ): "a bound saves time, all rows do as well",
        (
            "_BLOCKS = 256",
            "_BLOCKS = 257",
        ): "the number of blocks decides the speed alone",
        (
            "_BLOCKS = 256",
            "_BLOCKS = 255",
        ): "the number of blocks decides the speed alone",
        (
            "if k > _BLOCKS or width < 2:",
            "if k > _BLOCKS or width < 3:",
        ): "a bound saves time, all rows do as well",
        (
            "if k > _BLOCKS or width < 2:",
            "if k >= _BLOCKS or width < 2:",
        ): "a bound saves time, all rows do as well",
    },
    "tools/plan/llm.py": {
        (
            "MAX_TOKENS = 2048",
            "MAX_TOKENS = 2047",
        ): "one token more or less ends no reply that anybody reads",
        (
            "MAX_TOKENS = 2048",
            "MAX_TOKENS = 2049",
        ): "one token more or less ends no reply that anybody reads",
    },
}
