"""Retrievers, which find passages, and the rule that mixes any of them by name.

bm25, dense, hybrid             words, meaning, both by rank
ppr, gfm, paths, pcst           over a knowledge graph
neighbours                      the facts about the entities of the query, as a step in that graph
"ppr+dense", ..., graph         mixes of several, their first passages ranked again
"""
