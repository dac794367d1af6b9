"use strict";

// Names of texts, by the `reason`, the `code` and else, as a proxy has neither, the status of an error.
const BY_REASON = { too_long: "failed_too_long", quota: "failed_quota" };
const BY_CODE = {
  UNAUTHENTICATED: "failed_key",
  PERMISSION_DENIED: "failed_forbidden",
  RESOURCE_EXHAUSTED: "failed_busy",
  UNAVAILABLE: "failed_not_ready",
  DEADLINE_EXCEEDED: "failed_slow",
};
const BY_STATUS = {
  413: "failed_too_large",
  429: "failed_busy",
  502: "no_answer",
  503: "failed_not_ready",
  504: "failed_slow",
};

/** Returns why a call failed, in a reader's words; `asked` is what was sent. */
function inWords(refusal, asked = {}) {
  const { source_language_code: source = "", target_language_code: target = "", glossary = "" } = asked;
  const values = { glossary, source: source && languageName(source), target: target && languageName(target) };
  return say(nameOfFailure(refusal, asked), values);
}

function nameOfFailure({ name, status, code, reason, field, advice }, { source_language_code: source, glossary }) {
  if (name) return name;
  if (reason in BY_REASON) return BY_REASON[reason];
  if (field === "file") return advice.includes("source_language_code") ? "failed_file_language" : "failed_file";
  if (code === "NOT_FOUND" && field.endsWith("language_code")) return source ? "failed_pair" : "failed_target";
  if (code === "NOT_FOUND" && glossary) return "failed_glossary";
  return BY_CODE[code] ?? BY_STATUS[status] ?? "failed";
}

/** Returns the elements that tell of a failure: in words, and folded what a programmer or operator wants to know. */
function failureElements(refusal, asked, id) {
  const details = [refusal.code, refusal.message].filter(Boolean).join(": ");
  const more = element("details", {},
    element("summary", {}, say("details")),
    ...(details ? [element("p", { lang: "en" }, details)] : []),
    element("p", {}, `${say("request")} `, element("code", {}, id)),
  );
  const wait = refusal.retrySeconds > 1 ? ` ${say("try_again_in", { time: secondsOf(refusal.retrySeconds) })}` : "";
  return [element("p", {}, inWords(refusal, asked) + wait), ...(id && refusal.status ? [more] : [])];
}
