// Starts the page: views by the part of the address behind #, and who is signed in.

import { key } from "./api.js";
import * as dialogs from "./dialogs.js";
import { byId } from "./dom.js";
import * as stats from "./stats.js";
import * as list from "./list.js";
import * as live from "./live.js";
import * as write from "./write.js";

const VIEWS = ["write", "live", "list", "stats"];

let shown = "";

/** Show the view that the address names. */
function show({ focus }) {
  const name = location.hash.slice(1);
  if (!VIEWS.includes(name) && shown) return; // a link inside of a view
  shown = VIEWS.includes(name) ? name : "write";
  for (const view of VIEWS) {
    byId(view).hidden = view !== shown;
    const link = document.querySelector(`nav a[href="#${view}"]`);
    if (view === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown === "list") list.load();
  stats.watch(shown === "stats");
  if (focus) {
    byId(`${shown}-title`).focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

/** There is another key, or none. */
function keyChanged() {
  const button = byId("key-button");
  button.textContent = key() ? "Signed in" : "Sign in";
  button.classList.toggle("on", Boolean(key()));
  list.reset();
  stats.reset();
  live.connect();
  if (shown === "list") list.load();
  if (key()) write.look();
}

write.start();
live.start();
list.start((id) => {
  location.hash = "write";
  write.choose(id);
});
dialogs.start(keyChanged);
addEventListener("hashchange", () => show({ focus: true }));
show({ focus: false });
keyChanged();
if (!key()) dialogs.askKey();
