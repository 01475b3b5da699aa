// Talks to the server: JSON, and events as they come.

/** What a server refuses, or that it does not answer; `status` is 0 then. */
class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  const headers = typeof options.body === "string" ? { "Content-Type": "application/json" } : {};
  const token = $("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is it still running?", 0);
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  const said = body.error?.message ?? body.detail;
  const message = typeof said === "string" && said ? said[0].toUpperCase() + said.slice(1) : `The server answered with status ${answer.status}.`;
  throw new Refused(message, answer.status);
}

const getJSON = async (path) => (await request(path)).json();
const postJSON = async (path, body, signal) => (await request(path, { method: "POST", body: JSON.stringify(body), signal })).json();

/** Yield {name, data} of the events that answer a POST. */
async function* eventsOf(path, body, signal) {
  const answer = await request(path, { method: "POST", body: JSON.stringify(body), signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Refused("The connection to the server was lost. Continue takes up where the run stopped; Try again asks anew.", 0);
    });
    if (done) break;
    rest += value;
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split(/\r?\n/);
      const name = lines.find((line) => line.startsWith("event:"))?.slice(6).trim();
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      if (name) yield { name, data: data ? JSON.parse(data) : {} };
    }
  }
}
