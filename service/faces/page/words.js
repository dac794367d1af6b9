"use strict";

/** Returns the position in a JavaScript string of each of its code points, and its end: the server counts code points. */
function positionsOf(text) {
  const positions = [];
  let at = 0;
  for (const character of text) {
    positions.push(at);
    at += character.length;
  }
  positions.push(at);
  return positions;
}

/** The words of a text and of its translation that correspond: marking one marks its counterparts. */
class AlignedWords {
  current = -1; // the number of the word of the translation that the arrow keys are at
  #sides;
  #marked = [];

  /** `source` and `target` are the elements that show the texts. */
  constructor(source, target) {
    this.#sides = { source: { place: source, words: [] }, target: { place: target, words: [] } };
  }

  /** Shows both texts; `alignment` is the server's, and may be empty. */
  show(sourceText, targetText, alignment) {
    this.unmark();
    const found = alignment.map(() => ({}));
    for (const [side, text] of [["source", sourceText], ["target", targetText]]) {
      const positions = positionsOf(text);
      const ranges = alignment.map((span, i) => ({
        start: positions[span[`${side}_start`] ?? 0], end: positions[span[`${side}_end`] ?? 0], links: [found[i]],
      }));
      this.#sides[side].words = AlignedWords.#fill(this.#sides[side].place, text, AlignedWords.#distinct(ranges, text));
      for (const word of this.#sides[side].words) for (const link of word.links) link[side] = word;
    }
  }

  /** Shows the source as it is typed, without words. */
  showSource(text) {
    this.unmark();
    this.current = -1;
    for (const side of Object.values(this.#sides)) side.words = [];
    this.#sides.source.place.textContent = `${text}\u200b`; // a last, empty line has a height, too
  }

  get count() {
    return this.#sides.target.words.length;
  }

  /** Marks a word of one side, by number, and its counterparts; returns the texts of both. */
  mark(side, number) {
    this.unmark();
    const word = this.#sides[side].words[number];
    if (!word) return null;
    const other = side === "source" ? "target" : "source";
    const others = [...new Set(word.links.map((link) => link[other]).filter(Boolean))];
    this.#marked = [word, ...others];
    for (const each of this.#marked) each.element.classList.add("marked");
    return { word: word.element.textContent, others: others.map((each) => each.element.textContent) };
  }

  unmark() {
    for (const each of this.#marked) each.element.classList.remove("marked");
    this.#marked = [];
  }

  /** Returns the number of the word of an element, or at a position of the text; -1 if there is none. */
  numberOf(side, element) {
    return this.#sides[side].words.findIndex((word) => word.element === element);
  }

  numberAt(side, position) {
    return this.#sides[side].words.findIndex((word) => word.start <= position && position <= word.end);
  }

  // Links with the same words on this side share a range; of two that overlap, the first is shown. Punctuation is aligned,
  // too, but nobody looks for it.
  static #distinct(ranges, text) {
    const distinct = [];
    const shown = ranges.filter(({ start, end }) => start < end && /[\p{L}\p{N}]/u.test(text.slice(start, end)));
    for (const range of shown.sort((a, b) => a.start - b.start || a.end - b.end)) {
      const last = distinct.at(-1);
      if (last?.start === range.start && last.end === range.end) last.links.push(...range.links);
      else if (!last || last.end <= range.start) distinct.push({ ...range });
    }
    return distinct;
  }

  static #fill(place, text, ranges) {
    const nodes = [];
    let end = 0;
    const words = ranges.map((range) => {
      const element = Object.assign(document.createElement("span"), { className: "word" });
      element.textContent = text.slice(range.start, range.end);
      nodes.push(text.slice(end, range.start), element);
      end = range.end;
      return { ...range, element };
    });
    place.replaceChildren(...nodes, text.slice(end));
    if (place.id === "mirror") place.append("\u200b");
    return words;
  }
}
