// The view where an expression is written, subscribed and tried, next to an event.

import { key, post, remember, withEvent } from "./api.js";
import { bold, byId, code, fill, guarded, hint, line, make, say, secret } from "./dom.js";
import { Editor, unitsOf } from "./editor.js";
import * as exact from "./exact_json.js";
import * as help from "./help.js";
import { moment } from "./moments.js";
import { explanation } from "./tree.js";

const EXAMPLE = '{\n  "origin": "JFK",\n  "dest": "SFO",\n  "dep_delay": 45\n}';

let expression;
let event;

export function start() {
  expression = new Editor(byId("expression"), byId("expression-says"), checkExpression);
  event = new Editor(byId("event"), byId("event-says"), checkEvent);
  help.start((text) => expression.insert(text));
  event.text = EXAMPLE;
  byId("subscribe").addEventListener("submit", subscribe);
  button("backtest", "expression-result", backtest);
  button("match", "event-result", match);
  button("publish", "event-result", publish);
  button("explain-expression", "explanation", explainExpression);
  byId("explain-one").addEventListener("submit", (submit) => {
    submit.preventDefault();
    const id = byId("explain-id").value.trim();
    guarded(submit.submitter, byId("explanation"), () => explainSubscription(id));
  });
  byId("event").addEventListener("keydown", (pressed) => {
    if (pressed.key === "Enter" && (pressed.ctrlKey || pressed.metaKey)) byId("match").click();
  });
}

/** Look at the expression again: there may be a key now. */
export const look = () => expression.look();

/** Explain a subscription that was chosen elsewhere. */
export function choose(id) {
  byId("explain-id").value = id;
  byId("explain-one").requestSubmit(byId("explain-one").querySelector("button"));
}

function button(id, resultId, work) {
  byId(id).addEventListener("click", () => guarded(byId(id), byId(resultId), work));
}

// -- checks ---------------------------------------------------------------------------------------

async function checkExpression(text, signal) {
  if (!key()) return { note: hint("Sign in to have it checked as you type.") };
  const { rejected, warnings, normalized } = await post("/v1/check", { expression: text }, { signal });
  if (normalized === undefined) {
    const { detail, hint: advice, position } = rejected[0];
    return { message: detail, hint: advice, ...(position && unitsOf(text, position)) };
  }
  const good = make("p", { class: "good" }, "✓ reads as ", code(normalized));
  return { note: make("div", {}, good, ...warnings.map(said)) };
}

const said = ({ message, suggestion }) => hint(suggestion ? `${message}; ${suggestion}` : message);

function checkEvent(text) {
  const found = exact.mistake(text);
  if (!found) help.learn(exact.parse(text));
  return found;
}

/** The text of the expression; an error if there is none. */
function expressionText() {
  if (!expression.text.trim()) throw new Error("write an expression first");
  return expression.text;
}

function eventText() {
  const found = exact.mistake(event.text);
  if (found) {
    event.look();
    throw new Error(`the event: ${found.message}`);
  }
  return event.text;
}

// -- the expression -------------------------------------------------------------------------------

function wholeNumber(text, name) {
  if (!/^\d{1,9}$/.test(text.trim()) || Number(text) < 1) {
    throw new Error(`${name} must be a whole number from 1`);
  }
  return Number(text);
}

/** Seconds from the two fields of a form. */
export function ttlSeconds(form) {
  const { amount, unit } = form.elements;
  return wholeNumber(amount.value, "the time until it expires") * Number(unit.value);
}

function subscribe(submit) {
  submit.preventDefault();
  const form = submit.target;
  const fields = form.elements;
  const where = byId("expression-result");
  guarded(form.querySelector("button.main"), where, async () => {
    const body = { expression: expressionText(), ttl_seconds: ttlSeconds(form) };
    if (fields.id.value.trim()) body.subscription_id = fields.id.value.trim();
    if (fields.most.value.trim()) {
      body.max_per_minute = wholeNumber(fields.most.value, "most per minute");
    }
    if (fields.webhook.value.trim()) body.webhook = { url: fields.webhook.value.trim() };
    const made = await post("/v1/subscriptions", body);
    remember(made.subscription_id, made.ticket);
    const secrets = [secret("Ticket, shown only once", made.ticket)];
    if (made.webhook_secret) {
      secrets.push(secret("Secret that calls of the webhook are signed with", made.webhook_secret));
    }
    say(
      where,
      line("Subscribed as ", code(made.subscription_id), "; it expires ", moment(made.expires_at), "."),
      ...secrets,
      hint("The ticket is needed to read the mailbox, to renew and to unsubscribe. Keep it safe."),
    );
  });
}

async function backtest() {
  const last = Number(byId("backtest-last").value);
  const body = { expression: expressionText(), last };
  const { n_events: nEvents, n_matches: nMatches, event_ids: ids } = await post("/v1/backtest", body);
  const rest = ` of the latest ${count(nEvents, "event")} would have matched.`;
  const lines = [line(bold(nMatches.toLocaleString("en")), rest)];
  if (ids.length) {
    const items = ids.map((id) => make("li", {}, code(id)));
    const summary = make("summary", {}, `Ids of ${count(ids.length, "event")}`);
    lines.push(make("details", {}, summary, make("ul", { class: "ids" }, ...items)));
  }
  say(byId("expression-result"), ...lines);
}

const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

// -- the event ------------------------------------------------------------------------------------

async function match() {
  const { matches } = await post("/v1/match", withEvent(eventText()));
  const where = byId("event-result");
  if (!matches.length) {
    say(where, line("No subscription matches."));
    return;
  }
  const chips = matches.slice(0, 200).map(({ subscription_id: id }) => {
    const chip = make("button", { type: "button", title: `Explain ${id}` }, id);
    chip.addEventListener("click", () => choose(id));
    return chip;
  });
  const verb = matches.length === 1 ? "matches" : "match";
  const title = bold(`${count(matches.length, "subscription")} ${verb}`);
  const more = matches.length > chips.length ? [`and ${matches.length - chips.length} more`] : [];
  const list = make("div", { class: "chips" }, ...chips, ...more);
  say(where, line(title), list, hint("Choose one to see why."));
}

async function publish() {
  const { event_id: id, n_matches: nMatches } = await post("/v1/events", withEvent(eventText()));
  const rest = `; it matched ${count(nMatches, "subscription")}.`;
  say(byId("event-result"), line("Published as ", code(id), rest));
}

async function explainExpression() {
  const text = expressionText();
  show(text, await post("/v1/explain", withEvent(eventText(), { expression: text })));
}

async function explainSubscription(id) {
  if (!id) throw new Error("give the id of a subscription");
  show(id, await post("/v1/explain", withEvent(eventText(), { subscription_id: id })));
}

function show(title, answer) {
  byId("explanation").classList.remove("bad");
  fill(byId("explanation"), ...explanation(title, answer));
}
