// Server-sent events over fetch: EventSource cannot send headers, and secrets belong there.

import { open } from "./api.js";
import { parse } from "./exact_json.js";

const LONGEST_WAIT = 5_000;

/**
 * Read a stream until it is closed, opening it again when it breaks.
 *
 * `on.event(name, value, id)` gets every event, `on.state(text)` what the connection does. Returns
 * a function that closes it. An error that a retry cannot correct ends it: `on.failed(error)`.
 */
export function follow(path, { ticket, on }) {
  const stop = new AbortController();
  run(path, ticket, on, stop.signal);
  return () => stop.abort();
}

async function run(path, ticket, on, signal) {
  let lastId = "";
  let wait = 1_000;
  while (!signal.aborted) {
    try {
      const more = { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
      const response = await open("GET", path, { ticket, signal, more });
      on.state("connected");
      wait = 1_000;
      for await (const { name, data, id } of events(response.body)) {
        if (id) lastId = id;
        on.event(name, parse(data), id);
        if (name === "end") return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status && error.status < 500 && error.status !== 429) {
        on.failed(error);
        return;
      }
    }
    if (signal.aborted) return;
    on.state("connecting again …");
    await pause(wait, signal);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** The events of a body. Comments, which keep the line open, are left out. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = read(block);
      if (event.data) yield event;
    }
  }
}

function read(block) {
  const found = { name: "message", data: "", id: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const field = line.slice(0, Math.max(colon, 0));
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") found.data += (found.data && "\n") + value;
    else if (field === "event") found.name = value;
    else if (field === "id") found.id = value;
  }
  return found;
}
