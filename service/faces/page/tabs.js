"use strict";

/** The tabs of the page, as WAI-ARIA has them: arrow keys go from one to the other. `shown` is called with its name. */
class Tabs {
  #names = ["text", "files"];

  constructor(shown) {
    this.shown = shown;
    for (const name of this.#names) $(`${name}-tab`).addEventListener("click", () => this.show(name));
    $("tabs").addEventListener("keydown", ({ key }) => {
      const isOther = key === "ArrowLeft" || key === "ArrowRight";
      const name = isOther ? this.#names.find((each) => each !== this.current) : { Home: "text", End: "files" }[key];
      if (!name) return;
      this.show(name);
      $(`${name}-tab`).focus();
    });
  }

  get current() {
    return this.#names.find((name) => !$(`${name}-panel`).hidden);
  }

  show(name) {
    for (const each of this.#names) {
      const isShown = each === name;
      $(`${each}-panel`).hidden = !isShown;
      $(`${each}-tab`).ariaSelected = String(isShown);
      $(`${each}-tab`).tabIndex = isShown ? 0 : -1;
    }
    this.shown(name);
  }
}
