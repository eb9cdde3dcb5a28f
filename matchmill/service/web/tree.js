// The explanation of an expression for an event, as a tree: what held, what failed, by how much.

import { bold, code, make } from "./dom.js";

const MARKS = new Map([
  [true, ["✓", "holds", "held"]],
  [false, ["✗", "fails", "failed"]],
  [null, ["?", "unknown", "unknown"]],
]);

/** The response of /v1/explain as elements: a verdict, and the tree. */
export function explanation(title, answer) {
  const verdict = bold(answer.matched ? "matches" : "does not match");
  verdict.className = answer.matched ? "held" : "failed";
  return [
    make("p", { class: "verdict" }, code(title), " ", verdict),
    make("ul", { class: "tree", "aria-label": "Explanation" }, node(answer.tree)),
  ];
}

function node(part) {
  const [mark, word, kind] = MARKS.get(part.truth);
  const head = [
    make("span", { class: `mark ${kind}`, role: "img", "aria-label": word }, mark),
    make("span", { class: "what" }, code(label(part)), note(part)),
  ];
  if (!part.parts.length) return make("li", {}, make("div", { class: "leaf" }, ...head));
  const inner = make("ul", {}, ...part.parts.map(node));
  const branch = make("details", { open: true }, make("summary", {}, ...head), inner);
  return make("li", {}, branch);
}

/** A branch is named by what joins its parts, since the parts follow. */
function label(part) {
  if (part.kind.startsWith("is ")) return part.kind;
  return { and: "all of", or: "any of", not: "not" }[part.kind] ?? part.text;
}

function note(part) {
  return part.note ? make("span", { class: "note" }, part.note) : null;
}
