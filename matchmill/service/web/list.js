// The list of subscriptions: page by page, searched by id, each to show, renew and unsubscribe.

import { call, get, key, pathOf } from "./api.js";
import { ask, show } from "./dialogs.js";
import { byId, code, complain, fill, guarded, make, say } from "./dom.js";
import { moment } from "./moments.js";

const ROWS = 20;

let begins = [""]; // where each page that was seen begins; the last one is shown
let prefix = "";
let next;
let explain = () => {};

export function start(onExplain) {
  explain = onExplain;
  byId("search").addEventListener("submit", (submit) => {
    submit.preventDefault();
    prefix = byId("search-id").value.trim();
    begins = [""];
    load();
  });
  byId("list-reload").addEventListener("click", load);
  byId("list-next").addEventListener("click", () => (begins.push(next), load()));
  byId("list-back").addEventListener("click", () => (begins.pop(), load()));
}

/** From the first page on, as for another key. */
export function reset() {
  begins = [""];
  prefix = "";
  byId("search-id").value = "";
  fill(byId("list-rows"));
  say(byId("list-says"));
}

/** Show the page again. */
export async function load() {
  if (!key()) {
    say(byId("list-says"), "Sign in to see subscriptions.");
    return;
  }
  byId("list-next").disabled = byId("list-back").disabled = true;
  try {
    const cursor = begins.at(-1);
    const { rows, next: following } = await (prefix ? found(cursor) : page(cursor));
    next = following;
    fill(byId("list-rows"), ...rows.map(row));
    const none = prefix ? `No id begins with ${prefix}.` : "There are no subscriptions.";
    say(byId("list-says"), rows.length ? "" : none);
  } catch (error) {
    next = undefined;
    complain(byId("list-says"), error);
  }
  byId("list-next").disabled = next === undefined;
  byId("list-back").disabled = begins.length < 2;
}

async function page(cursor) {
  const query = new URLSearchParams({ limit: ROWS, ...(cursor && { cursor }) });
  const answer = await get(`/v1/subscriptions?${query}`);
  return { rows: answer.subscriptions, next: answer.next_cursor };
}

/** Ids in order: the one itself, if it is there, and those that begin with it follow each other. */
async function found(cursor) {
  const { rows, next } = await page(cursor || prefix);
  const fitting = rows.filter(({ subscription_id: id }) => id.startsWith(prefix));
  const exact = cursor ? null : await itself();
  return {
    rows: exact ? [exact, ...fitting] : fitting,
    next: fitting.length === rows.length ? next : undefined,
  };
}

async function itself() {
  try {
    return await get(pathOf(prefix));
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

function row(one) {
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, code(one.subscription_id)),
    make("td", { class: "expression" }, code(one.expression)),
    make("td", { "data-name": "Expires" }, moment(one.expires_at)),
    make("td", { class: "number", "data-name": "Waiting" }, one.n_pending.toLocaleString("en")),
    make("td", {}, make("div", { class: "actions" }, ...actions(one))),
  );
}

function actions({ subscription_id: id }) {
  return [
    ["Show", (button) => guarded(button, byId("list-says"), () => details(id))],
    ["Explain", () => explain(id)],
    ["Renew", () => renew(id)],
    ["Unsubscribe", () => unsubscribe(id)],
  ].map(([name, work]) => {
    const button = make("button", { type: "button", "aria-label": `${name} ${id}` }, name);
    button.addEventListener("click", () => work(button));
    return button;
  });
}

async function details(id) {
  const one = await get(pathOf(id));
  const facts = [
    ["Expression", code(one.expression)],
    ["Created", moment(one.created_at)],
    ["Expires", moment(one.expires_at)],
    ["Matches waiting", one.n_pending.toLocaleString("en")],
    ["Dropped", one.n_dropped.toLocaleString("en")],
    ["Most per minute", one.max_per_minute?.toLocaleString("en") ?? "no limit"],
    ["Webhook", one.webhook ? code(one.webhook.url) : "none"],
    ["Dead letters", one.n_dead_letters.toLocaleString("en")],
  ];
  const list = facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  show(id, make("dl", { class: "facts" }, ...list));
}

function renew(id) {
  ask({
    title: `Renew ${id}`,
    text: "The time until it expires starts again now. A key with the scope admin needs no ticket.",
    id,
    action: "Renew",
    asksTtl: true,
    ticketMayBeAbsent: true,
    async work({ ticket, seconds }) {
      const body = { ttl_seconds: seconds };
      const { expires_at: until } = await call("PATCH", pathOf(id), { body, ticket });
      await load();
      say(byId("list-says"), code(id), " now expires ", moment(until), ".");
    },
  });
}

function unsubscribe(id) {
  ask({
    title: `Unsubscribe ${id}?`,
    text: "The subscription and its mailbox are deleted. A key with the scope admin needs no ticket.",
    id,
    action: "Unsubscribe",
    asksTtl: false,
    ticketMayBeAbsent: true,
    async work({ ticket }) {
      await call("DELETE", pathOf(id), { ticket });
      await load();
      say(byId("list-says"), code(id), " has ended.");
      byId("list-title").focus();
    },
  });
}
