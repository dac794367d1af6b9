"use strict";

const LANGUAGE = document.documentElement.lang; // of the page
const wholeNumbers = new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: 0 });
const pluralRules = new Intl.PluralRules(LANGUAGE);

/** Returns a text of the page in the reader's language, with `values` in their places; `number` decides on its plural form. */
function say(name, values = {}) {
  const { locale } = SETTINGS;
  const text = locale[name] ?? locale[`${name}_${pluralRules.select(values.number)}`] ?? locale[`${name}_other`];
  return text.replace(/\{(\w+)\}/g, (_, key) => typeof values[key] === "number" ? wholeNumbers.format(values[key]) : values[key]);
}

/** Returns a number of bytes as people read it. */
function sizeOf(bytes) {
  const isLarge = bytes >= 2 ** 20;
  const format = { style: "unit", unit: isLarge ? "megabyte" : "kilobyte", maximumFractionDigits: bytes >= 10 * 2 ** 20 || !isLarge ? 0 : 1 };
  return new Intl.NumberFormat(LANGUAGE, format).format(isLarge ? bytes / 2 ** 20 : Math.ceil(bytes / 2 ** 10));
}

function secondsOf(seconds) {
  return new Intl.NumberFormat(LANGUAGE, { style: "unit", unit: "second", maximumFractionDigits: 0 }).format(seconds);
}
