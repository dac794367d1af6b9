"use strict";

/** The two languages that the visitor translates from and into. */
class Pair {
  /** Set once the visitor chose the target, now or at the last visit: it then stays. */
  isTargetChosen = false;
  languages = new Languages();
  detected = ""; // the source language of the translation that is shown, if it was detected

  get source() {
    return $("from").value;
  }

  get target() {
    return $("into").value;
  }

  /** Offers what the server translates. */
  learn(languages) {
    this.languages = languages;
    if (!languages.sources().length) throw new Refusal(0, {}, { name: "no_languages" });
    Pair.#offer("from", languages.sources(), [$("from").options[0]]);
    this.#offerTargets();
  }

  /** Chooses the languages of the last visit. */
  restore() {
    const before = memory.get("languages");
    if (before && this.choose(before)) this.isTargetChosen = before.isTargetChosen;
  }

  /** Chooses both languages; returns whether they are served. */
  choose({ source, target }) {
    const isServed = source ? this.languages.has(source, target) : this.languages.targets("").includes(target);
    if (!isServed) return false;
    $("from").value = source;
    this.#offerTargets();
    $("into").value = target;
    return true;
  }

  sourceChanged() {
    this.#offerTargets();
    this.#keep();
  }

  targetChanged() {
    this.isTargetChosen = true;
    this.#keep();
  }

  #keep() {
    memory.set("languages", { source: this.source, target: this.target, isTargetChosen: this.isTargetChosen });
  }

  /** Returns the languages after a swap, or why there is none. */
  swapped() {
    const [source, target] = [this.target, this.source || this.detected];
    if (!target || target === "und") return { reason: say("no_language_to_swap") };
    if (!this.languages.has(source, target)) {
      return { reason: say("no_model_swaps", { source: languageName(source), target: languageName(target) }) };
    }
    return { source, target };
  }

  /** Swaps the languages; returns why it does not, or nothing. */
  swap() {
    const { source, target, reason } = this.swapped();
    if (!reason) {
      this.choose({ source, target });
      this.targetChanged();
    }
    return reason;
  }

  showSwap() {
    const { reason } = this.swapped();
    $("swap").ariaDisabled = String(Boolean(reason));
    $("swap").title = reason ?? say("swap");
  }

  /** Returns another language that a text of `source` can be translated into, the browser's if it can; or nothing. */
  next(source) {
    return preferred(this.languages.targets(source).filter((code) => code !== this.target));
  }

  #offerTargets() {
    Pair.#offer("into", this.languages.targets(this.source));
  }

  static #offer(id, codes, kept = []) {
    const before = $(id).value;
    $(id).replaceChildren(...kept, ...codes.map((code) => element("option", { value: code }, languageName(code))));
    if (codes.includes(before)) $(id).value = before;
    else if (!kept.length) $(id).value = preferred(codes);
  }
}

/** Returns the code that the visitor's browser prefers, else the first one; empty if there is none. */
function preferred(codes) {
  return navigator.languages.map((code) => code.split("-")[0]).find((code) => codes.includes(code)) ?? codes[0] ?? "";
}
