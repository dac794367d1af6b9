"use strict";

const LANGUAGE = document.documentElement.lang; // of the page
const wholeNumbers = new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: 0 });
const pluralRules = new Intl.PluralRules(LANGUAGE);

/** Returns a text of the page in the reader's language, with `values` in their places; `number` decides the plural. */
function say(name, values = {}) {
  const { locale } = SETTINGS;
  const text = locale[name] ?? locale[`${name}_${pluralRules.select(values.number)}`] ?? locale[`${name}_other`];
  const shown = (value) => typeof value === "number" ? wholeNumbers.format(value) : value;
  return text.replace(/\{(\w+)\}/g, (_, key) => shown(values[key]));
}

/** Returns a number of bytes as people read it. */
function sizeOf(bytes) {
  const [unit, size] = bytes < 2 ** 20 ? ["kilobyte", 2 ** 10] : ["megabyte", 2 ** 20];
  return new Intl.NumberFormat(LANGUAGE, { style: "unit", unit }).format(Math.ceil(bytes / size));
}

function secondsOf(seconds) {
  return new Intl.NumberFormat(LANGUAGE, { style: "unit", unit: "second", maximumFractionDigits: 0 }).format(seconds);
}
