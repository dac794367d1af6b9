"use strict";

/** What the server, or the way to it, did not do; `status` is HTTP's, 0 without an answer. */
class Refusal extends Error {
  constructor(message, status, code = "") {
    super(message);
    this.status = status;
    this.code = code;
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

  async ask(path, { id, body, signal } = {}) {
    const headers = {};
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    if (id) headers["X-Request-Id"] = id;
    if (body) headers["Content-Type"] = "application/json";
    const options = { method: body ? "POST" : "GET", body: body && JSON.stringify(body), headers, signal, cache: "no-store" };
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Refusal("The server does not answer. Is it running, and can this machine reach it?", 0);
    }
    if (!response.ok) throw await Server.#refusal(response);
    return response;
  }

  static async #refusal(response) {
    const text = await response.text();
    try {
      const { error } = JSON.parse(text);
      return new Refusal(error.message, response.status, error.code);
    } catch {
      return new Refusal(text.trim() || response.statusText, response.status);
    }
  }
}

/** The port of callers: translations come as they grow. */
class CallersServer extends Server {
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
        if (name === "error") throw new Refusal(data.error.message, response.status, data.error.code);
        if (name === "done") return { translation, model: data.model, version: data.model_version };
        if (data.delta) grows(data.delta);
        translation = data.translation ?? translation;
      }
    } catch (error) {
      if (signal.aborted || error instanceof Refusal) throw error;
    }
    throw new Refusal("The connection to the server was lost before the translation was complete.", 0);
  }

  async hypotheses(request, number, { id, signal }) {
    const body = { ...request, options: { num_hypotheses: number } };
    const document = await (await this.ask("v1/translate", { id, body, signal })).json();
    return document.translations[0].hypotheses ?? [document.translations[0]];
  }
}

/** The operators' port: whole translations, in protobuf's JSON, which leaves out what is zero or empty. */
class OperatorsServer extends Server {
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
    const document = await (await this.ask("api/translate", { id, body: request, signal })).json();
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
  return new kinds[document.querySelector("meta[name=calls]").content]();
}
