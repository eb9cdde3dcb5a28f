// Small helpers to make elements. Text goes in by textContent alone, so nothing that a server or a
// visitor sends can become markup.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** A new element: `make("li", {class: "x", onclick: f}, "text", child)`. */
export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

export const code = (text) => make("code", {}, text);
export const bold = (text) => make("b", {}, text);
export const line = (...children) => make("p", {}, ...children);
export const hint = (...children) => make("p", { class: "hint" }, ...children);

/** Replace what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children);
}

/** Show the result of a request, in an element of class `result`. */
export function say(element, ...children) {
  element.classList.remove("bad");
  fill(element, ...children);
}

/** Show an error: the message, and the hint below it. */
export function complain(element, error) {
  element.classList.add("bad");
  const below = error.hint ? [hint(error.hint)] : [];
  fill(element, line(error.message || String(error)), ...below);
}

/** Run what a button starts; it is disabled until then, and `where` shows an error. */
export async function guarded(button, where, work) {
  if (button.disabled) return;
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    complain(where, error);
  } finally {
    button.disabled = false;
    if (document.activeElement === document.body) button.focus();
  }
}

/** Call `work` after a pause in which it was not asked for again. */
export function debounced(milliseconds, work) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), milliseconds);
  };
}

/** A secret to copy: shown, selected on focus, copied by a button. */
export function secret(label, text) {
  const field = make("input", { readonly: true, value: text, class: "secret" });
  field.addEventListener("focus", () => field.select());
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without TLS a browser does not allow access to the clipboard.
      field.focus();
      button.textContent = "Press Ctrl+C";
    }
  });
  return make("label", { class: "wide" }, label, make("span", { class: "copy" }, field, button));
}
