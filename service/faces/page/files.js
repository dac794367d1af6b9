"use strict";

/** The tab that translates files, one after the other. */
class FilesTab {
  #server;
  #pair;
  #waiting = [];
  #isBusy = false;
  #endings = new Set(SETTINGS.endings);

  constructor(server, pair) {
    [this.#server, this.#pair] = [server, pair];
    const size = sizeOf(SETTINGS.maxFileBytes);
    put("known", say("kinds_of_files", { number: SETTINGS.endings.length, size }));
    put("endings", SETTINGS.endings.join("  "));
    $("file").accept = SETTINGS.endings.join(",");
    $("file").addEventListener("change", () => {
      this.add([...$("file").files]);
      $("file").value = ""; // the same file may be chosen again
    });
    addEventListener("beforeunload", (event) => {
      if (this.#isBusy) event.preventDefault(); // the browser asks whether to leave
    });
    $("drop").addEventListener("dragover", () => $("drop").classList.add("over"));
    for (const end of ["dragleave", "drop"]) $("drop").addEventListener(end, () => $("drop").classList.remove("over"));
  }

  /** Returns the fields of the form that a file is sent in. */
  fields() {
    return {
      source_language_code: this.#pair.source,
      target_language_code: this.#pair.target,
      glossary: $("glossary").value.trim(),
    };
  }

  add(files) {
    for (const file of files) {
      const item = new FileItem(file, (added) => this.#enqueue(added));
      $("files").append(item.place);
      const ending = /\.[^.]*$/.exec(file.name)?.[0].toLowerCase() ?? "";
      if (!this.#endings.has(ending)) item.fail(new Refusal(0, {}, { name: "failed_ending" }));
      else if (file.size > SETTINGS.maxFileBytes) item.fail(new Refusal(0, {}, { name: "failed_too_large" }));
      else this.#enqueue(item);
    }
  }

  #enqueue(item) {
    item.wait(this.fields());
    if (!this.#waiting.includes(item)) this.#waiting.push(item);
    this.#work();
  }

  async #work() {
    if (this.#isBusy) return;
    this.#isBusy = true;
    while (this.#waiting.length) await this.#waiting.shift().translate(this.#server);
    this.#isBusy = false;
  }
}

/** A file in the list: waiting, on its way, translated, failed or cancelled. */
class FileItem {
  #file;
  #fields = {};
  #again;
  #cancelled = new AbortController();
  #state = element("p", { className: "note" });
  #bar = element("progress", { max: 1, hidden: true });
  #tools = element("div", { className: "tools" });
  #rest = element("div"); // notes, or the details of a failure
  #url = "";

  /** `again` is called with this item when the visitor wants another try. */
  constructor(file, again) {
    [this.#file, this.#again] = [file, again];
    this.#bar.ariaLabel = file.name;
    const name = element("p", { className: "name" }, element("bdi", {}, file.name));
    this.place = element("li", {}, element("div", {}, name, this.#state), this.#tools, this.#bar, this.#rest);
  }

  /** Waits for its turn, to be translated as `fields` say, whatever the visitor chooses for others in the meantime. */
  wait(fields) {
    this.#fields = fields;
    this.#cancelled = new AbortController();
    this.#show(say("file_waiting"), [this.#cancelling()]);
  }

  async translate(server) {
    if (this.#cancelled.signal.aborted) return;
    const id = newId();
    const stopWatch = this.#watch();
    try {
      const how = { id, signal: this.#cancelled.signal, progress: (share) => this.#sent(share) };
      this.#showTranslated(await server.translateFile(this.#file, this.#fields, how));
    } catch (error) {
      if (!this.#cancelled.signal.aborted) this.fail(error, id);
    } finally {
      clearInterval(stopWatch);
    }
  }

  fail(error, id = "") {
    const isLasting = ["failed_ending", "failed_too_large"].includes(error.name);
    const again = isLasting ? [] : [this.#retrying()];
    this.#show("", [...again, this.#removing()], ...failureElements(error, this.#fields, id));
    this.place.classList.add("failed");
    put("spoken", `${this.#file.name}: ${inWords(error, this.#fields)}`);
    if (error.status === 401) askForKey();
  }

  /** Counts the seconds of the server's work, of which it tells nothing before the end. */
  #watch() {
    const began = performance.now();
    this.#show(say("file_sending"), [this.#cancelling()]);
    this.#bar.hidden = false;
    this.#bar.value = 0;
    return setInterval(() => {
      if (this.#bar.hasAttribute("value")) return;
      this.#state.textContent = `${say("translating")} ${secondsOf((performance.now() - began) / 1000)}`;
    }, 1000);
  }

  #sent(share) {
    this.#bar.value = share;
    if (share < 1) return;
    this.#bar.removeAttribute("value");
    this.#state.textContent = say("translating");
  }

  #showTranslated({ name, blob, notes, report }) {
    this.#url = URL.createObjectURL(blob);
    const properties = { className: "strong", href: this.#url, download: name, ariaLabel: `${say("download")}: ${name}` };
    const download = element("a", properties, say("download"));
    const rest = [...FileItem.#notes(notes, report), ...FileItem.#placesToCheck(report)];
    const { source_language_code: source, target_language_code: target } = this.#fields;
    const facts = [pairName(source, target), say("texts", { number: report.num_texts ?? 0 }), sizeOf(blob.size)];
    this.#show(facts.join(" · "), [download, this.#removing()], ...rest);
    put("spoken", say("file_translated", { name }));
  }

  /** Returns what was left as it was: what the server says of the file, and how many texts have which fault. */
  static #notes(notes, { flags = {}, finish_reasons: reasons = {} }) {
    const counted = /\d+ texts? (was|were) (flagged|cut off): [^.]*\./g; // as the report has it, too
    const ofFile = notes.replace(counted, "").trim();
    const counts = Object.entries(flags).map(([flag, number]) => [number, `flag_${flag}`]);
    const numCut = Object.values(reasons).reduce((sum, number) => sum + number, 0);
    if (numCut) counts.push([numCut, "flag_cut"]);
    return [
      ...(ofFile ? [element("p", { lang: "en", className: "note" }, ofFile)] : []),
      ...counts.map(([number, reason]) =>
        element("p", { className: "note" }, `${say("texts", { number })}: ${say(reason)}`)),
    ];
  }

  /** Returns a folded list of the texts that a person should look at; the server names the first of many. */
  static #placesToCheck({ texts = [] }) {
    const doubtful = texts.filter(({ flags }) => !flags.every((flag) => flag === "target_language"));
    if (!doubtful.length) return [];
    const list = doubtful.map(({ place, flags, finish_reason: reason }) => {
      const reasons = [...flags, ...(reason === "stop" ? [] : ["cut"])].map((flag) => say(`flag_${flag}`));
      return element("li", {}, element("span", { lang: "en" }, place), `: ${reasons.join(", ")}`);
    });
    const summary = element("summary", {}, say("texts_to_check", { number: doubtful.length }));
    return [element("details", {}, summary, element("ul", {}, ...list))];
  }

  #cancel() {
    this.#cancelled.abort();
    this.#show(say("cancelled"), [this.#retrying(), this.#removing()]);
    put("spoken", say("cancelled"));
  }

  #remove() {
    const next = this.place.nextElementSibling?.querySelector("button") ?? $("file");
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.place.remove();
    next.focus();
  }

  #cancelling() {
    return this.#tool("cancel", () => this.#cancel());
  }

  #retrying() {
    return this.#tool("try_again", () => this.#again(this));
  }

  #removing() {
    return this.#tool("remove", () => this.#remove());
  }

  #tool(name, act) {
    return button(say(name), act, { ariaLabel: `${say(name)}: ${this.#file.name}` });
  }

  /** Shows a state; the keyboard's focus stays within the item when the button that had it goes. */
  #show(state, tools, ...rest) {
    const hadFocus = this.#tools.contains(document.activeElement);
    this.#state.textContent = state;
    this.#bar.hidden = true;
    this.place.classList.remove("failed");
    this.#tools.replaceChildren(...tools);
    this.#rest.replaceChildren(...rest);
    if (hadFocus) tools[0].focus();
  }
}
