// Operators and attributes to choose from: a choice is inserted at the cursor.

import { byId, fill, make } from "./dom.js";

const OPERATORS = [
  ["=", "equal; also !=, <, <=, >, >= with numbers, texts, dates and booleans"],
  ["in ('JFK', 'LGA')", "one of a list; not in for none of them"],
  ["between 10 and 20", "within bounds, both included"],
  ["like 'SF%'", "text with % for any characters and _ for one; ilike ignores case"],
  ["rlike '^[A-Z]{2}$'", "the text contains a match of a regular expression"],
  ["is null", "missing, null or not a number; is not null for the rest"],
  ["contains 'red'", "a list has this element; contains any (…), all (…), none (…)"],
  ["in cidr '10.0.0.0/8'", "an IP address belongs to a network"],
  ["date '2013-01-31'", "a date; timestamp '2013-01-31 10:00' for a moment"],
  ["and", "both hold"],
  ["or", "one of them holds"],
  ["not", "the opposite; of unknown it is unknown"],
  ["is not true", "the expression before it is false or unknown"],
];
const MOST = 60;

const seen = new Set();
let insert = () => {};

export function start(insertText) {
  insert = insertText;
  const says = byId("operator-says");
  fill(
    byId("operators"),
    ...OPERATORS.map(([text, meaning]) => {
      const chip = make("button", { type: "button", title: meaning }, text);
      const tell = () => (says.textContent = meaning);
      chip.addEventListener("focus", tell);
      chip.addEventListener("pointerenter", tell);
      chip.addEventListener("click", () => insert(`${text} `));
      return chip;
    }),
  );
  draw();
}

/** Attributes of an event are offered from now on. */
export function learn(event) {
  const before = seen.size;
  collect(event, "");
  if (seen.size > before) draw();
}

function collect(value, prefix) {
  for (const [name, inner] of Object.entries(value)) {
    const full = prefix + name;
    if (inner !== null && typeof inner === "object" && !Array.isArray(inner)) {
      collect(inner, `${full}.`);
    } else if (seen.size < MOST) {
      seen.add(full);
    }
  }
}

const PLAIN = /^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u;
const KEYWORDS = /^(and|or|not|in|between|like|ilike|rlike|is|null|true|false)$/i;

/** A name as an expression has it. */
const written = (name) =>
  PLAIN.test(name) && !KEYWORDS.test(name) ? name : `"${name.replaceAll('"', '""')}"`;

function draw() {
  const chips = [...seen].sort().map((name) => {
    const chip = make("button", { type: "button" }, written(name));
    chip.addEventListener("click", () => insert(`${written(name)} `));
    return chip;
  });
  const none = make("span", { class: "hint" }, "Those of the event, and of live matches.");
  fill(byId("attributes"), ...(chips.length ? chips : [none]));
}
