"""The offline answerer: answer spans, comparisons and yes or no, ranked by a small network."""
