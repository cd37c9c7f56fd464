"use strict";
/* The page: its state, requests to the server, and drawing the responses. */

(async () => {
  const MAX_COLUMNS = 4;  // of the lists of neighbours
  let model, state = { subjects: [], given: null }, latest = null, announcement = null;
  let isWaiting = false, isStale = false;

  function showMessage(text) {
    byId("message").textContent = text;
    byId("message").hidden = !text;
  }

  async function fetchJson(path, body) {
    const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
    const response = await fetch(path, options);
    const found = await response.json();
    if (!response.ok) throw new Error(found.error);
    return found;
  }

  const typical = () => ({ values: model.columns.map((column) => column.typical), row: null });
  const byName = (values) => Object.fromEntries(model.columns.map(({ name }, i) => [name, values[i]]));

  /* One request at a time; a change meanwhile is requested next, so the last state wins. */
  async function request() {
    if (isWaiting) {
      isStale = true;
      return;
    }
    isWaiting = true;
    do {
      isStale = false;
      try {
        showAnswer(await fetchJson(...makeQuestion(state.subjects.map(({ values }) => byName(values)), state.given, model)));
        if (byId("message").dataset.of === "answer") showMessage("");
      } catch (error) {
        byId("message").dataset.of = "answer";
        showMessage(error instanceof TypeError ? "The server does not answer: is it still running?" : error.message);
      }
    } while (isStale);
    isWaiting = false;
  }

  function update(isMoved = true) {
    show(state.subjects);
    const both = state.subjects.length > 1;
    document.body.classList.toggle("both", both);
    if (byId("compare")) byId("compare").textContent = both ? "Remove the second subject" : "Compare with a second subject";
    starts.forEach((start, side) => start(state.subjects[side]));
    if (byId("given") && document.activeElement !== byId("given")) showGiven();
    if (isMoved) history.replaceState(null, "", writeLink(state, model.fingerprint));
    byId("copied").textContent = "";
    request();
  }

  function showAnswer(answer) {
    latest = { answer, model };
    const sentences = describeAnswer(latest), both = sentences.length > 1;
    byId("sentences").replaceChildren(...sentences.map((text, k) => {
      const line = element("p", { class: `sentence side${NAMES[k]}` });
      if (both) line.append(element("span", { class: "badge" }, NAMES[k]));
      line.append(element("span", {}, text));
      return line;
    }));
    clearTimeout(announcement);
    announcement = setTimeout(() => {
      byId("live").textContent = sentences.map((text, k) => (both ? `Subject ${NAMES[k]}: ${text}` : text)).join(" ");
    }, 500);
    draw(byId("curves"), (host) => drawCurves(host, latest));
    fillNumbers(latest);
    if (byId("neighbours")) fillNeighbours(answer);
    document.body.dataset.ready = String(Number(document.body.dataset.ready || 0) + 1);
  }

  /* Start of a subject: typical values, or a row of the table. */
  let starts = [];
  function makeStarts() {
    return NAMES.map((name, side) => {
      const host = element("div", { class: `start side${name}`, role: "group", "aria-label": `Start of subject ${name}` });
      const button = element("button", { type: "button" }, "Typical values");
      button.addEventListener("click", () => {
        state.subjects[side] = typical();
        update();
      });
      host.append(element("span", { class: "badge", "aria-hidden": "true" }, name), button);
      const note = element("span", { class: "note", dir: "auto" });
      const rowBox = model.data ? makeRowBox(side, host) : null;
      host.append(note);
      byId("starts").append(host);
      return (subject) => {
        host.hidden = !subject;
        if (!subject) return;
        rowBox?.complain("");
        if (rowBox && document.activeElement !== rowBox.box) rowBox.box.value = subject.label || (subject.row === null ? "" : String(subject.row));
        note.textContent = subject.note || "";
      };
    });
  }

  function makeRowBox(side, host) {
    const list = element("datalist", { id: `rows${side}` });
    const box = element("input", { id: `row${side}`, list: list.id, autocomplete: "off", placeholder: model.data.id ? `${formatCount(model.data.rows)} rows` : `1 to ${formatCount(model.data.rows)}`, size: "10" });
    const label = element("label", { for: box.id }, model.data.id ? `or row by ${model.data.id} ` : "or row number ");
    label.append(box);
    const problem = element("span", { class: "problem", role: "alert", id: `problem${side}` });
    box.setAttribute("aria-describedby", problem.id);
    const complain = (text) => {
      problem.textContent = text;
      box.setAttribute("aria-invalid", String(text !== ""));
    };
    let found = [];
    const search = async () => {
      found = (await fetchJson(`rows?search=${encodeURIComponent(box.value.slice(0, 200))}`)).rows;
      list.replaceChildren(...found.map((each) => element("option", { value: each.label })));
      return found;
    };
    box.addEventListener("focus", () => search().catch(() => {}));
    box.addEventListener("input", () => {
      complain("");
      search().catch(() => {});
    });
    box.addEventListener("change", async () => {
      if (!box.value.trim()) return;
      try {
        const wanted = box.value.trim();
        const match = (await search()).find((each) => each.label.trim() === wanted);
        if (!match) throw new Error(`There is no ${model.data.id || "row"} ${wanted} in ${model.data.source}.`);
        await startFrom(side, match.row);
      } catch (error) {
        complain(error.message);
      }
    });
    host.append(label, list, problem);
    return { box, complain };
  }

  async function startFrom(side, number) {
    const row = await fetchJson(`rows/${number}`);
    state.subjects[side] = { values: model.columns.map(({ name }) => row.values[name]), row: row.row, ...nameRow(row) };
    showMessage("");
    update();
  }

  function nameRow(row) {
    const unseen = row.notes.map(capitalise).join(" ");
    if (row.time === null) return { label: row.label, note: unseen };
    const training = `a training row: ${describeOutcome(row)}. The forest was fitted to it.`;
    return { label: row.label, note: unseen ? `${unseen} It is ${training}` : training };
  }

  function markChanged(subject) {
    if (subject.note) subject.note = subject.note.replace(/\. The forest was fitted to it\.$|, changed$/, ", changed");
  }

  function nameEvent(row) {
    return nameCause(row.cause ?? (model.event_name || "event"));
  }

  function describeOutcome(row) {
    return describeTime(nameEvent(row), row, model.censoring === "left", unitOf(model));
  }

  function nameOutcome(row) {
    if (row.lower !== undefined) return nameKind(row);
    if (row.event) return nameEvent(row);
    return model.censoring === "left" ? "before" : "censored";
  }

  /* The training rows of largest weight. */
  function fillNeighbours(answer) {
    const both = answer.subjects.length > 1;
    const shown = [...model.columns.keys()].sort((i, j) => model.columns[j].importance - model.columns[i].importance)
      .slice(0, MAX_COLUMNS);
    byId("neighbour-lists").replaceChildren(...answer.subjects.map((subject, k) => {
      const host = element("div", { class: `neighbour-list side${NAMES[k]}` });
      if (both) host.append(element("span", { class: "badge" }, NAMES[k]));
      const { n_neighbours, effective_sample_size, neighbours } = subject;
      const text = `${formatCount(n_neighbours)} of ${formatCount(model.rows)} training rows have positive weight; ` +
        `the effective sample size is ${formatNumber(Math.round(effective_sample_size))}.`;
      const rest = neighbours ? ` The ${neighbours.length} of largest weight are listed; choose one to start from it.`
        : " To list them, start the server with --data and the training table.";
      host.append(element("p", {}, text + rest));
      if (neighbours) host.append(makeTable(neighbours, shown, k));
      return host;
    }));
  }

  function makeTable(neighbours, shown, side) {
    const table = element("table", { class: "neighbours" });
    const heads = [["Row", ""], ["Weight", "number"], [capitalise(nameTimes(model)), "number"], ["Outcome", ""], ...shown.map((i) => [model.columns[i].name,
      model.columns[i].kind === "category" ? "value" : "number value"])];
    const head = element("tr");
    head.append(...heads.map(([text, kind]) => element("th", { scope: "col", class: kind, dir: "auto", title: text }, text)));
    const most = Math.max(...neighbours.map(({ weight }) => weight));
    const lines = neighbours.map((each) => {
      const tr = element("tr");
      const button = element("button", { type: "button", class: "plain", dir: "auto", title: "Start from this row" }, each.label);
      button.addEventListener("click", () => startFrom(side, each.row).catch((error) => showMessage(error.message)));
      const first = element("th", { scope: "row" });
      first.append(button);
      const weight = element("td", { class: "number weight" });
      const bar = element("span", { class: "weight-bar" });
      bar.style.width = `${(3 * each.weight) / most}rem`;
      weight.append(bar, element("span", {}, formatPercent(each.weight)));
      tr.append(first, weight, element("td", { class: "number" }, each.lower === undefined ? formatNumber(each.time) : formatObserved(each)),
        element("td", {}, nameOutcome(each)),
        ...shown.map((i) => element("td", { class: heads[4 + shown.indexOf(i)][1], dir: "auto" },
          formatCell(each.values[model.columns[i].name], model.columns[i]))));
      return tr;
    });
    const thead = element("thead"), tbody = element("tbody");
    thead.append(head);
    tbody.append(...lines);
    table.append(thead, tbody);
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Neighbours of subject ${NAMES[side]}` });
    scroll.append(table);
    return scroll;
  }

  /* The time already survived. */
  function showGiven() {
    byId("given").value = state.given === null ? "" : String(state.given);
    complainOfGiven("");
  }

  function complainOfGiven(text) {
    byId("given-problem").textContent = text;
    byId("given").setAttribute("aria-invalid", String(text !== ""));
  }

  function makeGiven() {
    const box = byId("given");
    byId("survived").hidden = model.censoring === "left";
    byId("given-unit").textContent = model.time_unit || "";
    box.addEventListener("input", () => {
      const isWrong = box.validity.badInput || (box.value !== "" && !Number.isFinite(Number(box.value)));
      complainOfGiven(isWrong ? "A number, or nothing." : "");
      if (isWrong) return;
      state.given = box.value === "" ? null : Number(box.value);
      update();
    });
    box.addEventListener("blur", showGiven);
  }

  function describe() {
    document.title = `${document.querySelector("h1").textContent} · ${model.name}`;
    byId("about").textContent = describeModel(model);
    const settings = { Version: `cqrf ${model.version}`, Times: `${formatNumber(model.first_time)} to ${formatNumber(model.last_time)}`, ...model.notes,
      ...model.settings };
    for (const [name, value] of Object.entries(settings)) {
      byId("settings").append(element("dt", {}, name), element("dd", { dir: "auto" }, value === null ? "none" : String(value)));
    }
  }

  async function restore() {
    const start = { subjects: [typical()], given: null };
    const read = location.hash.length > 1 ? readLink(location.hash, model) : start;
    const isFine = typeof read !== "string";
    byId("message").dataset.of = "link";
    showMessage(isFine ? "" : `${read} Typical values are shown instead.`);
    state = isFine ? read : start;
    if (!byId("compare")) state.subjects.splice(1);
    await Promise.all(state.subjects.map(async (subject) => {
      if (subject.row === null || !model.data) return;
      try {
        const row = await fetchJson(`rows/${subject.row}`);
        Object.assign(subject, nameRow(row));
        if (model.columns.some(({ name }, i) => row.values[name] !== subject.values[i])) markChanged(subject);
      } catch {
        subject.row = null;
      }
    }));
    update(isFine && location.hash.length > 1);
  }

  byId("compare")?.addEventListener("click", () => {
    const [first, second] = state.subjects;
    state.subjects = second ? [first] : [first, { ...first, values: first.values.slice() }];
    update();
  });
  byId("copy").addEventListener("click", async () => {
    history.replaceState(null, "", writeLink(state, model.fingerprint));
    try {
      await navigator.clipboard.writeText(location.href);
      byId("copied").textContent = "Copied.";
    } catch {
      byId("copied").textContent = "Copy the address of this page: it is the link.";
    }
  });
  window.addEventListener("hashchange", restore);

  try {
    model = await fetchJson("model");
    if (model.causes?.length) model.event_name ??= "any event";
  } catch {
    showMessage("The server does not answer: is it still running?");
    return;
  }
  describe();
  const show = makeControls(model, (side, i, value) => {
    const subject = state.subjects[side];
    subject.values[i] = value;
    markChanged(subject);
    update();
  });
  starts = makeStarts();
  if (byId("given")) makeGiven();
  await restore();
})();
