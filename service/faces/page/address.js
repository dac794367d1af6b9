"use strict";

const MOST_KEPT = 2000; // characters of a text in the address, which browsers and chats cut off, and in the history
const AUTOMATIC = "auto";

/** Returns what the address asks for, as in `#en/de/Good%20morning`; `null` if it asks for nothing. */
function linked() {
  const [source, target, ...rest] = location.hash.slice(1).split("/");
  if (!target) return null;
  let text = "";
  try {
    text = decodeURIComponent(rest.join("/"));
  } catch { /* somebody cut it off: the languages are left */ }
  return { source: source === AUTOMATIC ? "" : source, target, text };
}

/** Puts languages and a text into the address, so that the translation can be linked. A server never sees that part. */
function link({ source, target, text }) {
  const shown = text.length <= MOST_KEPT ? text : "";
  const hash = `#${source || AUTOMATIC}/${target}/${encodeURIComponent(shown.toWellFormed?.() ?? shown)}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
}
