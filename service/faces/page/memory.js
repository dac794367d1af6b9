"use strict";

/** What this browser keeps for the page, where it allows that. The server is told nothing of it. */
const memory = {
  get(name) {
    try {
      return JSON.parse(localStorage.getItem(`dragoman.${name}`));
    } catch {
      return null;
    }
  },

  set(name, value) {
    try {
      localStorage.setItem(`dragoman.${name}`, JSON.stringify(value));
    } catch { /* the page works without */ }
  },

  forget(name) {
    try {
      localStorage.removeItem(`dragoman.${name}`);
    } catch { /* there was nothing */ }
  },
};
