"use strict";
(() => {
  const KEPT_SECONDS = 300;
  const WINDOW_SECONDS = 10; // of percentiles
  const QUANTILES = [0.5, 0.9, 0.99];
  const $ = (id) => document.getElementById(id);

  // ---- Numbers: differences between readings ----

  const readings = []; // of the last WINDOW_SECONDS
  const history = { time: [] }; // one row a second; null: not known

  const total = (counts) => Object.values(counts).reduce((sum, each) => sum + each, 0);
  const risen = (now, before) => Math.max(now - before, 0); // counts of a retired model disappear

  function newCounts(now, before) {
    if (!before.counts.length) return now.counts;
    return now.counts.map((count, i) => risen(count, before.counts[i]));
  }

  // As Prometheus' histogram_quantile: linear within a bucket; values above the last bound count as the bound.
  function quantile(bounds, counts, share) {
    const all = counts.at(-1);
    if (!all) return null;
    const rank = share * all;
    const i = counts.findIndex((count) => count >= rank);
    if (i >= bounds.length) return bounds.at(-1);
    const [low, below] = i ? [bounds[i - 1], counts[i - 1]] : [0, 0];
    return low + (bounds[i] - low) * (rank - below) / (counts[i] - below);
  }

  function quantilesOf(name, now, before) {
    const counts = newCounts(now.histograms[name], before.histograms[name]);
    return QUANTILES.map((share) => {
      const seconds = quantile(now.histograms[name].bounds, counts, share);
      return seconds === null ? null : seconds * 1000;
    });
  }

  function row(now) {
    const last = readings.at(-1) ?? now;
    const first = readings[0] ?? now;
    const seconds = now.time_seconds - last.time_seconds;
    const rate = (value) => seconds > 0 ? risen(value(now), value(last)) / seconds : null;
    const latency = quantilesOf("request_seconds", now, first);
    const firstToken = quantilesOf("first_token_seconds", now, first);
    const waited = quantilesOf("queue_seconds", now, first);
    const [batch, batchBefore] = [now.histograms.batch_size, first.histograms.batch_size];
    const steps = risen(batch.counts.at(-1) ?? 0, batchBefore.counts.at(-1) ?? 0);
    return {
      ok: rate((each) => each.calls.OK ?? 0),
      failed: rate((each) => total(each.calls) - (each.calls.OK ?? 0)),
      written: rate((each) => each.target_tokens_total),
      read: rate((each) => each.source_tokens_total),
      cpu: rate((each) => each.process_cpu_seconds_total),
      p50: latency[0], p90: latency[1], p99: latency[2],
      first50: firstToken[0], first90: firstToken[1], first99: firstToken[2],
      waited99: waited[2],
      slots: now.slots_running, waiting: now.queue_sequences, slotsMax: now.slots_max,
      batch: steps ? risen(batch.sum, batchBefore.sum) / steps : null,
    };
  }

  function remember(time, values) {
    history.time.push(time);
    for (const name of NAMES) (history[name] ??= []).push(values?.[name] ?? null);
    const old = history.time.findIndex((each) => each > time - KEPT_SECONDS);
    if (old > 0) for (const name of ["time", ...NAMES]) history[name].splice(0, old);
  }

  // ---- Charts ----

  const CHARTS = [
    { title: "Calls per second", series: [["ok", "answered", "one"], ["failed", "failed", "two"]], fill: true },
    { title: "Tokens per second", series: [["written", "written", "one"], ["read", "read", "two"]], fill: true },
    { title: "Latency, ms", series: [["p50", "p50", "one"], ["p90", "p90", "two"], ["p99", "p99", "three"]] },
    { title: "First token, ms", series: [["first50", "p50", "one"], ["first90", "p90", "two"], ["first99", "p99", "three"]] },
    { title: "Slots", series: [["slots", "in use", "one"], ["slotsMax", "in all", "two"], ["waiting", "waiting", "three"]] },
    { title: "Rows per step", series: [["batch", "mean of 10 s", "one"]], fill: true },
  ];
  const NAMES = CHARTS.flatMap((chart) => chart.series.map(([name]) => name));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  let plots = [];

  const compact = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "compact" });
  const brisk = new Intl.NumberFormat("en", { maximumSignificantDigits: 2, notation: "compact" });
  const written = (format) => (value) => value == null ? "–" : format.format(Math.abs(value) < 0.005 ? 0 : value);
  const [shown, brief] = [written(compact), written(brisk)];

  function buildCharts() {
    $("charts").replaceChildren();
    plots = CHARTS.map(({ title, series, fill }) => {
      const values = series.map(() => element("b", {}, "–"));
      const keys = series.map(([, label, tint], i) => element("span", { className: tint }, `${label} `, values[i]));
      const place = element("div", { className: "chart", ariaHidden: "true" });
      $("charts").append(element("figure", {}, element("figcaption", {}, element("strong", {}, title), ...keys), place));
      const tell = (index) => series.forEach(([name], i) => { values[i].textContent = shown(history[name]?.at(index)); });
      const axis = { stroke: colour("muted"), font: "11px system-ui", grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
      const options = {
        width: place.clientWidth || 300, height: place.clientHeight || 176, legend: { show: false },
        padding: [8, 6, 0, 0],
        cursor: { sync: { key: "time" }, points: { size: 6 }, drag: { x: false, y: false }, y: false },
        scales: {
          x: { time: true, range: () => { const now = history.time.at(-1) ?? Date.now() / 1000; return [now - KEPT_SECONDS, now]; } },
          y: { range: (_, __, most) => [0, Math.max(most * 1.08, 1)] },
        },
        axes: [
          { ...axis, size: 26, space: 70, values: "{HH}:{mm}" },
          { ...axis, size: 44, space: 32, values: (_, splits) => splits.map((value) => value == null ? "" : compact.format(value)) },
        ],
        series: [{}, ...series.map(([, label, tint], i) => ({
          label, stroke: colour(tint), width: 1.75, spanGaps: false, points: { show: false },
          fill: fill && !i ? `${colour(tint)}26` : undefined,
        }))],
        hooks: { setCursor: [(plot) => tell(plot.cursor.idx ?? -1)] },
      };
      const plot = new uPlot(options, data(series), place);
      const observer = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: place.clientHeight }));
      observer.observe(place);
      return { series, plot, tell, destroy: () => { observer.disconnect(); plot.destroy(); } };
    });
  }

  const data = (series) => [history.time, ...series.map(([name]) => history[name] ?? [])];

  function drawCharts() {
    for (const { series, plot, tell } of plots) {
      plot.setData(data(series));
      tell(plot.cursor.idx ?? -1);
    }
  }

  // ---- The rest of the page ----

  // Text is only inserted as text, never parsed as HTML.
  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function put(id, text) {
    if ($(id).textContent !== text) $(id).textContent = text;
  }

  // Milliseconds, as a number and its unit.
  const time = (format, milliseconds) => milliseconds < 1000 ? [format(milliseconds), "ms"] : [format(milliseconds / 1000), "s"];

  function putTime(id, p50, p90, p99) {
    const [number, unit] = time(shown, p50);
    put(id, number);
    put(`${id}-unit`, unit);
    const note = (milliseconds) => time(brief, milliseconds).filter((part) => part !== unit).join(" ");
    put(`${id}-note`, `p90 ${note(p90)}, p99 ${note(p99)}`);
  }

  function setPhase(phase, kind = phase) {
    put("phase", phase);
    $("phase").className = `badge ${kind}`;
  }

  function duration(seconds) {
    const [days, hours, minutes] = [seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60].map(Math.floor);
    if (days) return `${days} d ${hours} h`;
    if (hours) return `${hours} h ${minutes} min`;
    return minutes ? `${minutes} min` : `${Math.floor(seconds)} s`;
  }

  const MIB = 2 ** 20;
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

  function showNumbers(now, values) {
    setPhase(now.phase);
    put("version", now.version);
    put("device", now.device);
    put("uptime", duration(now.uptime_seconds));
    put("cpu", values.cpu === null ? "–" : `${whole.format(values.cpu * 100)} %`);
    put("memory", `${whole.format(now.memory_bytes / MIB)} MiB`);
    put("calls", shown(values.ok === null ? null : values.ok + values.failed));
    put("calls-note", `${brief(values.failed)} failed, ${whole.format(now.inflight_requests)} open`);
    put("tokens", shown(values.written));
    put("tokens-note", `${shown(values.read)} read`);
    putTime("latency", values.p50, values.p90, values.p99);
    putTime("first", values.first50, values.first90, values.first99);
    put("slots", whole.format(now.slots_running));
    put("slots-max", `of ${whole.format(now.slots_max)}`);
    $("slots-meter").value = now.slots_max ? now.slots_running / now.slots_max : 0;
    put("queue", whole.format(now.queue_sequences));
    put("queue-note", values.waited99 === null ? "" : `p99 ${time(brief, values.waited99).join(" ")}`);
    put("kv", shown(now.kv_bytes_used / MIB));
    put("kv-max", `of ${shown(now.kv_bytes_reserved / MIB)} MiB`);
    $("kv-meter").value = now.kv_bytes_reserved ? now.kv_bytes_used / now.kv_bytes_reserved : 0;
    put("batch", shown(values.batch));
  }

  const languageNames = new Intl.DisplayNames(["en"], { type: "language" });

  function languageName(code) {
    try {
      return languageNames.of(code.replaceAll("_", "-"));
    } catch {
      return code;
    }
  }

  const languagesOf = (model) => {
    const pairs = model.pairs.map(([source, target]) => `${source} → ${target}`);
    const many = model.any_to_any.length ? [`${model.any_to_any.length} languages, each into each`] : [];
    return [...pairs, ...many].join(", ");
  };

  let states = []; // of all versions on disk and in memory
  let isExplicit = false;
  let served = "";

  function showModels(models) {
    const rows = models.map((model) => ({ state: "ready", reason: "", ...model }));
    const isServed = (state) => rows.some((model) => model.name === state.name && model.version === state.version);
    rows.push(...states.filter((state) => !isServed(state) && state.state !== "ready"));
    replaceRows("models", rows, (model) => [
      [model.name], [model.version || "–"],
      [model.pairs ? languagesOf(model) : ""], [model.precision ?? ""], [model.licence ?? ""],
      [model.pairs ? `${model.slots_running} of ${model.slots_max}` : "", "keep"],
      [model.pairs ? whole.format(model.queue_sequences) : ""],
      [model.reason ? `${model.state}: ${model.reason}` : model.state, "wide", ...actions(model)],
    ], "No model is loaded.");
  }

  function actions(model) {
    if (!isExplicit) return [];
    const verb = model.pairs ? "unload" : "load";
    const button = element("button", { className: "quiet", type: "button", ariaLabel: `${verb} ${model.name}` }, verb);
    button.addEventListener("click", () => change(`${verb} ${model.name}`, `api/models/${encodeURIComponent(model.name)}/${verb}`));
    return [button];
  }

  function showErrors(now) {
    const codes = Object.entries(now.calls).sort((a, b) => b[1] - a[1]).map(([code, count]) => `${code} ${whole.format(count)}`);
    put("codes", codes.length ? `Translations by status since the start: ${codes.join(", ")}.` : "");
    replaceRows("errors", now.errors, (error) => {
      const when = new Date(error.time_seconds * 1000);
      return [
        [when.toLocaleTimeString("en-GB"), "keep"], [error.code], [error.message, "wide"],
        [error.method.split("/").at(-1)], [element("code", {}, error.request_id), "keep"],
      ];
    }, "None.");
  }

  // Rows are rebuilt only if they differ, to keep the selection and the focus.
  const drawn = new Map();

  function replaceRows(id, items, cells, none) {
    const seen = JSON.stringify([items, isExplicit]);
    if (drawn.get(id) === seen) return;
    drawn.set(id, seen);
    const columns = $(id).parentElement.tHead.rows[0].cells.length;
    const rows = items.map((item) => element("tr", {}, ...cells(item).map(
      ([content, className = "", ...more]) => element("td", { className }, content, ...more))));
    $(id).replaceChildren(...(rows.length ? rows : [element("tr", {}, element("td", { colSpan: columns, className: "note" }, none))]));
  }

  // ---- Languages ----

  const ways = new Map(); // source -> targets
  const samples = new Map(); // source -> a text of a model that translates it

  function learnLanguages(models) {
    ways.clear();
    const add = (source, target) => ways.set(source, (ways.get(source) ?? new Set()).add(target));
    for (const model of models) {
      for (const [source, target] of model.pairs) add(source, target);
      for (const [source, text] of Object.entries(model.samples)) samples.set(source, text);
      for (const source of model.any_to_any) for (const target of model.any_to_any) if (source !== target) add(source, target);
    }
    choose("from", [["", "the language it is in"], ...named(ways.keys())], [...ways.keys()][0]);
    offerTargets();
  }

  const named = (codes) => [...codes].map((code) => [code, `${languageName(code)} (${code})`]).sort((a, b) => a[1].localeCompare(b[1]));

  function choose(id, options, first) {
    const before = $(id).value;
    $(id).replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    const values = options.map(([value]) => value);
    $(id).value = drawn.has(id) && values.includes(before) ? before : values.includes(first) ? first : values[0] ?? "";
    drawn.set(id, true);
  }

  function offerTargets() {
    const source = $("from").value;
    const targets = source ? ways.get(source) ?? [] : new Set([...ways.values()].flatMap((each) => [...each]));
    choose("into", named(targets));
    showSample(source || [...ways.keys()][0]);
  }

  /** Puts a text of the source language into the box, in place of nothing or of another sample. */
  function showSample(source) {
    const isTyped = $("text").value && ![...samples.values()].includes($("text").value);
    if (!isTyped) $("text").value = samples.get(source) ?? "";
  }

  // ---- Requests to the server ----

  async function ask(path, options = {}) {
    const response = await fetch(path, { cache: "no-store", ...options });
    const document = await response.json().catch(() => ({ error: { code: String(response.status), message: "no answer in JSON" } }));
    if (!response.ok) throw new Error(`${document.error.code}: ${document.error.message}`);
    return [document, response];
  }

  const post = (path, body) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

  async function translate() {
    $("go").disabled = true;
    $("outcome").className = "note";
    put("outcome", "…");
    try {
      const [answer, response] = await post("api/translate", {
        texts: [$("text").value], source_language_code: $("from").value, target_language_code: $("into").value,
        options: { return_scores: true },
      });
      const translation = answer.translations[0];
      const best = translation.hypotheses?.[0] ?? {};
      $("translation").lang = $("into").value.replaceAll("_", "-");
      put("translation", translation.text ?? "");
      const time = /dur=([\d.]+)/.exec(response.headers.get("Server-Timing") ?? "")?.[1];
      put("outcome", [
        `${answer.model} ${answer.model_version ?? ""}`.trim(),
        time && `${time} ms`,
        best.score !== undefined && `score ${best.score.toFixed(3).replace("-", "−")}`,
        `${best.num_tokens ?? 0} ${best.num_tokens === 1 ? "token" : "tokens"}`,
        translation.detected_language_code && `from ${languageName(translation.detected_language_code)}`,
        translation.finish_reason?.replace("FINISH_REASON_", "").toLowerCase(),
      ].filter(Boolean).join(" · "));
    } catch (error) {
      put("translation", "");
      $("outcome").className = "note error";
      put("outcome", error.message);
    } finally {
      $("go").disabled = false;
    }
  }

  async function change(what, path) {
    put("done", `${what} …`);
    $("done").className = "note";
    try {
      const [answer] = await post(path, {});
      put("done", `${what}: ${answer.outcome ?? "done"}`);
    } catch (error) {
      $("done").className = "note error";
      put("done", `${what}: ${error.message}`);
    }
    await learnStates();
  }

  async function learnStates() {
    try {
      [{ models: states }] = await ask("api/models");
    } catch {
      states = [];
    }
  }

  async function poll() {
    const started = performance.now();
    try {
      const [now] = await ask("status.json", { signal: AbortSignal.timeout(5000) });
      if (readings.length && now.uptime_seconds < readings.at(-1).uptime_seconds) readings.length = 0; // another process
      const values = row(now);
      readings.push(now);
      while (readings.length > 2 && readings[1].time_seconds <= now.time_seconds - WINDOW_SECONDS) readings.shift();
      remember(now.time_seconds, values);
      isExplicit = now.is_explicit;
      const key = JSON.stringify(now.models.map((model) => [model.name, model.version, model.pairs, model.any_to_any]));
      if (key !== served) {
        served = key;
        learnLanguages(now.models);
        await learnStates();
      }
      showNumbers(now, values);
      showModels(now.models);
      showErrors(now);
    } catch (error) {
      setPhase("no answer", "silent");
      remember(Date.now() / 1000, null);
      console.warn(error.message);
    }
    drawCharts();
    setTimeout(poll, Math.max(1000 - (performance.now() - started), 100));
  }

  $("from").addEventListener("change", offerTargets);
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    translate();
  });
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  });
  $("reload").addEventListener("click", () => change("reload", "api/reload"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    plots.forEach((plot) => plot.destroy());
    buildCharts();
  });
  buildCharts();
  poll();
})();
