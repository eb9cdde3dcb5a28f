// Charts as SVG: lines over time, and bars. Colours are classes, so that the style sheet has them
// for light and dark; texts are text, and a table says the same to a screen reader.

import { bold, code, fill, hint, make } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const NARROWEST = 240;
const HEIGHT = 200;
const LEFT = 52;
const RIGHT = 12;
const TOP = 14;
const BOTTOM = 30;

function shape(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** The least of 1, 2, 5, 10, … times a power of ten that is not below a number. */
function roundUp(number) {
  if (number <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= number * (1 - 1e-9));
}

export function short(number) {
  if (number >= 1e6) return `${+(number / 1e6).toPrecision(3)}M`;
  if (number >= 1e4) return `${+(number / 1e3).toPrecision(3)}k`;
  return String(+number.toPrecision(3));
}

function ago(seconds) {
  if (!seconds) return "now";
  return seconds % 60 ? `${seconds} s ago` : `${seconds / 60} min ago`;
}

/**
 * Lines over time. `rows` are {at: milliseconds, values: [number or null, …]}, oldest first;
 * `names` name the lines, `unit` the vertical axis.
 */
export function lines(where, { rows, names, unit, seconds }) {
  const width = Math.max(NARROWEST, where.clientWidth); // so texts are as large as elsewhere
  const now = rows.at(-1)?.at ?? Date.now();
  const x = (at) => LEFT + (1 - (now - at) / (1000 * seconds)) * (width - LEFT - RIGHT);
  const top = roundUp(Math.max(...rows.flatMap(({ values }) => values), 0));
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const latest = rows.at(-1)?.values ?? [];
  const shown = (i) => (latest[i] == null ? "–" : short(latest[i]));
  const summary = names.map((name, i) => `${name} ${shown(i)}`);
  const svg = shape("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`,
    role: "img",
    "aria-label": `${unit} since ${ago(seconds)}; now: ${summary.join(", ")}`,
  });
  for (const part of [0, 0.5, 1]) {
    const level = y(part * top);
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: level, y2: level }));
    svg.append(shape("text", { x: LEFT - 6, y: level + 4, class: "end" }, short(part * top)));
  }
  for (const part of [0, 0.5, 1]) {
    const at = LEFT + part * (width - LEFT - RIGHT);
    const place = ["start", "middle", "end"][2 * part];
    svg.append(shape("text", { x: at, y: HEIGHT - 10, class: place }, ago((1 - part) * seconds)));
  }
  names.forEach((_, i) => {
    const points = rows.filter(({ values }) => values[i] != null);
    if (!points.length) return;
    const places = points.map(({ at, values }) => [x(at).toFixed(1), y(values[i]).toFixed(1)]);
    const path = `M${places.map((place) => place.join(" ")).join("L")}`;
    const [cx, cy] = places.at(-1);
    svg.append(shape("path", { class: `line line-${i}`, d: path }));
    svg.append(shape("circle", { class: `dot line-${i}`, cx, cy, r: 3 }));
  });
  const legend = names.map((name, i) =>
    make("li", {}, make("span", { class: `swatch line-${i}` }), name, " ", bold(shown(i))),
  );
  fill(where, make("p", { class: "unit" }, unit), svg, make("ul", { class: "legend" }, ...legend));
}

/** Bars in a table: rows are {name, values: [number, …]}, and each value has a bar of its own. */
export function bars(where, { rows, names, none }) {
  if (!rows.length) {
    fill(where, hint(none));
    return;
  }
  const top = Math.max(...rows.flatMap(({ values }) => values), 1e-9);
  const heads = ["Subscription", ...names].map((name) => make("th", { scope: "col" }, name));
  const body = rows.map(({ name, values }) => {
    const cells = values.map((value, i) =>
      make("td", {}, bar(value / top, i), make("span", {}, short(value))),
    );
    return make("tr", {}, make("th", { scope: "row" }, code(name)), ...cells);
  });
  const head = make("thead", {}, make("tr", {}, ...heads));
  fill(where, make("table", { class: "bars" }, head, make("tbody", {}, ...body)));
}

function bar(part, i) {
  const frame = { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" };
  const svg = shape("svg", frame);
  const width = Math.max(100 * part, 0.5);
  svg.append(shape("rect", { class: "back", width: 100, height: 10 }));
  svg.append(shape("rect", { class: `bar line-${i}`, width, height: 10 }));
  return svg;
}
