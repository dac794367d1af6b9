"use strict";

/** A call that failed: `error` is the server's, for programmers, `status` HTTP's, 0 without an answer. `failures.js`
 * has the words for readers, which `name` may choose. */
class Refusal extends Error {
  constructor(status, error, { name = "", retrySeconds = 0 } = {}) {
    const { code = "", reason = "", field = "", advice = "", message = "" } = error;
    super(message);
    Object.assign(this, { status, code, reason, field, advice, name, retrySeconds });
  }
}

/** Returns the `Refusal` for the body of an answer. */
function refusalOf(status, body, retryAfter) {
  const retrySeconds = Number(retryAfter) || 0;
  try {
    return new Refusal(status, JSON.parse(body).error, { retrySeconds });
  } catch {
    return new Refusal(status, { message: `HTTP ${status}` }, { retrySeconds }); // of a proxy, which has its own page
  }
}

async function* serverSentEvents(body) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const fields = new Map(event.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()]));
        yield { name: fields.get("event") ?? "message", data: JSON.parse(fields.get("data")) };
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // an aborted request has ended already
  }
}

/** The calls that both ports have in common. `key` is sent where it is set; `licences` are the models', by name. */
class Server {
  key = "";
  licences = new Map();

  headers(id) {
    return { ...(this.key && { Authorization: `Bearer ${this.key}` }), ...(id && { "X-Request-Id": id }) };
  }

  async ask(path, { id, body, signal } = {}) {
    const headers = this.headers(id);
    if (body) headers["Content-Type"] = "application/json";
    const options = { method: body ? "POST" : "GET", body: body && JSON.stringify(body), headers, signal, cache: "no-store" };
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Refusal(0, {}, { name: "no_answer" });
    }
    if (!response.ok) throw refusalOf(response.status, await response.text(), response.headers.get("Retry-After"));
    return response;
  }
}

/** The port of callers: translations come as they grow, and files are translated. */
class CallersServer extends Server {
  path = "v1/translate";
  streams = true;

  async languages() {
    const found = new Languages();
    const document = await (await this.ask("v1/languages")).json();
    for (const { language_code: source, targets } of document.languages) for (const target of targets) found.add(source, target);
    const { models } = await (await this.ask("v1/models")).json();
    this.licences = new Map(models.map(({ name, licence }) => [name, licence]));
    return found;
  }

  /** Returns `{ translation, model, version }`; calls `grows` with each part before. */
  async translate(request, { id, signal, grows }) {
    const response = await this.ask("v1/translate/stream", { id, body: request, signal });
    let translation = null;
    try {
      for await (const { name, data } of serverSentEvents(response.body)) {
        if (name === "error") throw new Refusal(response.status, data.error);
        if (name === "done") return { translation, model: data.model, version: data.model_version };
        if (data.delta) grows(data.delta);
        translation = data.translation ?? translation;
      }
    } catch (error) {
      if (signal.aborted || error instanceof Refusal) throw error;
    }
    throw new Refusal(0, {}, { name: "connection_lost" });
  }

  async hypotheses(request, number, { id, signal }) {
    const body = { ...request, options: { num_hypotheses: number } };
    const document = await (await this.ask(this.path, { id, body, signal })).json();
    return document.translations[0].hypotheses ?? [document.translations[0]];
  }

  /** Translates a file, as `{ name, blob, notes, report }`; `progress` is called with the share of it that was sent. */
  translateFile(file, fields, { id, signal, progress }) {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) if (value) form.append(name, value);
    form.append("file", file);
    const call = new XMLHttpRequest(); // fetch does not tell how much is sent
    return new Promise((resolve, reject) => {
      call.upload.onprogress = ({ loaded, total }) => progress(loaded / total);
      call.onerror = () => reject(new Refusal(0, {}, { name: "no_answer" }));
      call.onabort = () => reject(signal.reason);
      call.onload = async () => {
        if (call.status !== 200) {
          reject(refusalOf(call.status, await call.response.text(), call.getResponseHeader("Retry-After")));
          return;
        }
        resolve({
          name: nameIn(call.getResponseHeader("Content-Disposition") ?? "") ?? file.name,
          blob: call.response,
          notes: call.getResponseHeader("X-Document-Notes") ?? "",
          report: JSON.parse(call.getResponseHeader("X-Document-Report") ?? "{}"),
        });
      };
      signal.addEventListener("abort", () => call.abort());
      call.open("POST", "v1/files");
      call.responseType = "blob";
      for (const [name, value] of Object.entries(this.headers(id))) call.setRequestHeader(name, value);
      call.send(form);
    });
  }
}

/** Returns the name of the file in a Content-Disposition header (RFC 6266). */
function nameIn(disposition) {
  const extended = /filename\*=UTF-8''([^;]+)/.exec(disposition)?.[1];
  return extended ? decodeURIComponent(extended) : /filename="([^"]*)"/.exec(disposition)?.[1];
}

/** The operators' port: whole translations, in protobuf's JSON, which leaves out what is zero or empty. */
class OperatorsServer extends Server {
  path = "api/translate";
  streams = false;

  async languages() {
    const found = new Languages();
    const document = await (await this.ask("status.json")).json();
    this.licences = new Map(document.models.map(({ name, licence }) => [name, licence]));
    for (const { pairs, any_to_any: all } of document.models) {
      for (const [source, target] of pairs) found.add(source, target);
      for (const source of all) for (const target of all) found.add(source, target);
    }
    return found;
  }

  async translate(request, { id, signal }) {
    const document = await (await this.ask(this.path, { id, body: request, signal })).json();
    const { text = "", finish_reason: reason = "", ...rest } = document.translations[0];
    const flags = (rest.segments ?? []).flatMap((each) => each.flags ?? []).map((flag) => flag.replace("FLAG_", "").toLowerCase());
    const translation = { ...rest, flags, text, finish_reason: reason.replace("FINISH_REASON_", "").toLowerCase() };
    return { translation, model: document.model ?? "", version: document.model_version ?? "" };
  }

  async hypotheses(request, number, { id, signal }) {
    const body = { ...request, options: { num_hypotheses: number } };
    const { translation } = await this.translate(body, { id, signal });
    return translation.hypotheses ?? [translation];
  }
}

/** Returns the calls of the port that this page came from. */
function ownServer() {
  const kinds = { v1: CallersServer, operators: OperatorsServer };
  return new kinds[SETTINGS.calls]();
}
