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
    const others = this.#entries.filter((each, i) => each.text !== entry.text && !(i === 0 && entry.text.startsWith(each.text)));
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
    const languages = [source && languageName(source), languageName(target)].filter(Boolean).join(" → ");
    const shown = button("", () => this.open(entry), { className: "entry" });
    shown.append(
      element("span", { className: "note" }, languages),
      element("span", { lang: tag(source), dir: "auto" }, text),
      element("span", { lang: tag(target), dir: "auto" }, translation),
    );
    return shown;
  }
}
