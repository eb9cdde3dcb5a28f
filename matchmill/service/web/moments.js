// Moments as people read them; the exact one is in the title.

import { make } from "./dom.js";

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** A <time> such as “in 3 days”. */
export function moment(text) {
  const seconds = (Date.parse(text) - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, n]) => Math.abs(seconds) >= n) ?? UNITS.at(-1);
  const shown = words.format(Math.round(seconds / size), unit);
  return make("time", { datetime: text, title: text }, shown);
}

/** The time of day of a moment. */
export function clock(text) {
  const shown = new Date(text).toLocaleTimeString("en-GB");
  return make("time", { datetime: text, title: text }, shown);
}
