// What the page does beyond showing numbers: regions that scroll can be reached by keyboard, the others
// are no stops on the way, and the pairs can be browsed. Everything from outside reaches the page as
// text, never as markup.
"use strict";
function markScrolling() {
  for (const each of document.querySelectorAll(".wide, .text")) {
    const scrolls = each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1;
    if (scrolls) each.setAttribute("tabindex", "0");
    else each.removeAttribute("tabindex");
  }
}
addEventListener("resize", markScrolling);
markScrolling();
(() => {
  if (!document.getElementById("pair-list")) return; // there is no pair to show
  const data = JSON.parse(document.getElementById("pairs-data").textContent);
  const by = (id) => document.getElementById(id);
  const list = by("pair-list"), detail = by("pair"), count = by("pair-count");
  const search = by("pair-search"), kind = by("pair-kind"), category = by("pair-category"), run = by("pair-run");
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
  let shown = [], current = null;

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.filter((each) => each !== null));
    return element;
  }

  // Characters that cannot be seen, or that turn the direction of others, are shown by their number.
  function plain(text) {
    const out = document.createDocumentFragment();
    let from = 0;
    for (const found of text.matchAll(UNSEEN)) {
      out.append(text.slice(from, found.index));
      const number = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      out.append(make("span", { class: "unseen" }, `U+${number}`));
      from = found.index + found[0].length;
    }
    out.append(text.slice(from));
    return out;
  }

  const box = (text, name, more = "") =>
    make("div", { class: `text ${more}`, dir: "auto", tabindex: "0", role: "region", "aria-label": name }, plain(text));

  function fill(select, values, all) {
    select.append(make("option", { value: "" }, all));
    for (const value of values) select.append(make("option", { value }, plain(value)));
    select.closest("div").hidden = values.length < 2;
  }

  const haystack = (pair) =>
    [pair.id, pair.category, pair.model_a, pair.model_b, pair.question, pair.response_a, pair.response_b, pair.reason]
      .filter(Boolean).join("\n").toLowerCase();
  for (const pair of data.pairs) pair.words = haystack(pair);

  function wanted(pair) {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (!kind.value || pair.sampled.includes(kind.value)) &&
      (!category.value || pair.category === category.value) &&
      (!run.value || pair.run === run.value) &&
      words.every((word) => pair.words.includes(word));
  }

  function draw() {
    shown = data.pairs.filter(wanted);
    count.textContent = `${shown.length} of ${data.pairs.length} shown here`;
    list.replaceChildren(...shown.map((pair) => {
      const button = make("button", { type: "button" }, plain(pair.id),
        make("small", {}, plain(`${pair.kinds.join(", ")} · ${pair.result}${pair.label ? ` · label ${pair.label}` : ""}`)));
      button.addEventListener("click", () => choose(pair));
      return make("li", {}, button);
    }));
    choose(shown.includes(current) ? current : shown[0] ?? null);
  }

  function choose(pair) {
    current = pair;
    [...list.querySelectorAll("button")].forEach((button, place) =>
      button.setAttribute("aria-current", String(shown[place] === pair)));
    detail.replaceChildren(...(pair ? parts(pair) : [make("p", {}, "No pair fits the filters.")]));
    markScrolling();
  }

  function table(columns, rows, name) {
    const head = make("tr", {}, ...columns.map((each) => make("th", { scope: "col" }, each)));
    const body = rows.map((row) => make("tr", {}, ...row.map((cell) =>
      make("td", String(cell ?? "").length > 40 ? { class: "long" } : {}, plain(String(cell ?? "-"))))));
    return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": name },
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
  }

  function parts(pair) {
    const facts = [
      ["result", pair.result], ["why", pair.reason], ["label", pair.label], ["category", pair.category],
      ["strategy", pair.strategy], ["confidence", pair.confidence], ["run", pair.run], ["where", pair.where],
    ].filter(([, value]) => value !== null && value !== undefined && value !== "");
    const out = [
      make("h3", {}, plain(pair.id)),
      table(["what", "value"], facts, "Facts of the pair"),
    ];
    if (pair.question !== null) out.push(make("h4", {}, "Question"), box(pair.question, "Question"));
    if (pair.reference !== null) out.push(make("h4", {}, "Reference"), box(pair.reference, "Reference"));
    if (pair.response_a !== null) {
      const answers = make("div", { class: "answers" });
      for (const [side, text, model] of [["A", pair.response_a, pair.model_a], ["B", pair.response_b, pair.model_b]]) {
        if (text === null) continue;
        const name = pair.response_b === null ? "Answer" : `Answer ${side}`;
        answers.append(make("div", {},
          make("h4", {}, plain(model ? `${name}: ${model}` : name), pair.winner === side ? " (verdict)" : ""),
          box(text, name, pair.winner === side ? "picked" : "")));
      }
      out.push(answers);
    } else {
      out.push(make("p", { class: "absent" }, data.no_texts));
    }
    if (pair.votes.length) {
      out.push(make("h4", {}, "Votes"));
      const clustered = pair.votes.some((vote) => vote.cluster);
      out.push(table(["judge", "shown first", "pick", "confidence", "why no pick", ...(clustered ? ["cluster"] : [])],
        pair.votes.map((vote) => [vote.judge, vote.order === "ab" ? "A" : "B", vote.pick, vote.confidence, vote.why,
          ...(clustered ? [vote.cluster] : [])]), "Votes"));
      const spoken = pair.votes.filter((each) => each.text);
      if (spoken.length) out.push(make("p", { class: "note" }, "In the words of a judge, A or 1 is the answer that was shown first."));
      if (pair.more_votes) out.push(make("p", { class: "note" }, `${pair.more_votes} further votes are not shown here`));
      for (const vote of spoken) {
        const name = `${vote.judge}, ${vote.order === "ab" ? "A" : "B"} shown first`;
        out.push(make("h4", {}, plain(name)), box(vote.text, "Words of the judge"));
      }
    }
    if (pair.scores.length) out.push(make("h4", {}, "Scores"), table(["score", "value"], pair.scores, "Scores"));
    if (pair.parts.length) {
      out.push(make("h4", {}, "Parts"), table(["part", "pick", "weight", "why"],
        pair.parts.map((part) => [part.name, part.pick, part.weight, part.why]), "Parts"));
    }
    return out;
  }

  function step(event) {
    const move = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (!move || !shown.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = Math.min(shown.length - 1, Math.max(0, shown.indexOf(current) + move));
    choose(shown[place]);
    list.querySelectorAll("button")[place].focus();
    event.preventDefault();
  }

  fill(kind, data.kinds, "all kinds");
  fill(category, [...new Set(data.pairs.map((pair) => pair.category).filter(Boolean))].sort(), "all categories");
  fill(run, [...new Set(data.pairs.map((pair) => pair.run))], "all runs");
  for (const each of [search, kind, category, run]) each.addEventListener("input", draw);
  list.addEventListener("keydown", step);
  by("no-script").hidden = true;
  draw();
})();
