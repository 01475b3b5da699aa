"""Scores a knowledge graph's entities for a question by GFM, a graph neural network that depends on the query.

weights, graph, network           the parameters, the input, and the plain network; network.py lists the files that
                                  must agree
cpu, cache, reach, cpu_kernels    FastGFM, which computes only the states that a question changes
cuda                              DeviceGFM, which computes everything on a GPU
choose                            picks one of these two; callers use `gfm_scorer`
paths                             the chains of messages that explain a score
reasoner                          G-reasoner's network, whose nodes have texts
"""
