"use strict";

const TYPING_MILLISECONDS = 250; // without a key, before a text is translated
const BUSY_MILLISECONDS = 500; // without an answer, before something moves
const MOST_MARKED = 10_000; // characters; larger texts have no marked words
const NUM_HYPOTHESES = 4;
const NEAR = 0.8; // of the characters of a call, from which on their limit is shown

/** The tab that translates a text while it is typed. */
class TextTab {
  #server;
  #pair;
  #words;
  #past;
  #notice = ""; // what was said of the language of the text as it is
  #running = new AbortController(); // the calls for the text as it is
  #timer = 0;
  #busyTimer = 0;

  constructor(server, pair, words, past) {
    [this.#server, this.#pair, this.#words, this.#past] = [server, pair, words, past];
  }

  get result() {
    return $("result").dataset.state === "empty" ? "" : $("result").textContent;
  }

  /** Returns what is sent for the text, without what only this page needs. */
  request() {
    return {
      texts: [$("text").value],
      source_language_code: this.#pair.source,
      target_language_code: this.#pair.target,
      mime_type: $("html").checked ? "text/html" : "text/plain",
      glossary: $("glossary").value.trim(),
      keep_other_languages: true,
    };
  }

  /** Replaces the text, and translates it at once; `notice` is said of it. */
  replace(text, notice = "") {
    $("text").value = text;
    this.changed(0);
    this.#notice = notice;
    put("said", notice);
  }

  /** Drops what belongs to the text as it was, and translates it as it is after some time. */
  changed(milliseconds = TYPING_MILLISECONDS) {
    const text = $("text").value;
    clearTimeout(this.#timer);
    this.#abort();
    this.#notice = "";
    this.#words.showSource(text);
    this.closeAlternatives();
    put("said", "");
    this.#showCount(text);
    $("clear").hidden = !text;
    $("paste").hidden = Boolean(text) || !canPaste;
    $("text").lang = tag(this.#pair.source);
    document.body.classList.toggle("markup", $("html").checked);
    if (text.trim()) {
      if (this.result) TextTab.#setState("old");
      this.#timer = setTimeout(() => this.translate(), milliseconds);
    } else {
      this.#showNothing();
    }
  }

  #showCount(text) {
    const most = SETTINGS.maxCharacters;
    const number = [...text].length;
    const isWhole = number <= most || $("html").checked;
    if (!isWhole) put("count", say("characters_in_parts", { number, parts: partsOf(text, most).length }));
    else if (number > NEAR * most) put("count", say("characters_of", { number, most }));
    else put("count", say("characters", { number }));
    $("count").classList.toggle("beyond", isWhole && number > most);
  }

  #abort() {
    this.#running.abort();
    this.#showIdle();
  }

  #showIdle() {
    clearTimeout(this.#busyTimer);
    $("busy").hidden = true;
    put("progress", "");
    $("result").ariaBusy = "false";
  }

  #showNothing() {
    $("result").replaceChildren();
    TextTab.#setState("empty");
    TextTab.#setTools(false);
    $("error").replaceChildren();
    for (const id of ["facts", "detected", "spoken"]) put(id, "");
    this.#pair.detected = "";
    this.#pair.showSwap();
    link({ source: this.#pair.source, target: this.#pair.target, text: "" });
  }

  static #setState(state) {
    $("result").dataset.state = state;
  }

  static #setTools(areThere) {
    for (const id of ["copy", "more"]) $(id).hidden = !areThere;
  }

  async translate() {
    clearTimeout(this.#timer);
    this.#abort();
    this.#running = new AbortController();
    const { signal } = this.#running;
    const asked = this.request();
    const [text] = asked.texts;
    // In HTML, positions count without the tags.
    asked.return_alignments = asked.mime_type === "text/plain" && text.length <= MOST_MARKED;
    const id = newId();
    const began = performance.now();
    let hasBegun = false;

    const grows = (part) => {
      if (signal.aborted || !part) return;
      if (!hasBegun) {
        $("result").replaceChildren();
        $("result").lang = tag(asked.target_language_code);
        TextTab.#setState("growing");
        $("busy").hidden = true;
        clearTimeout(this.#busyTimer);
      }
      hasBegun = true;
      $("result").append(part);
    };
    const progress = (number, parts) => put("progress", say("part_of", { number, parts }));

    $("result").ariaBusy = "true";
    this.#busyTimer = setTimeout(() => this.#showBusy(), BUSY_MILLISECONDS);
    try {
      const answer = await translateInParts(this.#server, asked, { id, signal, grows, progress });
      if (signal.aborted) return;
      this.#showIdle();
      this.#showTranslation(asked, answer, performance.now() - began);
    } catch (error) {
      if (signal.aborted) return;
      this.#showIdle();
      if (hasBegun || this.result) TextTab.#setState("old");
      showFailure(error, asked, id, () => this.translate());
    }
  }

  #showBusy() {
    $("busy").hidden = false;
    if (!$("progress").textContent) put("progress", say("translating"));
    put("spoken", say("translating"));
  }

  #showTranslation(asked, { translation, model, version }, milliseconds) {
    const [text] = asked.texts;
    const detected = translation.detected_language_code ?? "";
    const kept = ["target_language", "other_language"].find((flag) => translation.flags?.includes(flag));
    $("result").lang = tag(asked.target_language_code);
    TextTab.#setState("done");
    this.#words.show(text, translation.text, translation.alignment ?? []);
    $("error").replaceChildren();
    TextTab.#setTools(true);
    $("more").hidden = text.length > SETTINGS.maxCharacters;
    this.#pair.detected = detected;
    const found = detected === "und" ? "no_language_detected" : "detected";
    put("detected", detected && say(found, { language: languageName(detected) }));
    $("text").lang = tag(detected || asked.source_language_code);
    this.#showFacts(kept ? "" : model, version, milliseconds);
    const isCut = translation.finish_reason && translation.finish_reason !== "stop";
    put("said", isCut ? say("incomplete") : this.#notice);
    put("spoken", translation.text);
    this.#pair.showSwap();
    const entry = { source: asked.source_language_code, target: asked.target_language_code, text };
    link(entry);
    if (kept) this.#goOn(kept);
    else this.#past.add({ ...entry, translation: translation.text });
  }

  #showFacts(model, version, milliseconds) {
    const licence = this.#server.licences.get(model);
    put("facts", [
      model && say("model", { model: `${model} ${version}`.trim() }),
      licence && say("licence", { licence }),
      say("milliseconds", { number: Math.round(milliseconds) }),
    ].filter(Boolean).join(" · "));
  }

  /** Says why a text came back unchanged, and has it translated into another language, or proposes that to a visitor
   * who chose this one. */
  #goOn(kept) {
    const { detected, target } = this.#pair;
    const names = { language: detected && languageName(detected), target: languageName(target) };
    const isUnknown = !detected || detected === "und";
    const why = kept === "target_language" ? say("already_in", { language: names.target })
      : isUnknown ? say("seems_unknown") : say("seems_to_be_in", names);
    const next = this.#pair.next(kept === "target_language" ? detected || target : detected);
    if (!next) {
      put("said", why);
    } else if (this.#pair.isTargetChosen || this.#notice) {
      const going = button(say("translate_into_language", { language: languageName(next) }), () => this.#turnTo(next));
      $("said").replaceChildren(why, " ", going);
    } else {
      this.#turnTo(next);
      this.#notice = `${why} ${say("instead_into", { language: languageName(next) })}`;
      put("said", this.#notice);
    }
  }

  #turnTo(target) {
    $("into").value = target;
    this.changed(0);
    this.#pair.showSwap();
  }

  closeAlternatives() {
    $("alternatives").hidden = true;
    $("more").ariaExpanded = "false";
    $("hypotheses").replaceChildren();
  }

  async showAlternatives() {
    if (!$("alternatives").hidden) {
      this.closeAlternatives();
      return;
    }
    const { signal } = this.#running;
    const id = newId();
    const asked = this.request();
    $("more").ariaExpanded = "true";
    try {
      const hypotheses = await this.#server.hypotheses(asked, NUM_HYPOTHESES, { id, signal });
      if (signal.aborted) return;
      const others = [...new Set(hypotheses.map((each) => each.text ?? ""))].filter((text) => text !== this.result);
      $("hypotheses").replaceChildren(...others.map((text, i) => element("li", {},
        element("span", { lang: tag(asked.target_language_code), dir: "auto" }, text),
        button(say("copy"), () => copy(text), { ariaLabel: say("copy_alternative", { number: i + 1 }) }),
      )));
      $("alternatives").hidden = !others.length;
      $("more").ariaExpanded = String(others.length > 0);
      put("said", others.length ? say("other_translations", { number: others.length }) : say("no_other_translation"));
    } catch (error) {
      if (signal.aborted) return;
      this.closeAlternatives();
      showFailure(error, asked, id, () => this.showAlternatives());
    }
  }
}
