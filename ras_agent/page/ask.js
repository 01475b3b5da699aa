"use strict";

const form = document.getElementById("ask");
const list = document.getElementById("events");
const answer = document.getElementById("answer");

// calls back with each server-sent event of a response
async function readEvents(response, callback) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.match(/^data: (.*)$/m);
      if (data) callback(block.match(/^event: (.*)$/m)[1], JSON.parse(data[1]));
    }
  }
}

form.addEventListener("submit", async (submitted) => {
  submitted.preventDefault();
  list.replaceChildren();
  answer.textContent = "";
  const question = document.getElementById("question").value;
  const response = await fetch("api/ask", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ question, stream: true }),
  });
  await readEvents(response, (type, data) => {
    const item = document.createElement("li");
    item.textContent = type === "planned" ? `plan: ${data.plan.subquery || data.plan.action}` : type;
    if (type !== "answer_token" && type !== "done") list.append(item);
    if (type === "done") answer.textContent = data.answer;
  });
});
