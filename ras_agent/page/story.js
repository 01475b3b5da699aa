/**
 * What a run says in words: its evidence in the order of the answer's chain, its steps, its facts.
 *
 * run: {trace, picture, facts: Map of id to fact, files, marks, plain}. plain: steps are told without scores, for who
 * asks and not for who develops. on: {show({fact}|{node}), chain(ids, row), hop(n),
 * close()}, called when the reader chooses something.
 */
function storyOf(run, on) {
  const { trace, picture, facts, files, marks, plain = false } = run;
  const edges = new Map(picture.edges.map((edge) => [edge.id, edge]));
  const sentence = (fact) => `${fact.subject} ${fact.predicate} ${fact.object}`;
  const titleOf = ({ title, passage_id: id }) => title || sourceOf(trace.passages[id] ?? { id }).name.split("/").pop();
  const hopOf = (id) => edges.get(id)?.hop ?? 0;

  // ---- facts and entities

  const heading = (text) =>
    make("div", { class: "title" }, make("h3", { tabindex: -1 }, text), make("button", { type: "button", "aria-label": "Close", title: "Close (Esc)", click: () => on.close() }, "✕"));

  const factWords = (fact) => [`${fact.subject} `, make("i", {}, fact.predicate), ` ${fact.object}`];

  const factButton = (id) => {
    const edge = edges.get(id);
    return make("li", { hop: edge.hop }, make("button", { type: "button", "data-show": id, click: () => on.show({ fact: id }) },
      edge.conflict ? make("span", { class: "alarm" }, "⚠ ") : "", factWords(facts.get(id))));
  };

  function nodeDetails(index) {
    const node = picture.nodes[index];
    const edgesHere = picture.edges.filter((edge) => edge.from === index || edge.to === index);
    const others = node.forms.filter((form) => form !== node.label);
    return [
      heading(node.label),
      others.length ? make("p", { class: "note" }, `also written ${others.map((form) => `“${form}”`).join(", ")}`) : "",
      make("ul", { class: "facts" }, edgesHere.map((edge) => factButton(edge.id))),
    ];
  }

  function factDetails(id) {
    const fact = facts.get(id);
    const against = (trace.graph.conflicts ?? []).filter((group) => group.includes(id)).flat().filter((other) => other !== id && facts.has(other));
    return [
      heading(sentence(fact)),
      against.length ? make("p", { class: "note alarm" }, "⚠ cannot be true together with") : "",
      against.length ? make("ul", { class: "facts" }, against.map(factButton)) : "",
      fact.sources.length ? "" : make("p", { class: "note" }, "supplied, without a source"),
      ...fact.sources.map(sourceCard),
    ];
  }

  function sourceCard(source) {
    const passage = trace.passages[source.passage_id];
    const reader = source.extractor && (source.extractor.startsWith("stated: ") ? source.extractor : `read by ${source.extractor}`);
    const unchecked = source.unchecked ? "not checked against the text" : "";
    const origin = [source.hop ? `hop ${source.hop}` : "", reader, unchecked, source.passage_id].filter(Boolean).join(" · ");
    const text = passage ? excerpt(passage.text, source.start, source.end) : ["This passage is not in the trace."];
    return make("div", { class: "card", hop: source.hop },
      make("h3", {}, isolated(passage?.title || source.passage_id)),
      passage ? sourceLine(passage, files) : "",
      make("p", { class: "text", tabindex: 0 }, ...text),
      make("p", { class: "note" }, origin));
  }

  const details = (chosen) => (chosen.fact ? factDetails(chosen.fact) : nodeDetails(chosen.node));

  // ---- the evidence, told as a chain

  /** The text of a card as it is copied: the quote and where it is from. */
  function asText(citation) {
    const { name, part } = sourceOf(trace.passages[citation.passage_id] ?? { id: citation.passage_id });
    const from = [...new Set([titleOf(citation), name, part].filter(Boolean))].join(", ");
    return `“${citation.quote || trace.passages[citation.passage_id]?.text || ""}” (${from})`;
  }

  const bears = (citation) => citation.supported !== false;

  /** Why an answer rests on nothing; "" where it does, and where there is none. */
  function doubt() {
    if (trace.grounded || trace.abstained || !trace.answer) return "";
    if (trace.citations.length) return " not shown to be right: no cited sentence supports it";
    return trace.steps.length ? " not shown to be right: it cites nothing of what was found" : " from the model's memory: nothing was looked up";
  }

  /** The answer as it is copied: with its numbers, and below it what these stand for. */
  function answerText() {
    const bearing = trace.citations.filter(bears);
    return [
      trace.answer + bearing.map((citation) => ` [${citation.number}]`).join(""),
      ...(bearing.length ? [""] : []),
      ...bearing.map((citation) => `[${citation.number}] ${asText(citation)}`),
    ].join("\n");
  }

  function card(citation, shownAbove) {
    const drawnIds = citation.triple_ids.filter((id) => facts.has(id) && edges.has(id));
    const more = drawnIds.filter((id) => !shownAbove.includes(id));
    const passage = trace.passages[citation.passage_id];
    return make("div", { class: "card", hop: Math.min(...(shownAbove.length ? shownAbove : drawnIds).map(hopOf), picture.hops), "data-citation": citation.number },
      shownAbove.length ? make("ul", { class: "facts lead" }, shownAbove.map(factButton)) : "",
      citation.quote ? make("blockquote", {}, citation.quote) : "",
      make("div", { class: "from" },
        make("div", {}, make("h3", {}, make("span", { class: "mark" }, String(citation.number)), " ", isolated(titleOf(citation))), passage ? sourceLine(passage, files) : ""),
        copyButton(`evidence ${citation.number}`, () => asText(citation))),
      !more.length ? ""
        : shownAbove.length ? make("details", { class: "more" }, make("summary", {}, count(more.length, "more fact from this passage", "more facts from this passage")), make("ul", { class: "facts" }, more.map(factButton)))
          : make("ul", { class: "facts" }, more.map(factButton)));
  }

  function evidence() {
    if (!trace.citations.length) return [];
    const byNumber = new Map(trace.citations.map((citation) => [citation.number, citation]));
    const chain = (trace.abstained ? [] : (picture.chain ?? [])).filter((link) => byNumber.has(link.cited)); // nothing follows where nothing is said
    const used = new Set(chain.map((link) => byNumber.get(link.cited)));
    const rest = trace.citations.filter((citation) => !used.has(citation) && bears(citation));
    const others = trace.citations.filter((citation) => !used.has(citation) && !bears(citation));
    const chained = chain.length > 0;
    const heading = chained ? "How the answer follows" : !trace.abstained ? "Evidence" : trace.suggestion ? "Where that may be read" : "Nearest sentences";
    const end = chain.at(-1)?.end;
    return [
      chained || rest.length ? make("h2", {}, heading) : "",
      chained ? make("ol", { class: "story" },
        make("li", { class: "end" }, make("b", {}, chain[0].start), " is in the question"),
        chain.map((link) => make("li", {},
          link.facts.length ? "" : make("p", { class: "leads" }, `from ${link.start} to ${link.end}:`),
          card(byNumber.get(link.cited), link.facts))),
        make("li", { class: "end" }, make("b", { class: "answer-name" }, end), end === trace.answer ? " is the answer" : " is in the answer")) : "",
      chained && rest.length ? make("h2", { class: "also" }, trace.disputes?.length ? "Another document says" : "Cited as well") : "",
      ...rest.map((citation) => card(citation, [])),
      others.length ? make("h2", { class: "also" }, "Cited, but does not support the answer") : "",
      ...others.map((citation) => card(citation, [])),
    ];
  }

  // ---- why a passage was retrieved

  const sentenceOf = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
  const factKey = (parts) => parts.map((part) => part.toLowerCase()).join("|");
  const factOf = new Map([...facts.values()].map((fact) => [factKey([fact.subject, fact.predicate, fact.object]), fact.id]));

  /** "0.4  (a | r | b) → (b | s^-1 | c)", or "0.4  a → r → b ← s ← c", as names and steps; null for other text. */
  function readChain(line) {
    const [, weight, body] = line.match(/^(-?[\d.]+) {2}(.*)$/s) ?? [null, "", line];
    const names = [];
    const steps = [];
    if (/^\(.*\)$/s.test(body)) {
      const parts = body.slice(1, -1).split(") → (").map((part) => part.split(" | "));
      if (parts.some((part) => part.length !== 3)) return null;
      names.push(parts[0][0], ...parts.map((part) => part[2]));
      for (const [, name] of parts) steps.push({ name: name.replace(/\^-1$/, ""), back: name.endsWith("^-1") });
    } else {
      const parts = body.split(/ ([→←]) /);
      if (parts.length < 5 || parts.length % 4 !== 1) return null;
      for (let at = 0; at < parts.length; at += 4) names.push(parts[at]);
      for (let at = 2; at < parts.length; at += 4) steps.push({ name: parts[at], back: parts[at - 1] === "←" });
    }
    return { weight, names, steps };
  }

  /** A chain of facts as a row; a click highlights those of its facts that are in the graph. */
  function chainRow(line) {
    const chain = readChain(line);
    if (!chain) return make("p", {}, line);
    const ids = chain.steps.map(({ name, back }, at) => {
      const ends = [chain.names[at], chain.names[at + 1]];
      if (back) ends.reverse();
      return factOf.get(factKey([ends[0], name, ends[1]]));
    });
    const drawnIds = ids.filter((id) => edges.has(id));
    const row = make("button", { type: "button", class: "chain", title: drawnIds.length ? "Show in the graph" : "Not in the question's graph" },
      chain.weight ? make("small", {}, chain.weight) : "",
      make("b", {}, chain.names[0]),
      chain.steps.flatMap(({ name, back }, at) => [
        make("i", {}, back ? `← ${name} ` : ` ${name} →`), make("b", { class: at === chain.steps.length - 1 ? "last" : "" }, chain.names[at + 1]),
      ]));
    row.addEventListener("click", () => drawnIds.length && on.chain(drawnIds, row));
    return row;
  }

  // ---- the steps

  function hitRow(hit, place) {
    const { page } = sourceOf(trace.passages[hit.passage_id] ?? { id: hit.passage_id });
    const name = [isolated(titleOf(hit)), page ? `, page ${page} ` : " "];
    const score = make("small", { title: "The retriever's score. Only scores of one search compare." }, `score ${Number(hit.score.toPrecision(3))}`);
    if (!hit.why) return make("li", {}, name, score);
    return make("li", {}, make("details", { class: "why", open: place === 0 }, make("summary", {}, name, score), hit.why.map(chainRow)));
  }

  function read(step) {
    if (step.now) return `${step.now} …`;
    const [all, fresh] = [step.triple_ids.length, step.new_triple_ids.length];
    if (!all) return "No facts were read in these passages.";
    const which = fresh === all ? (all === 1 ? "it is new" : "all are new") : fresh ? `${fresh.toLocaleString("en")} of them ${fresh === 1 ? "is" : "are"} new` : all === 1 ? "it was known" : "all were known";
    return `${count(all, "fact")} read in these passages; ${which}.`;
  }

  /** "Read A, B and C: 12 facts, 3 of them new.", in parts. */
  function plainRead(step) {
    if (step.now) return `${step.now} …`;
    if (!step.hits.length) return "Nothing was found.";
    const titles = [...new Set(step.hits.map(titleOf))];
    const list = titles.map((title, place) => [place === 0 ? "" : place === titles.length - 1 ? " and " : ", ", isolated(title)]);
    const [all, fresh] = [step.triple_ids.length, step.new_triple_ids.length];
    const news = !all ? "no facts" : `${count(all, "fact")}, ${fresh === all ? (all === 1 ? "new" : "all new") : fresh ? `${fresh.toLocaleString("en")} of them new` : all === 1 ? "known already" : "all known already"}`;
    return ["Read ", ...list.flat(), `: ${news}.`];
  }

  function plainRow(step) {
    const plan = trace.plans.find((one) => one.hop === step.hop && one.action === "subq");
    const reasons = step.hits.filter((hit) => hit.why?.length);
    return make("li", { class: "step", hop: step.hop },
      make("b", { "aria-hidden": "true" }, String(step.hop)),
      make("button", { type: "button", class: "subquery", "data-step": step.hop, click: () => on.hop(step.hop) }, make("span", { class: "unseen" }, `Search ${step.hop}: `), step.subquery),
      plan?.reason ? make("p", { class: "note" }, sentenceOf(plan.reason)) : "",
      step.thought ? make("p", { class: "note" }, step.thought) : "",
      make("p", { class: "note" }, plainRead(step)),
      reasons.length ? make("details", { class: "note more" }, make("summary", {}, "Why these"), make("ul", { class: "hits" }, reasons.map(hitRow))) : "");
  }

  function stepRow(step) {
    if (plain) return plainRow(step);
    return make("li", { class: "step", hop: step.hop },
      make("b", { "aria-hidden": "true" }, String(step.hop)),
      make("button", { type: "button", class: "subquery", "data-step": step.hop, click: () => on.hop(step.hop) }, make("span", { class: "unseen" }, `Hop ${step.hop}: `), step.subquery),
      step.thought ? make("p", { class: "note" }, step.thought) : "",
      step.hits.length ? make("ul", { class: "note hits" }, step.hits.map(hitRow)) : step.now ? "" : make("p", { class: "note" }, "Nothing was found."),
      make("p", { class: "note" }, read(step)));
  }

  function steps() {
    if (!trace.steps.length && !trace.plans.length) return [];
    const list = make("ol", {}, trace.steps.map(stepRow));
    const plan = trace.plans.at(-1);
    const last = plan && plan.action !== "subq" ? plan : null;
    const why = last ? last.reason : plain ? "" : `stopped: ${words(trace.stop_reason)}`;
    if (last || trace.stop_reason) {
      list.append(make("li", { class: "step", hop: 0 }, make("b", { "aria-hidden": "true" }, "■"),
        plain ? make("span", {}, marks[trace.stop_reason || last.action] ?? `It ended: ${words(trace.stop_reason || last.action)}.`, why ? make("span", { class: "note" }, ` ${sentenceOf(why)}`) : "")
          : make("span", {}, last ? make("span", { class: "action" }, marks[last.action] || last.action) : "", ` ${why}`)));
    }
    return [make("h2", {}, "Steps"), list];
  }

  function rest() {
    const parts = [];
    if (trace.failures.length) parts.push(make("h2", {}, "What went wrong"));
    for (const failure of trace.failures) {
      parts.push(make("div", { class: "card" }, make("p", {}, `${failure.role}, hop ${failure.hop}: ${failure.message}`), failure.detail ? make("p", { class: "text" }, failure.detail) : ""));
    }
    if (picture.edges.length) {
      parts.push(make("details", {}, make("summary", {}, `All ${count(picture.edges.length, "fact")}`),
        make("ul", { class: "facts" }, picture.edges.map((edge) => factButton(edge.id)))));
    }
    const { usage } = trace;
    const set = [["graph", trace.mode], ...Object.entries(trace.roles ?? {}), ["stopped", words(trace.stop_reason ?? "")],
      ["tokens in", usage?.input_tokens], ["tokens out", usage?.output_tokens],
      ["samples that agree", trace.agreement == null ? "" : `${Math.round(100 * trace.agreement)} %`],
      ["confidence", trace.confidence == null ? "" : `${Number(trace.confidence.toPrecision(2))}, as the answerer states it (offline: the token F1 that it expects of the answer); not the chance that the answer is right`],
    ].filter(([, value]) => value);
    if (set.length) {
      parts.push(make("details", {}, make("summary", {}, "The run"),
        make("dl", {}, set.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]))));
    }
    return parts;
  }

  return { details, evidence, steps, rest, stepRow, sentence, asText, answerText, doubt };
}
