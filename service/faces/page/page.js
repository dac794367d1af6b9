"use strict";
(() => {
  const TYPING_MILLISECONDS = 250; // without a key, before a text is translated
  const MOST_MARKED = 10_000; // characters; larger texts have no marked words
  const NUM_HYPOTHESES = 4;
  const $ = (id) => document.getElementById(id);

  const server = ownServer();
  const words = new AlignedWords($("mirror"), $("result"));
  const whole = new Intl.NumberFormat("en");
  let languages = new Languages();
  let detected = ""; // the source language of the translation that is shown, if it was detected
  let isIntoChosen = false; // by the visitor
  let notice = ""; // what was said of the language of the text as it is
  let running = new AbortController(); // the calls for the text as it is
  let timer = 0;
  let current = -1; // the number of the word that the arrow keys are at

  // Text is only inserted as text, never parsed as HTML.
  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function put(id, text) {
    if ($(id).textContent !== text) $(id).textContent = text;
  }

  const tag = (code) => code.replaceAll("_", "-"); // as HTML's lang

  // Not crypto.randomUUID, which pages without TLS lack.
  const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  // ---- Languages ----

  function choose(id, codes, kept = []) {
    const before = $(id).value;
    const options = codes.map((code) => element("option", { value: code }, languageName(code)));
    $(id).replaceChildren(...kept, ...options);
    if (codes.includes(before)) $(id).value = before;
    else if (!kept.length) $(id).value = preferred(codes);
  }

  /** Returns the code that the visitor's browser prefers, else the first one; empty if there is none. */
  function preferred(codes) {
    return navigator.languages.map((code) => code.split("-")[0]).find((code) => codes.includes(code)) ?? codes[0] ?? "";
  }

  const offerTargets = () => choose("into", languages.targets($("from").value));

  async function learnLanguages() {
    languages = await server.languages();
    if (!languages.sources().length) throw new Refusal("No language is translated here: no model is loaded, or not yet.", 0);
    choose("from", languages.sources(), [$("from").options[0]]);
    offerTargets();
    $("text").lang = tag($("from").value);
    showSwap();
  }

  /** Returns the languages after a swap, or why there is none. */
  function swapped() {
    const [source, target] = [$("into").value, $("from").value || detected];
    if (!target) return { reason: "There is no language to swap with yet: none is chosen, and none detected." };
    if (!languages.has(source, target)) {
      return { reason: `No model here translates from ${languageName(source)} into ${languageName(target)}.` };
    }
    return { source, target };
  }

  function showSwap() {
    const { reason } = swapped();
    $("swap").ariaDisabled = String(Boolean(reason));
    $("swap").title = reason ?? "Swap the languages";
  }

  function swap() {
    const { source, target, reason } = swapped();
    if (reason) {
      put("said", reason);
      return;
    }
    const translation = resultText();
    $("from").value = source;
    offerTargets();
    $("into").value = target;
    if (translation) $("text").value = translation;
    changed(0);
  }

  // ---- The translation ----

  const setState = (state) => { $("result").dataset.state = state; };
  const resultText = () => $("result").dataset.state === "empty" ? "" : $("result").textContent;

  function setTools(areThere) {
    for (const id of ["copy", "more"]) $(id).hidden = !areThere;
  }

  function closeAlternatives() {
    $("alternatives").hidden = true;
    $("more").ariaExpanded = "false";
    $("hypotheses").replaceChildren();
  }

  /** Drops what belongs to the text as it was, and translates it as it is after some time. */
  function changed(milliseconds = TYPING_MILLISECONDS) {
    const text = $("text").value;
    clearTimeout(timer);
    running.abort();
    current = -1;
    notice = "";
    words.showSource(text);
    closeAlternatives();
    put("said", "");
    put("count", `${whole.format([...text].length)} ${text.length === 1 ? "character" : "characters"}`);
    $("clear").hidden = !text;
    $("text").lang = tag($("from").value);
    document.body.classList.toggle("markup", $("html").checked);
    if (text.trim()) {
      if (resultText()) setState("old");
      timer = setTimeout(translate, milliseconds);
    } else {
      showNothing();
    }
  }

  function showNothing() {
    $("result").replaceChildren();
    setState("empty");
    setTools(false);
    $("error").replaceChildren();
    for (const id of ["facts", "detected", "spoken"]) put(id, "");
    detected = "";
    showSwap();
  }

  function request() {
    const text = $("text").value;
    const isHtml = $("html").checked;
    return {
      texts: [text],
      source_language_code: $("from").value,
      target_language_code: $("into").value,
      mime_type: isHtml ? "text/html" : "text/plain",
      glossary: $("glossary").value.trim(),
      keep_other_languages: true,
      // In HTML, positions count without the tags.
      return_alignments: !isHtml && text.length <= MOST_MARKED,
    };
  }

  async function translate() {
    clearTimeout(timer);
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const asked = request();
    const id = newId();
    const began = performance.now();
    let hasBegun = false;

    function grows(part) {
      if (!hasBegun) {
        $("result").replaceChildren();
        $("result").lang = tag(asked.target_language_code);
        setState("growing");
      }
      hasBegun = true;
      $("result").append(part);
    }

    $("result").ariaBusy = "true";
    try {
      const answer = await server.translate(asked, { id, signal, grows });
      if (signal.aborted) return;
      showTranslation(asked, answer, { id, milliseconds: performance.now() - began });
    } catch (error) {
      if (signal.aborted) return;
      if (hasBegun || resultText()) setState("old");
      showFailure(error, id, () => translate());
    }
    $("result").ariaBusy = "false";
  }

  function showTranslation(asked, { translation, model, version }, { id, milliseconds }) {
    $("result").lang = tag(asked.target_language_code);
    setState("done");
    words.show(asked.texts[0], translation.text, translation.alignment ?? []);
    $("error").replaceChildren();
    setTools(true);
    detected = translation.detected_language_code ?? "";
    put("detected", detected && (detected === "und" ? "no language detected" : `${languageName(detected)}, detected`));
    $("text").lang = tag(detected || asked.source_language_code);
    const kept = ["target_language", "other_language"].find((flag) => translation.flags?.includes(flag));
    const licence = !kept && server.licences.get(model);
    $("facts").replaceChildren(
      [!kept && `${model} ${version}`.trim(), licence && `licence ${licence}`, `${whole.format(Math.round(milliseconds))} ms`].filter(Boolean).join(" · "),
      " · request ", element("code", {}, id),
    );
    const isCut = translation.finish_reason && translation.finish_reason !== "stop";
    put("said", isCut ? `The translation may be incomplete: it ended by ${translation.finish_reason}.` : notice);
    put("spoken", translation.text);
    showSwap();
    if (kept) goOn(kept, asked.target_language_code);
  }

  /** Says why a text came back unchanged, and has it translated into another language, or proposes that to a visitor who
   * chose this one. */
  function goOn(kept, into) {
    let why = `The text is in ${languageName(into)} already.`;
    if (kept === "other_language") {
      const seems = detected === "und" ? "in a language that is not known" : `in ${languageName(detected)}, which is not translated into ${languageName(into)}`;
      why = `The text seems to be ${seems} here.`;
    }
    const others = languages.targets(detected || into).filter((code) => code !== into);
    const next = preferred(others);
    if (!next) {
      put("said", why);
    } else if (isIntoChosen || notice) {
      const going = element("button", { className: "quiet", type: "button" }, `Translate into ${languageName(next)}`);
      going.addEventListener("click", () => turnTo(next));
      $("said").replaceChildren(why, " ", going);
    } else {
      turnTo(next);
      notice = `${why} It is translated into ${languageName(next)} instead.`;
      put("said", notice);
    }
  }

  function turnTo(into) {
    $("into").value = into;
    changed(0);
    showSwap();
  }

  function showFailure(error, id, again) {
    if (error.status === 401) {
      $("key-form").hidden = false;
      $("key").focus();
    }
    const retry = element("button", { className: "quiet", type: "button" }, "Try again");
    retry.addEventListener("click", again);
    $("error").replaceChildren(
      element("p", {},
        ...(error.code ? [element("strong", {}, error.code), " "] : []), error.message,
        ...(id ? [" ", element("code", {}, `request ${id}`)] : [])),
      ...(error.status === 401 ? [] : [retry]),
    );
  }

  async function showAlternatives() {
    if (!$("alternatives").hidden) {
      closeAlternatives();
      return;
    }
    const { signal } = running;
    const id = newId();
    $("more").ariaExpanded = "true";
    try {
      const asked = { ...request(), return_alignments: false };
      const hypotheses = await server.hypotheses(asked, NUM_HYPOTHESES, { id, signal });
      if (signal.aborted) return;
      const others = [...new Set(hypotheses.map((each) => each.text ?? ""))].filter((text) => text !== resultText());
      $("hypotheses").replaceChildren(...others.map((text, i) => {
        const copying = element("button", { className: "quiet", type: "button", ariaLabel: `Copy alternative ${i + 1}` }, "Copy");
        copying.addEventListener("click", () => copy(text));
        return element("li", {}, element("span", { lang: tag(asked.target_language_code), dir: "auto" }, text), copying);
      }));
      $("alternatives").hidden = !others.length;
      $("more").ariaExpanded = String(others.length > 0);
      put("said", others.length ? `${others.length} other ${others.length === 1 ? "translation" : "translations"}.` : "The model found no other translation.");
    } catch (error) {
      if (signal.aborted) return;
      closeAlternatives();
      showFailure(error, id, () => showAlternatives());
    }
  }

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
        put("said", "The browser does not allow copying here.");
        return;
      }
    }
    put("said", "Copied.");
  }

  // ---- Words that correspond ----

  function leave() {
    words.unmark();
    current = -1;
  }

  /** Marks a word of the translation, and says what it was translated from. */
  function goTo(number) {
    current = Math.min(Math.max(number, 0), words.count - 1);
    const found = words.mark("target", current);
    if (!found) return;
    put("spoken", `${found.word}: ${found.others.join(" ")}`);
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
    const steps = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: words.count - 1 };
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
  const markAtCaret = () => words.mark("source", words.numberAt("source", $("text").selectionStart));
  $("text").addEventListener("click", markAtCaret);
  $("text").addEventListener("keyup", (event) => {
    if (/^(Arrow|Home|End)/.test(event.key)) markAtCaret();
  });

  // ---- What the visitor does ----

  $("text").addEventListener("input", () => changed());
  $("from").addEventListener("change", () => {
    offerTargets();
    changed(0);
    showSwap();
  });
  $("into").addEventListener("change", () => {
    isIntoChosen = true;
    changed(0);
    showSwap();
  });
  $("html").addEventListener("change", () => changed(0));
  $("glossary").addEventListener("input", () => changed());
  $("swap").addEventListener("click", swap);
  $("clear").addEventListener("click", () => {
    $("text").value = "";
    changed();
    $("text").focus();
  });
  $("copy").addEventListener("click", () => copy(resultText()));
  $("more").addEventListener("click", showAlternatives);
  $("form").addEventListener("submit", (event) => event.preventDefault());
  $("form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      changed(0);
    }
  });
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    server.key = $("key").value.trim();
    $("key").value = "";
    $("key-form").hidden = true;
    $("text").focus();
    start();
  });

  async function start() {
    $("error").replaceChildren();
    try {
      await learnLanguages();
    } catch (error) {
      showFailure(error, "", start);
      return;
    }
    changed(0);
  }

  start();
})();
