// Requests to the service. The key is in sessionStorage and goes into a header, never into a URL;
// tickets are kept in memory only, until the page is closed.

import { parse } from "./exact_json.js";

const KEY = "matchmill.key";
const tickets = new Map();

export class ServiceError extends Error {
  constructor(status, { detail, code, hint, position }) {
    super(detail);
    Object.assign(this, { status, code, hint, position });
  }
}

export const key = () => sessionStorage.getItem(KEY) ?? "";
export const setKey = (text) =>
  text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY);

export const remember = (id, ticket) => tickets.set(id, ticket);
export const ticketOf = (id) => tickets.get(id) ?? "";
export const forgetTickets = () => tickets.clear();

/** The path of one subscription. */
export const pathOf = (id) => `/v1/subscriptions/${encodeURIComponent(id)}`;

/** The headers that authenticate a request: a ticket if one is given, else the key. */
function headers(ticket) {
  if (ticket) return { "Matchmill-Ticket": ticket };
  return key() ? { Authorization: `Bearer ${key()}` } : {};
}

/** Send a request and return the response; ServiceError if it is an error. */
export async function open(method, path, { body, ticket, signal, more } = {}) {
  const options = { method, headers: { ...headers(ticket), ...more }, signal, cache: "no-store" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const detail = "the service does not respond";
    const hint = "it may be restarting, or the network is down; try again";
    throw new ServiceError(0, { code: "unreachable", detail, hint });
  }
  if (response.ok) return response;
  throw await problem(response);
}

async function problem(response) {
  const text = await response.text();
  try {
    return new ServiceError(response.status, parse(text));
  } catch {
    const detail = `the response was ${response.status} ${response.statusText}`;
    return new ServiceError(response.status, { code: "unknown", detail, hint: "" });
  }
}

/** Send a request and return the value of the response. */
export async function call(method, path, options) {
  const text = await (await open(method, path, options)).text();
  return text ? parse(text) : null;
}

export const post = (path, body, options) => call("POST", path, { body, ...options });
export const get = (path, options) => call("GET", path, options);

/** A body with an event, which is sent exactly as it was typed. */
export const withEvent = (eventText, more = {}) =>
  `{"event":${eventText}${Object.entries(more)
    .map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join("")}}`;
