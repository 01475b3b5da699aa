"""The HTTP server of `ras-agent serve`: an agent, its threads and its index behind REST, SSE and OpenAI's protocol.

`app.py` makes the FastAPI application, `service.py` the state that all its requests share, `runs.py` one run of the agent,
`wire.py` the shapes of requests and answers. It needs the extra `serve`.
"""
