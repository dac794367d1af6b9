"use strict";

const quotedForShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// JSON's strings and numbers are Python's.
function inPython(value) {
  if (Array.isArray(value)) return `[${value.map(inPython).join(", ")}]`;
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value);
}

/** Returns the programs that send what the page sends, `[name, text]` each. */
function programsOf(path, request, needsKey) {
  const url = new URL(path, location.href.split(/[?#]/)[0]).href;
  const fields = Object.entries(request).filter(([, value]) => value !== "" && value !== false);
  const body = JSON.stringify(Object.fromEntries(fields), null, 2);
  const key = needsKey ? ["Authorization", "Bearer KEY"] : null;
  const headers = [["Content-Type", "application/json"], ...(key ? [key] : [])];
  const curl = [
    `curl ${quotedForShell(url)}`,
    ...headers.map(([name, value]) => `  -H ${quotedForShell(`${name}: ${value}`)}`),
    `  -d ${quotedForShell(body)}`,
  ].join(" \\\n");
  const python = [
    "import json",
    "import urllib.request",
    "",
    "body = {",
    ...fields.map(([name, value]) => `    ${inPython(name)}: ${inPython(value)},`),
    "}",
    `headers = {${headers.map((pair) => pair.map(inPython).join(": ")).join(", ")}}`,
    `request = urllib.request.Request(${inPython(url)}, json.dumps(body).encode(), headers)`,
    "with urllib.request.urlopen(request) as response:",
    '    print(json.load(response)["translations"][0]["text"])',
  ].join("\n");
  return [["curl", curl], ["Python", python]];
}

/** Returns the program that sends a file. */
function programsOfFile(fields, needsKey) {
  const url = new URL("v1/files", location.href.split(/[?#]/)[0]).href;
  const given = Object.entries(fields).filter(([, value]) => value);
  const form = given.map(([name, value]) => `  -F ${quotedForShell(`${name}=${value}`)}`);
  const key = needsKey ? ["  -H 'Authorization: Bearer KEY'"] : [];
  return [["curl", [`curl ${quotedForShell(url)} -OJ`, ...key, "  -F file=@FILE", ...form].join(" \\\n")]];
}
