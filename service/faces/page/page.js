"use strict";

const server = ownServer();
const pair = new Pair();
const words = new AlignedWords($("mirror"), $("result"));
const past = new Past(show);
const text = new TextTab(server, pair, words, past);
const files = new FilesTab(server, pair);
const tabs = new Tabs(tabShown);

function tabShown(name) {
  const isText = name === "text";
  for (const each of [$("html").parentElement, $("facts"), $("history"), $("keys")]) each.hidden = !isText;
  $("error").replaceChildren();
  put("said", "");
  showPrograms();
}

/** Shows the translation of a link, or of the history. */
function show({ source, target, text: given }) {
  const isServed = pair.choose({ source, target });
  tabs.show("text");
  text.replace(given, isServed ? "" : say("link_not_served", { target: languageName(target) }));
}

function showPrograms() {
  if (!$("code").open) return;
  const isText = tabs.current === "text";
  const needsKey = server.key !== "";
  const programs = isText
    ? programsOf(server.path, text.request(), needsKey)
    : programsOfFile(files.fields(), needsKey);
  const copying = (name, program) => button(say("copy"), () => copy(program), { ariaLabel: `${say("copy")}: ${name}` });
  $("programs").replaceChildren(...programs.flatMap(([name, program]) => [
    element("div", { className: "row" }, element("h2", {}, name), copying(name, program)),
    element("pre", { tabIndex: 0, dir: "ltr", role: "group", ariaLabel: name }, program),
  ]));
}

function askForKey() {
  $("key-form").hidden = false;
  $("key").focus();
}

function showFailure(error, asked, id, again) {
  if (error.status === 401) askForKey();
  if (error.status === 401 && !server.key) return;
  const retry = error.status === 401 ? [] : [button(say("try_again"), again)];
  $("error").replaceChildren(element("div", {}, ...failureElements(error, asked, id)), ...retry);
}

$("text").addEventListener("input", () => text.changed());
$("from").addEventListener("change", () => {
  pair.sourceChanged();
  text.changed(0);
  pair.showSwap();
});
$("into").addEventListener("change", () => {
  pair.targetChanged();
  text.changed(0);
  pair.showSwap();
});
$("html").addEventListener("change", () => text.changed(0));
$("glossary").addEventListener("input", () => text.changed());
$("swap").addEventListener("click", () => {
  const translation = text.result;
  const reason = pair.swap();
  if (reason) put("said", reason);
  else text.replace(translation || $("text").value);
});
$("clear").addEventListener("click", () => {
  text.replace("");
  $("text").focus();
});
$("paste").addEventListener("click", async () => {
  const given = await pasted();
  if (given) text.replace(given);
  $("text").focus();
});
$("copy").addEventListener("click", () => copy(text.result));
$("more").addEventListener("click", () => text.showAlternatives());
for (const event of ["input", "change"]) $("form").addEventListener(event, showPrograms);
$("code").addEventListener("toggle", showPrograms);
$("form").addEventListener("submit", (event) => event.preventDefault());
$("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    text.changed(0);
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
// A file that is dropped anywhere is meant for translation: the browser would leave the page and show it.
document.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  if (SETTINGS.endings.length) tabs.show("files");
});
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  if (SETTINGS.endings.length) files.add([...event.dataTransfer.files]);
});
addEventListener("hashchange", () => {
  const wanted = linked();
  if (wanted) show(wanted);
});

// Another language of the page keeps the translation.
for (const locale of document.querySelectorAll("footer a")) {
  locale.addEventListener("click", () => { locale.hash = location.hash; });
}

markWords(words);
$("tabs").hidden = !SETTINGS.endings.length;

async function start() {
  $("error").replaceChildren();
  try {
    pair.learn(await server.languages());
    pair.restore();
  } catch (error) {
    showFailure(error, {}, "", start);
    return;
  }
  const wanted = linked();
  if (wanted) show({ ...wanted, text: wanted.text || $("text").value });
  else text.changed(0);
}

start();
