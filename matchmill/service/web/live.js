// Matches as they happen: those of all subscriptions, and the mailbox of one.

import { key, pathOf, post, ticketOf } from "./api.js";
import { byId, fill, guarded, make } from "./dom.js";
import { print } from "./exact_json.js";
import { learn } from "./help.js";
import { clock } from "./moments.js";
import { follow } from "./streams.js";

const MOST = 200;
const MOST_WAITING = 1_000;
const HIDDEN_FOR = 60_000; // a browser opens six connections to one host: hidden tabs close theirs

/** A list that keeps its latest entries, and can be paused. */
class Entries {
  constructor(list) {
    this.list = list;
    this.isPaused = false;
    this.waiting = [];
    this.nWaiting = 0;
  }

  add(entry) {
    if (!this.isPaused) return this.put(entry);
    this.nWaiting += 1;
    this.waiting.push(entry);
    if (this.waiting.length > MOST_WAITING) this.waiting.shift();
  }

  put(entry) {
    this.list.prepend(entry);
    while (this.list.childElementCount > MOST) this.list.lastElementChild.remove();
  }

  /** Show what arrived during the pause. */
  resume() {
    this.isPaused = false;
    this.waiting.forEach((entry) => this.put(entry));
    this.waiting = [];
    this.nWaiting = 0;
  }

  clear() {
    this.waiting = [];
    this.nWaiting = 0;
    fill(this.list);
  }
}

let all;
let own;
let closeAll = null;
let hiding = 0;
let closeOwn = null;
let opened = null; // the mailbox that is open: {id, ticket, seq}
let nDropped = 0;

export function start() {
  all = new Entries(byId("live-matches"));
  own = new Entries(byId("own-matches"));
  byId("live-pause").addEventListener("click", pause);
  byId("live-clear").addEventListener("click", () => (all.clear(), tell()));
  byId("own").addEventListener("submit", openOwn);
  byId("own").elements.id.addEventListener("change", ({ target }) => {
    const ticket = ticketOf(target.value.trim());
    if (ticket) byId("own").elements.ticket.value = ticket;
  });
  byId("own-acknowledge").addEventListener("click", acknowledge);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(sleep, HIDDEN_FOR);
    else if (!closeAll) open();
  });
}

// -- of all subscriptions -------------------------------------------------------------------------

/** Follow the live matches of the present key. */
export function connect() {
  sleep();
  all.clear();
  nDropped = 0;
  tell();
  open();
}

function sleep() {
  closeAll?.();
  closeAll = null;
  state("live-state", "not connected");
}

function open() {
  if (!key()) return;
  state("live-state", "connecting …");
  closeAll = follow("/v1/live", {
    on: {
      state: (text) => state("live-state", text),
      failed: (error) => state("live-state", error.message, true),
      event(name, value) {
        if (name === "dropped") nDropped += value.n_dropped;
        else if (name === "match") all.add(liveEntry(value));
        tell();
      },
    },
  });
}

function state(id, text, isBad = false) {
  const element = byId(id);
  element.textContent = text;
  element.classList.toggle("bad", isBad);
  element.classList.toggle("on", text === "connected");
}

function tell() {
  const parts = [`The latest ${MOST} are kept here.`];
  if (all.isPaused) parts.push(`Paused; ${all.nWaiting.toLocaleString("en")} have arrived since.`);
  if (nDropped) parts.push(`${nDropped.toLocaleString("en")} were dropped, because there were too many.`);
  byId("live-note").textContent = parts.join(" ");
}

function pause({ currentTarget }) {
  if (all.isPaused) all.resume();
  else all.isPaused = true;
  currentTarget.setAttribute("aria-pressed", String(all.isPaused));
  currentTarget.textContent = all.isPaused ? "Continue" : "Pause";
  tell();
}

function liveEntry(match) {
  learn(match.event);
  const shown = match.subscription_ids.slice(0, 20).map((id) => make("code", { class: "id" }, id));
  const more = match.n_matches > shown.length ? [`and ${match.n_matches - shown.length} more`] : [];
  return entry(match, make("span", { class: "ids" }, ...shown, ...more));
}

function entry(match, middle) {
  return make(
    "li",
    {},
    make("div", { class: "row" }, clock(match.matched_at), middle),
    make("code", { class: "event", title: `event ${match.event_id}` }, print(match.event)),
  );
}

// -- of one ---------------------------------------------------------------------------------------

function openOwn(submit) {
  submit.preventDefault();
  if (closeOwn) {
    close("closed");
    return;
  }
  const fields = byId("own").elements;
  const id = fields.id.value.trim();
  const ticket = fields.ticket.value.trim() || ticketOf(id);
  if (!id || !ticket) {
    state("own-state", "enter the id and its ticket", true);
    return;
  }
  own.clear();
  opened = { id, ticket, seq: 0 };
  byId("own-button").textContent = "Close it";
  state("own-state", "connecting …");
  closeOwn = follow(`${pathOf(id)}/matches`, {
    ticket,
    on: {
      state: (text) => state("own-state", text),
      failed: (error) => close(error.message, true),
      event: ownEvent,
    },
  });
}

function close(text, isBad = false) {
  closeOwn?.();
  closeOwn = null;
  byId("own-button").textContent = "Open its mailbox";
  byId("own-acknowledge").hidden = true;
  state("own-state", text, isBad);
}

function ownEvent(name, value) {
  if (name === "end") {
    close(`the subscription has ended: ${value.reason}`);
  } else if (name === "dropped") {
    state("own-state", `${value.n_dropped} matches were dropped, because the mailbox was full`, true);
  } else {
    opened.seq = value.seq;
    own.add(name === "digest" ? digestEntry(value) : entry(value, `number ${value.seq}`));
    byId("own-acknowledge").hidden = false;
  }
}

function digestEntry({ seq, digest }) {
  const words = `number ${seq}: ${digest.n_matches.toLocaleString("en")} more matches, until`;
  const times = [clock(digest.first_at), make("span", {}, words), clock(digest.last_at)];
  return make("li", {}, make("div", { class: "row" }, ...times));
}

function acknowledge({ currentTarget }) {
  const { id, ticket, seq } = opened;
  guarded(currentTarget, byId("own-state"), async () => {
    await post(`${pathOf(id)}/acknowledge`, { up_to: seq }, { ticket });
    own.clear();
    currentTarget.hidden = true;
    byId("own-button").focus();
  });
}
