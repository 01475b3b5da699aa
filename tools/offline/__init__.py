"""The offline mode: planner, reasoner, extractor and answerer that need no language model."""
