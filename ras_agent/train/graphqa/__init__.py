"""Train small models that tell whether an argument supports or counters another, given a graph (ExplaGraphs)."""
