"use strict";

const PARAGRAPHS = { segment: (text) => (text.match(/[^\n]+\n*|\n+/g) ?? []).map((segment) => ({ segment })) };

/** Returns a text in parts of at most `most` UTF-16 units, split where it does least harm: at paragraphs, then at
 * sentences, then at words. */
function partsOf(text, most, source = "") {
  const grain = (granularity) => () => new Intl.Segmenter(tag(source) || undefined, { granularity });
  return split(text, most, [() => PARAGRAPHS, ...["sentence", "word", "grapheme"].map(grain)]);
}

function split(text, most, [segmenter, ...finer]) {
  if (text.length <= most || !segmenter) return [text];
  const parts = [];
  for (const { segment } of segmenter().segment(text)) {
    if (parts.length && parts.at(-1).length + segment.length <= most) parts[parts.length - 1] += segment;
    else parts.push(...split(segment, most, finer));
  }
  return parts;
}

/** Returns a text between the white space before and after it. */
function withinSpaces(text) {
  const core = text.trim();
  const start = text.indexOf(core);
  return [text.slice(0, start), core, text.slice(start + core.length)];
}

/** Translates a text that may be longer than a call's: its parts are sent one by one. `progress` is called with the
 * number of each, `grows` with each piece of the translation. */
async function translateInParts(server, request, { progress, grows, ...how }) {
  const [text] = request.texts;
  const isWhole = request.mime_type === "text/html"; // of which no part is HTML by itself
  const parts = isWhole ? [text] : partsOf(text, SETTINGS.maxCharacters, request.source_language_code);
  if (parts.length === 1) return server.translate(request, { grows, ...how });
  const asked = { ...request, return_alignments: false };
  const pieces = [];
  const answers = [];
  const add = (piece) => pieces.push(piece) && grows(piece);
  for (const [i, part] of parts.entries()) {
    const [before, core, after] = withinSpaces(part);
    progress(i + 1, parts.length);
    if (before) add(before);
    if (core) {
      const answer = await server.translate({ ...asked, texts: [core] }, { grows, ...how });
      if (server.streams) pieces.push(answer.translation.text);
      else add(answer.translation.text);
      answers.push(answer);
      asked.source_language_code ||= languageOf(answer.translation);
    }
    if (after) add(after);
  }
  return { ...answers[0], translation: joined(answers.map(({ translation }) => translation), pieces.join("")) };
}

/** Returns the language that a part was translated from, in which the others will be, too; empty if none was found. */
function languageOf({ detected_language_code: code = "", flags = [] }) {
  return code === "und" || flags.includes("target_language") || flags.includes("other_language") ? "" : code;
}

function joined(translations, text) {
  const [first] = translations;
  const flags = (first.flags ?? []).filter((flag) => translations.every((each) => each.flags?.includes(flag)));
  const cut = translations.find((each) => each.finish_reason !== "stop");
  return { ...first, text, flags, finish_reason: (cut ?? first).finish_reason };
}
