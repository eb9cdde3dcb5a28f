// Figures of the service, asked for every few seconds while they are looked at.

import { get, key } from "./api.js";
import { bars, lines, short } from "./chart.js";
import { byId, complain, fill, make, say } from "./dom.js";

const EVERY = 3_000;
const WINDOWS = [60, 120, 300, 600]; // seconds; the first that holds all there is is shown

let history = [];
let timer = 0;
let isShown = false;

/** Begin or end to ask. */
export function watch(shown) {
  isShown = shown;
  clearTimeout(timer);
  if (shown) ask();
}

/** Another key has other figures. */
export function reset() {
  history = [];
  watch(isShown);
}

async function ask() {
  clearTimeout(timer);
  if (!key()) {
    say(byId("figures-says"), "Sign in to see figures.");
    return;
  }
  const asked = key();
  try {
    const stats = await get("/v1/stats");
    if (asked !== key()) return;
    note(stats);
    draw(stats);
    say(byId("figures-says"));
  } catch (error) {
    complain(byId("figures-says"), error);
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
    ["Subscriptions", stats.subscriptions],
    ["Events a second", stats.last_60_seconds.events_per_second],
    ["Matches a second", stats.last_60_seconds.matches_per_second],
    ["Events waiting", stats.queued_events],
    ["Open streams", stats.streams],
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
      name: one.id,
      values: [one.checked_per_event, one.matched_per_event],
    })),
    names: ["looked at per event", "matches per event"],
    none: "There are figures once some events were published.",
  });
}
