// JSON without loss and with positions. JavaScript's numbers are doubles: an id of 9007199254740993
// would silently become another one. So whole numbers beyond them are kept as BigInt, and an event
// that was typed is sent as it was typed.

/** The value of a text that a server sent. */
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    const isLarge = typeof value === "number" && !Number.isSafeInteger(value);
    return isLarge && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
  });
}

/** A value as text, on one line or indented. */
export function print(value, indent = 0) {
  return write(value, indent, "");
}

function write(value, indent, margin) {
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const isList = Array.isArray(value);
  const inner = margin + " ".repeat(indent);
  const parts = isList
    ? value.map((one) => write(one, indent, inner))
    : Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${write(v, indent, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  if (!parts.length) return open + close;
  if (!indent || isList) return open + parts.join(", ") + close;
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}`;
}

/** Where a text stops being a JSON object: null, or {message, hint, offset, length}. */
export function mistake(text) {
  try {
    new Reader(text).document();
    return null;
  } catch (found) {
    if (found instanceof Mistake) return found;
    throw found;
  }
}

class Mistake extends Error {
  constructor(message, offset, hint = "", length = 1) {
    super(message);
    Object.assign(this, { offset, hint, length });
  }
}

const NUMBER = /-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\r\n]*/y;
const WORD = /[A-Za-z_][A-Za-z_0-9]*/y;
const DEEPEST = 200;

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  document() {
    this.space();
    if (this.text[this.at] !== "{") {
      throw new Mistake("an event is an object", this.at, 'for example {"price": 590}');
    }
    this.value();
    if (this.at < this.text.length) {
      throw new Mistake("the event has ended here, and something follows", this.at);
    }
  }

  /** Take what a sticky pattern finds here, or null. */
  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found && found[0];
  }

  space() {
    this.take(SPACE);
  }

  value() {
    this.space();
    const sign = this.text[this.at];
    if (sign === "{" || sign === "[") this.nested(sign);
    else if (sign === '"') this.string("text");
    else if (this.take(NUMBER) === null) this.word();
    this.space();
  }

  nested(open) {
    this.depth += 1;
    if (this.depth > DEEPEST) throw new Mistake("this is nested too deeply", this.at);
    const close = open === "{" ? "}" : "]";
    const names = new Set();
    this.at += 1;
    this.space();
    if (this.text[this.at] !== close) {
      do {
        if (open === "{") this.name(names);
        this.value();
      } while (this.comma(close));
    } else {
      this.at += 1;
    }
    this.depth -= 1;
  }

  /** True after a comma, false after the end. */
  comma(close) {
    const sign = this.text[this.at];
    if (sign !== "," && sign !== close) {
      throw new Mistake(`a comma or ${close} is expected`, this.at);
    }
    this.at += 1;
    this.space();
    if (sign === "," && this.text[this.at] === close) {
      throw new Mistake("there is a comma too many before this", this.at);
    }
    return sign === ",";
  }

  name(names) {
    const start = this.at;
    if (this.text[start] !== '"') {
      throw new Mistake("a name in double quotes is expected", start, '"price": 590');
    }
    const name = JSON.parse(this.string("name"));
    if (names.has(name)) {
      throw new Mistake("this name is given twice", start, "keep one of them", this.at - start);
    }
    names.add(name);
    this.space();
    if (this.text[this.at] !== ":") throw new Mistake("a colon is expected after a name", this.at);
    this.at += 1;
  }

  string(what) {
    const found = this.take(STRING);
    if (found === null) {
      const hint = "close it with a double quote; a backslash is written \\\\";
      throw new Mistake(`this ${what} has no end, or an escape that JSON lacks`, this.at, hint);
    }
    return found;
  }

  word() {
    const start = this.at;
    const word = this.take(WORD);
    if (word === "true" || word === "false" || word === "null") return;
    const hint = this.text[start] === "'" || word ? 'texts stand in double quotes: "JFK"' : "";
    throw new Mistake("a value is expected", start, hint, word?.length ?? 1);
  }
}
