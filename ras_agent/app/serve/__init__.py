"""Implements the HTTP server of `ras-agent serve`: an agent, its threads and its index behind REST, SSE and
OpenAI's API.

`app.py` makes the FastAPI application, `service.py` holds the state that all its requests share, `runs.py` is
one run of the agent, and `wire.py` has the shapes of requests and answers. The server needs the extra `serve`.
"""
