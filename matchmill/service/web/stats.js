// Stats of the service, read every few seconds while they are shown.

import { get, key } from "./api.js";
import { bars, lines, short } from "./chart.js";
import { byId, complain, fill, make, say } from "./dom.js";

const EVERY = 3_000;
const WINDOWS = [60, 120, 300, 600]; // seconds; the first one that covers the history is shown

let history = [];
let timer = 0;
let isShown = false;

/** Start or stop reading them. */
export function watch(shown) {
  isShown = shown;
  clearTimeout(timer);
  if (shown) ask();
}

/** Start again, for another key. */
export function reset() {
  history = [];
  watch(isShown);
}

async function ask() {
  clearTimeout(timer);
  if (!key()) {
    say(byId("stats-says"), "Sign in to see stats.");
    return;
  }
  const asked = key();
  try {
    const stats = await get("/v1/stats");
    if (asked !== key()) return;
    note(stats);
    draw(stats);
    say(byId("stats-says"));
  } catch (error) {
    complain(byId("stats-says"), error);
    if (error.status === 401 || error.status === 403) return;
  }
  if (isShown) timer = setTimeout(ask, EVERY);
}

function note(stats) {
  const { events_per_second: events, matches_per_second: matches } = stats.last_60_seconds;
  const { p50 = null, p99 = null } = stats.publish_milliseconds;
  const at = Date.now();
  history = history.filter((row) => at - row.at < 1000 * WINDOWS.at(-1));
  history.push({ at, rates: [events, matches], latencies: [p50, p99] });
}

function draw(stats) {
  const tiles = [
    ["Subscriptions", stats.n_subscriptions],
    ["Events per second", stats.last_60_seconds.events_per_second],
    ["Matches per second", stats.last_60_seconds.matches_per_second],
    ["Events waiting", stats.n_queued_events],
    ["Open streams", stats.n_streams],
  ].map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, short(value))));
  fill(byId("tiles"), ...tiles);
  const age = (history.at(-1).at - history[0].at) / 1000;
  const seconds = WINDOWS.find((window) => window > age) ?? WINDOWS.at(-1);
  const rows = (name) => history.map((row) => ({ at: row.at, values: row[name] }));
  lines(byId("rates"), {
    rows: rows("rates"),
    names: ["events", "matches"],
    unit: "per second",
    seconds,
  });
  lines(byId("latencies"), {
    rows: rows("latencies"),
    names: ["p50", "p99"],
    unit: "milliseconds",
    seconds,
  });
  bars(byId("costly"), {
    rows: stats.costly.map((one) => ({
      name: one.subscription_id,
      values: [one.checked_per_event, one.matched_per_event],
    })),
    names: ["checked per event", "matches per event"],
    none: "Nothing was published yet.",
  });
}
