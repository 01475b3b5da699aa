# The server of ras-agent, torch-free, as a user without rights.
#
#     docker build -t ras-agent .
#     docker run -p 127.0.0.1:8020:8020 -e RAS_AGENT_SERVE_TOKEN=... -v $PWD/my.index:/data/index ras-agent
FROM python:3.12-slim

COPY . /source
RUN pip install --no-cache-dir "/source[openai,serve,mcp,sqlite,postgres,documents]" && rm -rf /source \
 && useradd --create-home --uid 10001 ras && mkdir /data && chown ras /data
USER ras
WORKDIR /data
ENV RAS_AGENT_HOST=0.0.0.0 RAS_AGENT_INDEX=/data/index
EXPOSE 8020
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8020/health', timeout=3)"]
# other machines reach it, so it wants RAS_AGENT_SERVE_TOKEN, or --tokens FILE
ENTRYPOINT ["ras-agent"]
CMD ["serve"]
