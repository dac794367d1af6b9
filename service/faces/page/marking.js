"use strict";

/** Marks the words of a text and of its translation that correspond, by pointer, keys and caret. */
function markWords(words) {
  function leave() {
    words.unmark();
    words.current = -1;
  }

  /** Marks a word of the translation, and says what it was translated from. */
  function goTo(number) {
    words.current = Math.min(Math.max(number, 0), words.count - 1);
    const found = words.mark("target", words.current);
    if (found) put("spoken", `${found.word}: ${found.others.join(" ")}`);
  }

  function markAtCaret() {
    words.mark("source", words.numberAt("source", $("text").selectionStart));
  }

  $("result").addEventListener("pointerover", (event) => {
    const number = words.numberOf("target", event.target);
    if (number >= 0) words.mark("target", number);
  });
  $("result").addEventListener("pointerleave", leave);
  $("result").addEventListener("click", (event) => {
    const number = words.numberOf("target", event.target);
    if (number >= 0) goTo(number);
  });
  $("result").addEventListener("blur", leave);
  $("result").addEventListener("keydown", (event) => {
    const steps = { ArrowRight: words.current + 1, ArrowLeft: words.current - 1, Home: 0, End: words.count - 1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps && words.count) {
      goTo(steps[event.key]);
      event.preventDefault();
    } else if (event.key === "Escape") {
      leave();
    }
  });
  // The text box covers the mirror, whose words are what can be found by place.
  $("text").addEventListener("pointermove", (event) => {
    const under = document.elementsFromPoint(event.clientX, event.clientY);
    const number = words.numberOf("source", under.find((each) => each.className.includes?.("word")));
    if (number >= 0) words.mark("source", number);
    else words.unmark();
  });
  $("text").addEventListener("pointerleave", leave);
  $("text").addEventListener("blur", leave);
  $("text").addEventListener("click", markAtCaret);
  $("text").addEventListener("keyup", (event) => {
    if (/^(Arrow|Home|End)/.test(event.key)) markAtCaret();
  });
}
