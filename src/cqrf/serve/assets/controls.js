"use strict";
/* Controls: one for each column and subject, by the kind of the column. */

const NAMES = ["A", "B"];
const MAX_OPEN = 12;  // columns that are shown at once; the others are folded
let nBoxes = 0;

/* Build the controls; they call `change(side, column, value)`. */
function makeControls(model, change) {
  const columns = model.columns.map((column, i) => ({ ...column, i }));
  columns.sort((one, two) => two.importance - one.importance);
  const shows = [];
  const folded = byId("rest");
  columns.forEach((column, place) => {
    const block = element("div", { class: "column", role: "group" });
    const name = element("h3", { id: `name${column.i}`, dir: "auto" }, column.name);
    name.title = column.name;
    block.setAttribute("aria-labelledby", name.id);
    const share = element("span", { class: "quiet" }, formatImportance(column.importance));
    const head = element("div", { class: "head" });
    head.append(name, share);
    const sides = element("div", { class: "sides" });
    block.append(head, sides);
    const controls = NAMES.map((_, side) => makeControl(column, side, (value) => change(side, column.i, value)));
    sides.append(...controls.map(({ host }) => host));
    (place < MAX_OPEN ? byId("columns") : folded.querySelector("div")).append(block);
    shows.push((subjects) => {
      controls.forEach((control, side) => {
        control.host.hidden = side >= subjects.length;
        if (side < subjects.length) control.show(subjects[side].values[column.i]);
      });
      const differs = subjects.length > 1 && subjects[0].values[column.i] !== subjects[1].values[column.i];
      block.classList.toggle("differs", differs);
    });
  });
  const more = columns.length - MAX_OPEN;
  folded.hidden = more <= 0;
  folded.querySelector("summary").textContent = `${more} more, of less importance`;
  return (subjects) => shows.forEach((show) => show(subjects));
}

function formatImportance(share) {
  return share > 0 ? `importance ${formatPercent(share)}` : "not used";
}

function makeControl(column, side, change) {
  const host = element("div", { class: `side side${NAMES[side]}` });
  host.append(element("span", { class: "badge", "aria-hidden": "true" }, NAMES[side]));
  const label = `${column.name}, subject ${NAMES[side]}`;
  if (column.choices) return { host, show: makeChoice(host, column, label, change) };
  if ((column.low === null || column.low === column.high) && column.missing > 0 && column.missing < 1) {
    return { host, show: makeChoice(host, { ...column, choices: [{ value: column.typical, share: 1, text: "not missing" }] }, label, change) };
  }
  if (column.low === null || column.low === column.high) {
    host.append(element("span", { class: "quiet" }, "constant in the training rows: no effect"));
    return { host, show: () => {} };
  }
  return { host, show: makeScale(host, column, label, change) };
}

/* A choice among a few values. */
function makeChoice(host, column, label, change) {
  const select = element("select", { "aria-label": label });
  const options = [...column.choices.map(({ value, share, text }) => [value, text || `${formatExact(value)} (${formatPercent(share)})`]),
    [null, column.missing ? `missing (${formatPercent(column.missing)} of all rows)` : "missing"]];
  const fill = () => select.replaceChildren(...options.map(([, text], k) => element("option", { value: k }, text)));
  fill();
  select.addEventListener("change", () => change(options[select.selectedIndex][0]));
  host.append(select);
  return (value) => {
    let at = options.findIndex(([each]) => each === value);
    if (at < 0) {
      at = options.push([value, formatExact(value) + (column.exact ? " (not in the training rows)" : "")]) - 1;
      fill();
    }
    select.selectedIndex = at;
  };
}

/* A slider with the quantiles of the training rows marked, a box for the exact value, and a box for missing. */
function makeScale(host, column, label, change) {
  const isDate = column.kind === "date";
  const number = (value) => (isDate ? toDays(value) : value);
  const value = (place) => (isDate ? fromDays(place) : Number(place.toFixed(decimals)));
  const step = column.step, decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const low = Math.floor(number(column.low) / step + 1e-9) * step;
  const high = Math.ceil(number(column.high) / step - 1e-9) * step;
  const slider = element("input", { type: "range", min: low, max: high, step, "aria-label": label });
  const box = element("input", isDate ? { type: "date" } : { type: "number", step: "any" });
  box.setAttribute("aria-label", `${label}, exact value`);
  const id = `missing${nBoxes++}`;
  const missing = element("input", { type: "checkbox", id });
  const missingLabel = element("label", { class: "missing", for: id }, "missing");
  missingLabel.prepend(missing);
  missing.setAttribute("aria-label", `${label}, missing`);
  const marks = element("div", { class: "marks", "aria-hidden": "true" });
  const place = (node, at) => { node.style.left = `calc(8px + (100% - 16px) * ${(at - low) / (high - low)})`; };
  const middle = element("span", { class: "middle" });
  const [, first, , third] = column.quantiles.map((mark) => number(mark.value));
  place(middle, first);
  middle.style.width = `calc((100% - 16px) * ${(third - first) / (high - low)})`;
  marks.append(middle);
  for (const { level, value: at } of column.quantiles) {
    const mark = element("span", { class: level === 0.5 ? "mark median" : "mark" });
    place(mark, number(at));
    marks.append(mark);
  }
  const scale = element("div", { class: "scale" });
  scale.title = "Marks: " + column.quantiles.map((mark) => `${formatPercent(mark.level)} ${formatCell(mark.value, column)}`).join(", ");
  const ends = element("div", { class: "ends quiet", "aria-hidden": "true" });
  ends.append(element("span", {}, formatCell(column.low, column)), element("span", {}, formatCell(column.high, column)));
  scale.append(slider, marks, ends);
  const beyond = element("span", { class: "beyond note", role: "note" });
  const line = element("div", { class: "line-of-box" });
  line.append(box);
  if (column.kind === "duration") line.append(element("span", { class: "quiet" }, "days"));
  line.append(missingLabel);
  host.append(line, scale, beyond);
  let kept = column.typical;
  slider.addEventListener("input", () => change(value(Number(slider.value))));
  box.addEventListener("input", () => {
    const typed = isDate ? (box.value || null) : box.value === "" ? null : Number(box.value);
    if (typed === null || !isValue(typed, column)) return;
    change(typed, box);
  });
  box.addEventListener("blur", () => show(kept, true));
  missing.addEventListener("change", () => change(missing.checked ? null : kept));
  function show(now, force = false) {
    const isMissing = now === null;
    missing.checked = isMissing && !force;
    slider.disabled = box.disabled = missing.checked;
    host.classList.toggle("is-missing", missing.checked);
    if (!isMissing) {
      kept = now;
      slider.value = number(now);
      slider.setAttribute("aria-valuetext", formatCell(now, column));
      if (force || document.activeElement !== box) {
        box.value = isDate ? now.slice(0, 10) : now;
      }
    }
    const outside = column.exact && !isMissing && (number(now) < number(column.low) || number(now) > number(column.high));
    beyond.textContent = outside ? "outside the range of the training rows" : "";
  }
  return (now) => show(now);
}

function formatExact(value) {
  return typeof value === "number" ? withMinus(String(value)) : String(value);
}

/* A value of a column in few characters. */
function formatCell(value, { kind }) {
  if (value === null) return "missing";
  if (kind === "date") return value.slice(0, 10);
  return typeof value === "number" ? formatNumber(value) : value;
}
