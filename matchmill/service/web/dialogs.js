// Dialogs: the key, a question with a ticket, details. Escape closes them, and the browser then
// returns the focus to where it was.

import { forgetTickets, key, post, setKey, ticketOf } from "./api.js";
import { byId, fill, guarded, say } from "./dom.js";
import { ttlSeconds } from "./write.js";

export function start(keyChanged) {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
  }
  startKey(keyChanged);
  byId("ask-dialog").querySelector("form").addEventListener("submit", answer);
}

// -- the key --------------------------------------------------------------------------------------

function startKey(changed) {
  const dialog = byId("key-dialog");
  const form = dialog.querySelector("form");
  const says = dialog.querySelector(".result");
  byId("key-button").addEventListener("click", askKey);
  form.addEventListener("submit", (submit) => {
    submit.preventDefault();
    const before = key();
    guarded(form.querySelector("button.main"), says, async () => {
      const given = form.elements.key.value.trim();
      if (!/^[\x21-\x7e]+$/.test(given)) throw new Error("a key has letters and digits, no spaces");
      setKey(given);
      try {
        await post("/v1/check", { expression: "true" });
      } catch (error) {
        setKey(before);
        if (error.status !== 401) throw error; // whose words are about headers
        throw new Error("this key is not known; it may be revoked, or of another service");
      }
      if (given !== before) forgetTickets();
      dialog.close();
      changed();
    });
  });
  form.querySelector("[data-forget]").addEventListener("click", () => {
    setKey("");
    forgetTickets();
    dialog.close();
    changed();
  });
}

export function askKey() {
  const dialog = byId("key-dialog");
  const form = dialog.querySelector("form");
  form.reset();
  say(dialog.querySelector(".result"));
  form.querySelector("[data-forget]").hidden = !key();
  dialog.showModal();
  form.elements.key.focus();
}

// -- a question about a subscription --------------------------------------------------------------

let asked = null;

/**
 * Ask for a ticket and do something with it. `work({ticket, seconds})` is called when the visitor
 * agrees; what it throws is shown, and the dialog stays.
 */
export function ask({ title, text, id, action, asksTtl, ticketMayBeAbsent, work }) {
  const dialog = byId("ask-dialog");
  const form = dialog.querySelector("form");
  form.reset();
  asked = { work, asksTtl, ticketMayBeAbsent };
  byId("ask-title").textContent = title;
  dialog.querySelector("[data-text]").textContent = text;
  dialog.querySelector("[data-do]").textContent = action;
  dialog.querySelector("[data-ttl]").hidden = !asksTtl;
  form.elements.ticket.value = ticketOf(id);
  say(dialog.querySelector(".result"));
  dialog.showModal();
  (form.elements.ticket.value ? dialog.querySelector("[data-do]") : form.elements.ticket).focus();
}

function answer(submit) {
  submit.preventDefault();
  const dialog = byId("ask-dialog");
  const form = submit.target;
  const { work, asksTtl, ticketMayBeAbsent } = asked;
  guarded(dialog.querySelector("[data-do]"), dialog.querySelector(".result"), async () => {
    const ticket = form.elements.ticket.value.trim();
    if (!ticket && !ticketMayBeAbsent) throw new Error("the subscription's ticket is needed");
    await work({ ticket, seconds: asksTtl ? ttlSeconds(form) : undefined });
    dialog.close();
  });
}

// -- something to show ----------------------------------------------------------------------------

export function show(title, ...children) {
  const dialog = byId("show-dialog");
  byId("show-title").textContent = title;
  fill(dialog.querySelector("[data-body]"), ...children);
  dialog.showModal();
}
