"use strict";

/** Copies a text, and says whether that worked. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS, pages of other machines have no clipboard; an older call still works.
    const place = element("textarea", { value: text, className: "unseen" });
    const before = document.activeElement;
    document.body.append(place);
    place.select();
    const isCopied = document.execCommand("copy");
    place.remove();
    before?.focus();
    if (!isCopied) {
      put("said", say("not_copied"));
      return;
    }
  }
  put("said", say("copied"));
}

const canPaste = Boolean(navigator.clipboard?.readText);

/** Returns what the clipboard has; empty if the visitor does not allow that. */
async function pasted() {
  try {
    return await navigator.clipboard.readText();
  } catch {
    put("said", say("not_pasted"));
    return "";
  }
}
