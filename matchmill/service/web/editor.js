// A text area that says what is wrong with its text, and where: underlined in the text, and below
// it with a caret under the place.

import { debounced, fill, hint, make } from "./dom.js";

const MOST_ROWS = 20;
const AROUND = 30; // characters shown before and after a place

export class Editor {
  /**
   * `check(text, signal)` returns null, or a mistake {message, hint, offset, length}, offset in
   * UTF-16 units as text areas count; or {note} to show when all is well.
   */
  constructor(area, says, check, changed = () => {}) {
    this.area = area;
    this.says = says;
    this.mirror = area.parentElement.querySelector(".mirror");
    this.check = check;
    this.changed = changed;
    this.asked = new AbortController();
    this.leastRows = area.rows;
    const later = debounced(250, () => this.look());
    area.addEventListener("input", () => {
      this.draw(null);
      this.grow();
      later();
    });
    area.addEventListener("scroll", () => (this.mirror.scrollTop = area.scrollTop));
    this.draw(null);
    this.grow();
  }

  get text() {
    return this.area.value;
  }

  set text(value) {
    this.area.value = value;
    this.area.dispatchEvent(new Event("input"));
  }

  /** Put a text where the cursor is, and leave the cursor behind it. */
  insert(text) {
    const { selectionStart: start, selectionEnd: end, value } = this.area;
    const before = start && !/[\s(]/.test(value[start - 1]) ? " " : "";
    this.area.setRangeText(before + text, start, end, "end");
    this.area.focus();
    this.area.dispatchEvent(new Event("input"));
  }

  /** Check the text now, and show what was found; true if it is good. */
  async look() {
    this.asked.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    const text = this.text;
    if (!text.trim()) {
      this.show(text, null);
      this.changed(false);
      return false;
    }
    let found;
    try {
      found = await this.check(text, signal);
    } catch (error) {
      if (signal.aborted) return false;
      found = error;
    }
    if (signal.aborted || text !== this.text) return false;
    this.show(text, found);
    const isGood = !found?.message;
    this.changed(isGood);
    return isGood;
  }

  show(text, found) {
    const isBad = Boolean(found?.message);
    this.area.setAttribute("aria-invalid", String(isBad));
    this.says.classList.toggle("bad", isBad);
    this.draw(isBad && found.offset !== undefined ? found : null);
    if (!isBad) {
      fill(this.says, ...(found?.note ? [found.note] : []));
      return;
    }
    const place = found.offset === undefined ? [] : [caret(text, found)];
    const below = found.hint ? [hint(found.hint)] : [];
    fill(this.says, ...place, make("p", { class: "message" }, found.message), ...below);
  }

  /** The same text below the text area's own, where a mistake can be underlined. */
  draw(found) {
    const text = this.text;
    if (!found) {
      fill(this.mirror, `${text}\n`);
    } else {
      const end = Math.min(text.length, found.offset + found.length);
      const marked = text.slice(found.offset, end);
      fill(
        this.mirror,
        text.slice(0, found.offset),
        make("mark", {}, marked.trim() ? marked : ` ${marked}`),
        `${text.slice(end)}\n`,
      );
    }
    this.mirror.scrollTop = this.area.scrollTop;
  }

  /** As high as its text, within limits. */
  grow() {
    const nLines = this.text.split("\n").length;
    this.area.rows = Math.max(this.leastRows, Math.min(nLines, MOST_ROWS));
  }
}

/** The line of a mistake, and a caret under its column. */
function caret(text, { offset, length }) {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const end = text.indexOf("\n", offset);
  const line = text.slice(start, end < 0 ? text.length : end).replaceAll("\t", " ");
  const column = offset - start;
  const from = Math.max(0, column - AROUND);
  const shown = `${from ? "…" : ""}${line.slice(from, column + AROUND)}`;
  const gap = " ".repeat([...line.slice(from, column)].length + (from ? 1 : 0));
  const width = Math.max(1, Math.min(length, line.length - column, AROUND));
  const where = `line ${text.slice(0, offset).split("\n").length}, column ${column + 1}`;
  return make(
    "pre",
    { class: "caret", "aria-label": where },
    `${shown}\n`,
    make("b", {}, `${gap}${"^".repeat(width)}`),
  );
}

/** Offsets that count characters, as Python does, as offsets into a JavaScript text. */
export function unitsOf(text, position) {
  const characters = [...text];
  const units = (n) => characters.slice(0, n).join("").length;
  const offset = units(position.offset);
  return { offset, length: units(position.offset + position.length) - offset || 1 };
}
