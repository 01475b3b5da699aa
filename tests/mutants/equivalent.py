"""Mutants that behave as the original does, so that no test can notice them, with the reason."""

from __future__ import annotations

# file: {(the line, the mutant's line): why}
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "eval/significance.py": {
        (
            "_CELLS = 4_000_000  # drawn at once, so that a large question set does not fill the memory",
            f"_CELLS = {cells}  # drawn at once, so that a large question set does not fill the memory",
        ): "any size of a part gives the same draws"
        for cells in (3999999, 4000001)
    },
    "ras_agent/app/serve/access.py": {
        (
            "if len(digits) != 64 or not set(digits) <= set(string.hexdigits):",
            "if len(digits) != 64 or not set(digits) < set(string.hexdigits):",
        ): "the digits are in lower case, so they are never all of those of both cases",
    },
    "ras_agent/question_graph/graph.py": {
        (
            "if len(self._all_facts) > max_facts:",
            "if len(self._all_facts) >= max_facts:",
        ): "of just as many facts none is hidden",
    },
    "ras_agent/question_graph/merge.py": {
        **{
            (
                "counts[surface] = counts.get(surface, 0) + 1",
                f"counts[surface] = counts.get(surface, {count}",
            ): (
                "counts are compared with each other alone, and all of them change alike"
            )
            for count in ("-1) + 1", "1) + 1", "0) + 2")
        },
        **{
            (
                f"{before}{known}",
                f"{before}{mutant}",
            ): "the longer way leads to the same"
            for before, known, mutant in (
                (
                    "for reading in readings if len(readings) ",
                    "> 1 else ():",
                    "> 0 else ():",
                ),
                (
                    "for reading in readings if len(readings) ",
                    "> 1 else ():",
                    ">= 1 else ():",
                ),
                ("if len(label_counts) == ", "1 and not others:", "0 and not others:"),
                ("if len(distinct) ", "> 1:", "> 0:"),
                ("if len(distinct) ", "> 1:", ">= 1:"),
            )
        },
    },
    "tools/kg/edit_rows.py": {
        (
            'return row[0] if row else ""',
            'return row[ -1] if row else ""',
        ): "the row has one column",
    },
    "tools/kg/facts.py": {
        (
            "named = np.zeros(0 if last is None else last + 1, dtype=np.bool_)",
            "named = np.zeros(0 if last is None else last + 2, dtype=np.bool_)",
        ): "no name has the number behind the last",
    },
    "tools/kg/graph_state.py": {
        (
            "return secrets.randbits(60) | 1 << 60",
            f"return secrets.randbits( {bits}) | 1 << 60",
        ): ("half or twice as many stamps are as good as never the same")
        for bits in (59, 61)
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
    "tools/index/journal.py": {
        (
            "return row[0] if row else None",
            "return row[ -1] if row else None",
        ): "the row has one column",
        (
            "return whole, inside, inside[:-1] + bytes([inside[-1] + 1])",
            "return whole, inside, inside[:-1] + bytes([inside[- 0] + 1])",
        ): "an absolute path begins as the folder's ends, with the separator",
    },
    "tools/kg/make.py": {
        (
            "if not len(before.names) or how.kind == IMPORTED:",
            "if not len(before.names) and how.kind == IMPORTED:",
        ): "an imported graph has no lists, and without lists all names are compared anew",
        (
            "came_from = np.where(listed, np.searchsorted(ids, numbers).clip(max=len(ids) - 1), -1)",
            "came_from = np.where(listed, np.searchsorted(ids, numbers).clip(max=len(ids) - 1), - 2)",
        ): "any number below 0 tells a new name",
        (
            "left = np.flatnonzero(~known & (names >= 0))",
            "left = np.flatnonzero(~known & (names >= -1))",
        ): "no vector is stored under the number -1",
        (
            "vectors, near = Numbered(np.empty(0, np.int64), np.empty((0, 0), np.float16)), None",
            "vectors, near = Numbered(np.empty(0, np.int64), np.empty(( 1, 0), np.float16)), None",
        ): "a row that no number leads to is never taken",
    },
    "tools/kg/page_rank.py": {
        **{
            (
                "self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
                f"self._most = {most}",
            ): "further steps change nothing, and the last ones change less than the tolerance"
            for most in (
                "2 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
                "4 + (ceil(log(least / 2) / log(damping)) if damping else 0)",
                "3 + (ceil(log(least * 2) / log(damping)) if damping else 0)",
                "3 + (ceil(log(least / 1) / log(damping)) if damping else 0)",
                "3 + (ceil(log(least / 3) / log(damping)) if damping else 0)",
                "3 + (ceil(log(least / 2) / log(damping)) if damping else -1)",
                "3 + (ceil(log(least / 2) / log(damping)) if damping else 1)",
            )
        },
        **{
            (
                "degree = np.asarray(weights.sum(axis=0), dtype=self._dtype).ravel()",
                f"degree = np.asarray(weights.sum(axis= {axis}), dtype=self._dtype).ravel()",
            ): "the weights are symmetric"
            for axis in (-1, 1)
        },
        **{
            ("if float(np.abs(after - scores).sum()) < self._tolerance:", end): (
                "the steps that are enough come to the same scores, only later"
            )
            for end in (
                "if float(np.abs(after + scores).sum()) < self._tolerance:",
                "if float(np.abs(after - scores).sum()) <= self._tolerance:",
            )
        },
    },
    "eval/run/manifest.py": {
        (
            '["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True',
            f'["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout= {seconds}, check=True',
        ): "git answers at once or not at all"
        for seconds in (9, 11)
    },
    "eval/run/folder.py": {
        (
            "path.unlink(missing_ok=True)",
            "path.unlink(missing_ok=False)",
        ): "the lock is held, and the files were listed",
    },
    "tools/retrieve/mix.py": {
        **{
            (
                f"{before}[0].passages{after}",
                f"{before}[ -1].passages{after}",
            ): "all rankers are over the same passages"
            for before, after in (
                ("self.passages = rankers", ""),
                (
                    "if not rankers or any(len(ranker.passages) != len(rankers",
                    ") for ranker in rankers):",
                ),
            )
        },
        **{
            (
                "self._hits = lru_cache(64)(lambda query: tuple(retriever.retrieve(query, len(passages) or 1)))",
                f"self._hits = {kept}",
            ): why
            for kept, why in (
                (
                    "lru_cache( 63)(lambda query: tuple(retriever.retrieve(query, len(passages) or 1)))",
                    "how many queries are remembered decides the speed alone",
                ),
                (
                    "lru_cache( 65)(lambda query: tuple(retriever.retrieve(query, len(passages) or 1)))",
                    "how many queries are remembered decides the speed alone",
                ),
                (
                    "lru_cache(64)(lambda query: tuple(retriever.retrieve(query, len(passages) or 2)))",
                    "of no passages nothing is found",
                ),
            )
        },
    },
    "tools/retrieve/ppr.py": {
        (
            "share = 1 / max(int(frequency[link.entity]), 1) if self._specificity else 1.0",
            f"share = {share}",
        ): "all starts weigh alike more, and a walk's starts add up to 1"
        for share in (
            "1 / max(int(frequency[link.entity]), 1) if self._specificity else 2.0",
            "2 / max(int(frequency[link.entity]), 1) if self._specificity else 1.0",
        )
    },
    "tools/retrieve/ranking.py": {
        **{
            (
                "rows = np.flatnonzero(scores >= max(_floor(scores, k) * np.float32(1 - 2 * TIE), _LEAST))",
                f"rows = np.flatnonzero(scores >= max(_floor(scores, k) * np.float32({share}), _LEAST))",
            ): "a lower bound only takes more time, and a margin of one tie is enough but for rounding"
            for share in (" 0 - 2 * TIE", "1 - 1 * TIE", "1 - 2 / TIE", "1 - 3 * TIE")
        },
        **{
            (
                "candidates = best >= np.partition(best, -k)[-k] * np.float32(1 - 2 * TIE)",
                near,
            ): (
                "a lower bound only takes more time, and a margin of one tie is enough but for rounding"
            )
            for near in (
                "candidates = best > np.partition(best, -k)[-k] * np.float32(1 - 2 * TIE)",
                "candidates = best >= np.partition(best, -k)[-k] * np.float32( 0 - 2 * TIE)",
                "candidates = best >= np.partition(best, -k)[-k] * np.float32(1 - 1 * TIE)",
                "candidates = best >= np.partition(best, -k)[-k] * np.float32(1 - 2 / TIE)",
            )
        },
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
        (
            "candidates = best >= np.partition(best, -k)[-k] * np.float32(1 - 2 * TIE)",
            "candidates = best >= np.partition(best, -k)[-k] * np.float32(1 - 3 * TIE)",
        ): "rows that tie with none of the best are cut off later",
    },
    "tools/graph_tokens/aligner.py": {
        (
            "self.vectors.of_facts(facts), query_vector(self.embedder, question), "
            "self.vectors.of_texts([reasoning])[0]",
            "self.vectors.of_facts(facts), query_vector(self.embedder, question), "
            "self.vectors.of_texts([reasoning])[ -1]",
        ): "of one text there is one vector",
    },
    "tools/plan/grammar.py": {
        **{
            (
                "behind = 0",
                f"behind = {place}",
            ): "it is read only behind a stop, which has set it"
            for place in (-1, 1)
        },
        (
            'question = next((part for part in re.split(r": |\\bis (?=[A-Z])", question)[1:] '
            'if _ASKS.match(part)), "")',
            'question = next((part for part in re.split(r": |\\bis (?=[A-Z])", question)[ 0:] '
            'if _ASKS.match(part)), "")',
        ): "a text that does not begin as a question has no first part that does",
    },
    "tools/plan/llm.py": {
        (
            "MAX_TOKENS = 2048",
            f"MAX_TOKENS = {number}",
        ): "one token more or less ends no reply that anybody reads"
        for number in (2047, 2049)
    },
    "tools/answer/citations.py": {
        (
            "numbers += range(low, high + 1) if low <= high <= low + _LONGEST_RANGE else (low, high)",
            "numbers += range(low, high + 1) if low < high <= low + _LONGEST_RANGE else (low, high)",
        ): "a number to itself is its two ends, and a number counts once",
    },
}
