"use strict";

const MOST_PAST = 20;

/** The latest translations, kept in this browser if the visitor wants that; `open` shows one again. */
class Past {
  #entries;

  constructor(open) {
    this.open = open;
    this.#entries = memory.get("history") ?? [];
    $("keeps").checked = memory.get("history") !== null;
    $("keeps").addEventListener("change", () => this.#switch());
    $("forget").addEventListener("click", () => this.#replace([]));
    this.#show();
  }

  add(entry) {
    const isKept = $("keeps").checked && entry.text.length <= MOST_KEPT;
    if (!isKept) return;
    // A text that grew while it was typed is one entry.
    const isGrown = this.#entries.length > 0 && entry.text.startsWith(this.#entries[0].text);
    const others = this.#entries.slice(isGrown ? 1 : 0).filter((each) => each.text !== entry.text);
    this.#replace([entry, ...others].slice(0, MOST_PAST));
  }

  #switch() {
    if ($("keeps").checked) {
      this.#replace([]);
    } else {
      this.#entries = [];
      memory.forget("history");
      this.#show();
    }
  }

  #replace(entries) {
    this.#entries = entries;
    memory.set("history", entries);
    this.#show();
  }

  #show() {
    $("forget").hidden = !this.#entries.length;
    $("past").replaceChildren(...this.#entries.map((entry) => element("li", {}, this.#entryButton(entry))));
  }

  #entryButton(entry) {
    const { text, translation, source, target } = entry;
    const shown = button("", () => this.open(entry), { className: "entry" });
    shown.append(
      element("span", { className: "note" }, pairName(source, target)),
      element("span", { lang: tag(source), dir: "auto" }, text),
      element("span", { lang: tag(target), dir: "auto" }, translation),
    );
    return shown;
  }
}
