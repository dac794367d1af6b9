"use strict";

const $ = (id) => document.getElementById(id);

/** Returns a new element. Text is only inserted as text, never parsed as HTML. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function button(text, act, properties = {}) {
  const made = element("button", { type: "button", className: "quiet", ...properties }, text);
  made.addEventListener("click", act);
  return made;
}

// A status that is the same is not said again.
function put(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

const tag = (code) => code.replaceAll("_", "-"); // as HTML's lang

// Not crypto.randomUUID, which pages without TLS lack.
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
