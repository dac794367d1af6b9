"use strict";

const displayNames = new Intl.DisplayNames([LANGUAGE], { type: "language" });

/** Returns a language's name for the reader, or the code where the browser knows none. */
function languageName(code) {
  try {
    return displayNames.of(code.replaceAll("_", "-"));
  } catch {
    return code;
  }
}

/** Returns the names of two languages, of which the source may be empty. */
const pairName = (source, target) => [source, target].filter(Boolean).map(languageName).join(" → ");

/** Which languages are translated into which others. */
class Languages {
  #targets = new Map(); // source -> set of targets

  add(source, target) {
    if (source === target) return;
    if (!this.#targets.has(source)) this.#targets.set(source, new Set());
    this.#targets.get(source).add(target);
  }

  has(source, target) {
    return this.#targets.get(source)?.has(target) ?? false;
  }

  /** Returns codes by name. */
  sources() {
    return Languages.#byName(this.#targets.keys());
  }

  /** Returns codes by name; those of all sources if `source` is empty. */
  targets(source) {
    const all = source ? this.#targets.get(source) ?? [] : [...this.#targets.values()].flatMap((each) => [...each]);
    return Languages.#byName(new Set(all));
  }

  static #byName(codes) {
    return [...codes].sort((a, b) => languageName(a).localeCompare(languageName(b), LANGUAGE));
  }
}
