/**
 * The form of a decision that a run waits for; ras_agent/running/review.py says what can be decided where.
 *
 * decide(decision) is called with what the reader chose.
 */
function reviewForm(review, decide) {
  const can = (action) => review.actions.includes(action);
  const send = (decision) => {
    const marked = (one) => ({ ...one, at: review.at, hop: review.hop });
    decide(Array.isArray(decision) ? decision.map(marked) : marked(decision));
  };
  const field = (label, value = "") => {
    const input = make("input", { type: "text", autocomplete: "off" });
    input.value = value;
    return [make("label", {}, label, input), input];
  };
  const button = (text, click, main = false) => make("button", { type: "button", class: main ? "main" : "", click }, text);

  function asking(text) {
    if (!can("ask")) return "";
    const [label, note] = field("A note to the model");
    const ask = button(text, () => note.value.trim() ? send({ action: "ask", note: note.value }) : note.focus());
    return make("details", {}, make("summary", {}, "Ask back"), label, make("div", { class: "row" }, ask));
  }

  function plan() {
    const stops = !review.plan || review.plan.action !== "subq";
    const [label, input] = field(stops ? "It wants to stop here. Search on with" : "It wants to search for", review.plan?.subquery ?? "");
    const changed = () => input.value.trim() && input.value.trim() !== (review.plan?.subquery ?? "");
    const reason = review.plan?.reason || review.stop_reason;
    const further = review.plan?.further ?? [];
    return [
      make("h2", {}, `Plan of hop ${review.hop}`),
      reason ? make("p", { class: "note" }, words(reason)) : "",
      label,
      further.length ? make("p", { class: "note" }, `At the same time for ${further.map((one) => `“${one}”`).join(", ")}; words of yours take the place of all.`) : "",
      make("div", { class: "row" },
        button(stops ? "Stop and answer" : "Search", () => send(changed() && can("edit") ? { action: "edit", subquery: input.value } : { action: "approve" }), true),
        !stops && can("edit") ? button("Search no more, answer", () => send({ action: "edit", stop: true })) : "",
        stops && can("edit") ? button("Search on", () => changed() ? send({ action: "edit", subquery: input.value }) : input.focus()) : ""),
      asking("Plan again"),
    ];
  }

  function factRow(fact, decisions) {
    const parts = ["subject", "predicate", "object"].map((name) => {
      const [label, input] = field(name, fact[name]);
      return { name, label, input };
    });
    const text = make("p", {}, `${fact.subject} `, make("b", {}, fact.predicate), ` ${fact.object}`);
    const edit = make("div", { hidden: true }, make("div", { class: "three" }, parts.map((part) => part.label)));
    const row = make("li", {}, text, fact.quote ? make("p", { class: "note" }, `“${fact.quote}”`) : "",
      make("div", { class: "row" },
        can("edit") ? make("button", { type: "button", class: "small", "aria-expanded": "false", click: (event) => {
          edit.hidden = !edit.hidden;
          event.target.setAttribute("aria-expanded", String(!edit.hidden));
        } }, "Edit") : "",
        can("remove") ? make("button", { type: "button", class: "small", "aria-pressed": "false", click: (event) => {
          const gone = row.classList.toggle("gone");
          event.target.setAttribute("aria-pressed", String(gone));
          event.target.textContent = gone ? "Keep" : "Remove";
        } }, "Remove") : ""),
      edit);
    decisions.push(() => {
      if (row.classList.contains("gone")) return { action: "remove", fact: fact.id };
      const changed = parts.filter(({ name, input }) => input.value.trim() && input.value.trim() !== fact[name]);
      return changed.length ? { action: "edit", fact: fact.id, ...Object.fromEntries(changed.map(({ name, input }) => [name, input.value])) } : null;
    });
    return row;
  }

  function addition(decisions) {
    if (!can("add")) return "";
    const parts = ["subject", "predicate", "object"].map((name) => [name, ...field(name)]);
    decisions.push(() => parts.every(([, , input]) => input.value.trim()) ? { action: "add", ...Object.fromEntries(parts.map(([name, , input]) => [name, input.value])) } : null);
    return make("details", {}, make("summary", {}, "Add a fact"), make("div", { class: "three" }, parts.map(([, label]) => label)));
  }

  function facts() {
    const decisions = [];
    const rows = review.facts.map((fact) => factRow(fact, decisions));
    const more = addition(decisions);
    return [
      make("h2", {}, `Facts of hop ${review.hop}`),
      make("p", { class: "note" }, `${count(review.facts.length, "fact")} read for “${review.subquery}”.`),
      make("ul", {}, rows),
      more,
      make("div", { class: "row" }, button("Go on with these facts", () => {
        const corrections = decisions.map((one) => one()).filter(Boolean);
        send(corrections.length ? corrections : { action: "approve" });
      }, true)),
      asking("Go on with this note"),
    ];
  }

  function answer() {
    const box = make("textarea", { rows: 3 });
    box.value = review.answer;
    const citations = review.citations.map((citation) => {
      const input = make("input", { type: "checkbox", checked: true });
      return { citation, input, label: make("label", {}, input, ` [${citation.number}] ${citation.quote || citation.title}${citation.supported === false ? " (does not support the answer)" : ""}`) };
    });
    const numbers = () => citations.filter(({ input }) => input.checked).map(({ citation }) => citation.number);
    const edited = () => box.value.trim() !== review.answer.trim() || numbers().length !== citations.length;
    return [
      make("h2", {}, "The answer"),
      review.abstained ? make("p", { class: "note" }, "The evidence holds no answer that is sure enough, it says.") : "",
      make("label", {}, "Answer", box),
      citations.length ? make("fieldset", {}, make("legend", {}, "Evidence"), citations.map(({ label }) => label)) : "",
      make("div", { class: "row" },
        button("Accept", () => {
          if (!edited() || !can("edit")) send({ action: "approve" });
          else if (box.value.trim()) send({ action: "edit", answer: box.value, citations: numbers() });
          else box.focus();
        }, true),
        can("remove") ? button("Withdraw", () => send({ action: "remove" })) : ""),
      asking("Answer again"),
    ];
  }

  const form = { plan, facts, answer }[review.at];
  return [review.error ? make("p", { class: "note alarm", role: "alert" }, review.error) : "", ...(form ? form() : [make("p", {}, `The run waits at ${review.at}, which this page does not know.`)])].filter(Boolean);
}
