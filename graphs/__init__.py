"""Builds the agents as LangGraph graphs, and exports what another package needs to add a loop of its own.

ras, ircot, react,          build the loops: nodes and edges, and a GraphSpec each
single_shot
nodes, decide               the work of nodes: begin, retrieve, structure, merge, answer; plan and reason
node, assembly              run a node's work, synchronously and asynchronously; AgentGraph
state, records, validate    the state's JSON, its records, the checks of everything from outside
parts, resolve              an agent's arguments, its parts, and how each is resolved, once
registry                    loops by name
"""
