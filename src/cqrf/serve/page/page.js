/* The page: state, questions to the server, and what changes with the answers. */

(async () => {
  const byId = (id) => document.getElementById(id);
  const MOST_COLUMNS = 4;
  let model, show, state = { subjects: [] }, latest = null, speak = null;
  let isAsking = false, isStale = false;

  function tell(text) {
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

  /* One question at a time; whatever has changed meanwhile is asked next, so the last state wins. */
  async function ask() {
    if (isAsking) {
      isStale = true;
      return;
    }
    isAsking = true;
    do {
      isStale = false;
      try {
        const answer = await fetchJson("subjects", { subjects: state.subjects.map(({ values }) => byName(values)) });
        showAnswer(answer);
        if (byId("message").dataset.of === "answer") tell("");
      } catch (error) {
        byId("message").dataset.of = "answer";
        tell(error instanceof TypeError ? "The server does not answer: is it still running?" : error.message);
      }
    } while (isStale);
    isAsking = false;
  }

  function update(isMoved = true) {
    show(state.subjects);
    const both = state.subjects.length > 1;
    document.body.classList.toggle("both", both);
    byId("compare").textContent = both ? "Remove the second subject" : "Compare with a second subject";
    starts.forEach((start, side) => start(state.subjects[side]));
    if (isMoved) history.replaceState(null, "", writeLink(state, model.fingerprint));
    byId("copied").textContent = "";
    ask();
  }

  function showAnswer(answer) {
    latest = { answer, model };
    const both = answer.subjects.length > 1;
    const sentences = answer.subjects.map((subject) => sayExpected(subject, model));
    byId("sentences").replaceChildren(...sentences.map((text, k) => {
      const line = element("p", { class: `sentence side${NAMES[k]}` });
      if (both) line.append(element("span", { class: "badge" }, NAMES[k]));
      line.append(element("span", {}, text));
      return line;
    }));
    clearTimeout(speak);
    speak = setTimeout(() => {
      byId("live").textContent = sentences.map((text, k) => (both ? `Subject ${NAMES[k]}: ${text}` : text)).join(" ");
    }, 500);
    draw(byId("curves"), (host) => drawCurves(host, latest));
    fillNumbers(latest);
    fillSpeakers(answer);
    document.body.dataset.ready = String(Number(document.body.dataset.ready || 0) + 1);
  }

  /* Where a subject starts: typical values, or a row of the table. */
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
      const box = model.data ? makeRowBox(side, host) : null;
      host.append(note);
      byId("starts").append(host);
      return (subject) => {
        host.hidden = !subject;
        if (!subject) return;
        if (box && document.activeElement !== box) box.value = subject.label || (subject.row === null ? "" : String(subject.row));
        note.textContent = subject.seen || "";
      };
    });
  }

  function makeRowBox(side, host) {
    const list = element("datalist", { id: `rows${side}` });
    const box = element("input", { id: `row${side}`, list: list.id, autocomplete: "off", placeholder: `1 to ${model.data.rows.toLocaleString("en-US")}`, size: "10" });
    const label = element("label", { for: box.id }, "or row ");
    label.append(box);
    let found = [];
    const search = async () => {
      found = (await fetchJson(`rows?search=${encodeURIComponent(box.value.slice(0, 200))}`)).rows;
      list.replaceChildren(...found.map((each) => element("option", { value: each.label })));
      return found;
    };
    box.addEventListener("focus", () => search().catch(() => {}));
    box.addEventListener("input", () => search().catch(() => {}));
    box.addEventListener("change", async () => {
      if (!box.value.trim()) return;
      try {
        const wanted = box.value.trim();
        const match = (await search()).find((each) => each.label.trim() === wanted);
        if (!match) throw new Error(`There is no row ${wanted} in ${model.data.source}.`);
        await startFrom(side, match.row);
      } catch (error) {
        byId("message").dataset.of = "row";
        tell(error.message);
      }
    });
    host.append(label, list);
    return box;
  }

  async function startFrom(side, number) {
    const row = await fetchJson(`rows/${number}`);
    state.subjects[side] = { values: model.columns.map(({ name }) => row.values[name]), row: row.row, ...nameRow(row) };
    tell("");
    update();
  }

  function nameRow(row) {
    if (row.time === null) return { label: row.label, seen: "" };
    return { label: row.label, seen: `a training row: ${sayOutcome(row)}. The forest has seen it.` };
  }

  function markChanged(subject) {
    if (subject.seen) subject.seen = subject.seen.replace(/\. The forest has seen it\.$|, changed$/, ", changed");
  }

  function sayOutcome({ time, event }) {
    if (event) return `event at ${say(time)}`;
    return model.censoring === "left" ? `event before ${say(time)}` : `no event until ${say(time)}`;
  }

  /* The training rows that speak, loudest first. */
  function fillSpeakers(answer) {
    const both = answer.subjects.length > 1;
    const shown = [...model.columns.keys()].sort((i, j) => model.columns[j].importance - model.columns[i].importance)
      .slice(0, MOST_COLUMNS);
    byId("speakers").replaceChildren(...answer.subjects.map((subject, k) => {
      const host = element("div", { class: `speaker side${NAMES[k]}` });
      if (both) host.append(element("span", { class: "badge" }, NAMES[k]));
      const { speaking, effective, neighbours } = subject;
      const said = `${speaking.toLocaleString("en-US")} of ${model.rows.toLocaleString("en-US")} training rows have a say, ` +
        `as much as ${say(Math.round(effective))} of equal weight.`;
      const rest = neighbours ? ` These ${neighbours.length} speak loudest; choose one to start from it.`
        : " Which ones is shown when the server is started with --data and the training table.";
      host.append(element("p", {}, said + rest));
      if (neighbours) host.append(makeTable(neighbours, shown, k));
      return host;
    }));
  }

  function makeTable(neighbours, shown, side) {
    const table = element("table", { class: "neighbours" });
    const heads = [["Row", ""], ["Weight", "number"], ["Time", "number"], ["Outcome", ""], ...shown.map((i) => [model.columns[i].name,
      model.columns[i].kind === "category" ? "value" : "number value"])];
    const head = element("tr");
    head.append(...heads.map(([text, kind]) => element("th", { scope: "col", class: kind, dir: "auto", title: text }, text)));
    const most = Math.max(...neighbours.map(({ weight }) => weight));
    const lines = neighbours.map((each) => {
      const tr = element("tr");
      const button = element("button", { type: "button", class: "plain", dir: "auto", title: "Start from this row" }, each.label);
      button.addEventListener("click", () => startFrom(side, each.row).catch((error) => tell(error.message)));
      const first = element("th", { scope: "row" });
      first.append(button);
      const weight = element("td", { class: "number weight" });
      const bar = element("span", { class: "weight-bar" });
      bar.style.width = `${(3 * each.weight) / most}rem`;
      weight.append(bar, element("span", {}, percent(each.weight)));
      tr.append(first, weight, element("td", { class: "number" }, say(each.time)),
        element("td", {}, each.event ? "event" : model.censoring === "left" ? "before" : "censored"),
        ...shown.map((i) => element("td", { class: heads[4 + shown.indexOf(i)][1], dir: "auto" },
          sayCell(each.values[model.columns[i].name], model.columns[i]))));
      return tr;
    });
    const thead = element("thead"), tbody = element("tbody");
    thead.append(head);
    tbody.append(...lines);
    table.append(thead, tbody);
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Training rows that speak for subject ${NAMES[side]}` });
    scroll.append(table);
    return scroll;
  }

  function describe() {
    document.title = `What if? · ${model.name}`;
    const censored = percent(1 - model.events / model.rows);
    byId("about").textContent = `${model.name}: ${model.trees} trees grown from ${model.rows.toLocaleString("en-US")} rows` +
      (model.notes.source ? ` of ${model.notes.source}` : "") + `, ${censored} of them censored. Move a covariate and see what changes.`;
    const facts = { Version: `cqrf ${model.version}`, Times: `${say(model.first_time)} to ${say(model.last_time)}`, ...model.notes,
      ...model.settings };
    for (const [name, value] of Object.entries(facts)) {
      byId("facts").append(element("dt", {}, name), element("dd", { dir: "auto" }, value === null ? "none" : String(value)));
    }
  }

  async function restore() {
    const read = location.hash.length > 1 ? readLink(location.hash, model) : [typical()];
    const isFine = Array.isArray(read);
    byId("message").dataset.of = "link";
    tell(isFine ? "" : `${read} Typical values are shown instead.`);
    state = { subjects: isFine ? read : [typical()] };
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

  byId("compare").addEventListener("click", () => {
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
      byId("copied").textContent = "The address of this page is the link: copy it from there.";
    }
  });
  window.addEventListener("hashchange", restore);

  try {
    model = await fetchJson("model");
  } catch {
    tell("The server does not answer: is it still running?");
    return;
  }
  describe();
  show = makeControls(model, (side, i, value) => {
    const subject = state.subjects[side];
    subject.values[i] = value;
    markChanged(subject);
    update();
  });
  starts = makeStarts();
  await restore();
})();
