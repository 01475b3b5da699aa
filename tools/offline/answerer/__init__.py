"""The offline answerer: spans, comparisons and yes or no, ranked by a small network."""
