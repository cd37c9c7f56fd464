"use strict";
/* Rows: the list, which sorts and searches, and the curve of the selected row.
   A row is an array; report/rows.py writes its fields in this order. Some rows end before INITIAL:
   they have no curve. */

const [LABEL, TIME, EVENT, QUANTILES, MAX_LEVEL, LAST_NEIGHBOUR, INITIAL, STEPS, SURVIVAL, SHARES, CAUSE, OF_CAUSES] = Array(12).keys();

const MAX_SHOWN = 500;  // rows that the list has at once; a search reaches all

function listRows(content, state) {
  const { words } = content;
  const fromLeft = content.censoring === "left";
  const beyond = fromLeft ? "<" : ">";
  const levels = content.levels;
  const body = document.querySelector("#table tbody");
  const intervals = new Map(content.rows.rows.map((row, i) => [row, content.rows.intervals?.[i] ?? {}]));
  const outcome = (row) => ({ time: row[TIME], event: Boolean(row[EVENT]), lower: intervals.get(row).lower });
  const nameEvent = (row) => (row[EVENT] && row[CAUSE]) || words.event;
  const status = (row) => {
    if (intervals.get(row).lower !== undefined) return nameKind(outcome(row));
    return row[EVENT] ? nameEvent(row) : "censored";
  };
  const hasCurve = (row) => row.length > INITIAL;
  const hasPrediction = (row) => row[LAST_NEIGHBOUR] !== null;

  /* Long labels often differ at their ends. */
  function shorten(label) {
    const signs = Array.from(label);
    if (signs.length <= 24) return label;
    return signs.slice(0, 13).join("") + "…" + signs.slice(-10).join("");
  }
  function formatQuantile(row, k) {
    if (!hasPrediction(row)) return "not out of bag";
    return row[QUANTILES][k] === null ? beyond + formatNumber(row[LAST_NEIGHBOUR]) : formatNumber(row[QUANTILES][k]);
  }
  function formatInterval(row) {
    const [low, high] = [formatQuantile(row, 0), formatQuantile(row, levels.length - 1)];
    return low === high ? low : `${low} to ${high}`;
  }
  function formatMaxLevel(row) {
    return row[MAX_LEVEL] === null ? "none" : formatPercent(row[MAX_LEVEL]);
  }
  /* Sort key: unidentified quantiles beyond all others, rows without a prediction at the end. */
  function sortKey(row, k) {
    if (!hasPrediction(row)) return null;
    const value = row[QUANTILES][k];
    const beyondAll = fromLeft ? -1e300 : 1e300;
    return value === null ? beyondAll : value;
  }
  const top = levels.length - 1;
  const columns = [
    { head: () => "Row", cell: (row) => shorten(String(row[LABEL])), by: (row) => row[LABEL] },
    { head: () => words.time.charAt(0).toUpperCase() + words.time.slice(1), cell: (row) => formatObserved(outcome(row), fromLeft), by: (row) => row[TIME], number: true },
    { head: () => "Status", cell: status, by: status },
    { head: () => `${formatPercent(levels[state.level])} quantile`, number: true,
      cell: (row) => formatQuantile(row, state.level), by: (row) => sortKey(row, state.level) },
    { head: () => "80\u00a0% interval", cell: formatInterval, by: (row) => sortKey(row, fromLeft ? 0 : top),
      number: true },
    { head: () => (fromLeft ? "Min. level" : "Max. level"), cell: formatMaxLevel,
      by: (row) => row[MAX_LEVEL], number: true },
  ];

  const heads = columns.map((column, c) => {
    const th = element("th", { scope: "col", class: column.number ? "number" : "" });
    const button = element("button", { type: "button" }, column.head());
    button.addEventListener("click", () => sortBy(c));
    th.append(button);
    document.querySelector("#table thead tr").append(th);
    return { th, button };
  });
  const order = content.rows.rows.map((row) => ({ row, tr: null, text: `${row[LABEL]} ${status(row)}`.toLowerCase() }));
  let visible = [];
  let chosen = null;
  let sorted = { column: -1, up: true };

  /* A line of the list is made when it is first shown. */
  function makeLine(line) {
    if (line.tr) return line.tr;
    line.tr = element("tr", { tabindex: "-1" });
    line.tr.append(...columns.map((column) =>
      element("td", { class: column.number ? "number" : "" }, column.cell(line.row))));
    line.tr.cells[0].setAttribute("dir", "auto");
    line.tr.cells[0].title = String(line.row[LABEL]);
    line.tr.addEventListener("click", () => choose(line));
    line.tr.addEventListener("keydown", (event) => press(event, line));
    return line.tr;
  }

  function sortBy(c, keep = false) {
    const up = keep ? sorted.up : sorted.column === c ? !sorted.up : true;
    sorted = { column: c, up };
    const by = columns[c].by;
    order.sort((one, two) => {
      const [a, b] = [by(one.row), by(two.row)];
      if (a === null || b === null) return (a === null) - (b === null);
      const sign = typeof a === "number" && typeof b === "number"
        ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return (sorted.up ? 1 : -1) * sign;
    });
    heads.forEach(({ th }, k) => {
      if (k === c) th.setAttribute("aria-sort", up ? "ascending" : "descending");
      else th.removeAttribute("aria-sort");
    });
    showList();
  }

  function press(event, line) {
    const at = visible.indexOf(line);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10,
      Home: 0, End: visible.length - 1 };
    if (event.key === "Enter" || event.key === " ") choose(line);
    else if (event.key in to) {
      const next = visible[Math.max(0, Math.min(visible.length - 1, to[event.key]))];
      reach(next);
      next.tr.focus();
    } else return;
    event.preventDefault();
  }

  /* One row at a time is in the tab order. */
  function reach(line) {
    for (const { tr } of visible) tr.setAttribute("tabindex", "-1");
    makeLine(line).setAttribute("tabindex", "0");
  }

  function choose(line, scroll = true) {
    if (chosen) chosen.tr.removeAttribute("aria-current");
    chosen = line;
    reach(line);
    line.tr.setAttribute("aria-current", "true");
    showRow();
    const detail = byId("detail");
    const box = detail.getBoundingClientRect();
    if (scroll && (box.top < 0 || box.top > window.innerHeight)) detail.scrollIntoView();
  }

  /* Show the rows that the search finds, in their order; at first those that have a curve. */
  function showList() {
    const wanted = byId("search").value.trim().toLowerCase();
    const found = order.filter(({ row, text }) => (wanted || sorted.column >= 0 ? text.includes(wanted) : hasCurve(row)));
    visible = found.slice(0, MAX_SHOWN);
    body.replaceChildren(...visible.map(makeLine));
    if (visible.length) reach(visible.includes(chosen) ? chosen : visible[0]);
    byId("found").textContent = found.length > visible.length
      ? `the first ${formatCount(visible.length)} of ${formatCount(found.length)} rows found`
      : found.length === order.length ? `${formatCount(order.length)} rows` : `${formatCount(found.length)} of ${formatCount(order.length)} rows`;
  }

  function showRow() {
    const row = chosen.row;
    const unit = words.unit ? `\u00a0${words.unit}` : "";
    byId("chosen").textContent = `${row[LABEL]}: ${describeTime(nameEvent(row), outcome(row), fromLeft, unit)}`;
    byId("cause-quantiles").textContent = "";
    const list = byId("quantiles");
    list.replaceChildren();
    const host = byId("curve");
    if (!hasPrediction(row)) {
      draw(host, () => host.append(element("p", {},
        "Every tree has drawn this row, so it has no out-of-bag prediction.")));
      return;
    }
    levels.forEach((level, k) => {
      const item = element("li", {}, `${formatPercent(level)}: ${formatQuantile(row, k)}`);
      if (k === state.level) item.setAttribute("aria-current", "true");
      list.append(item);
    });
    if (row.length > OF_CAUSES) listOfCauses(row);
    draw(host, () => drawCurve(host, row));
  }

  /* The chosen quantile of each cause; null if its incidence does not reach the level. */
  function listOfCauses(row) {
    const found = row[OF_CAUSES].map((values) => values[state.level]);
    const texts = found.map((value, k) => `${content.causes[k]} ${value === null ? "not reached" : formatNumber(value)}`);
    byId("cause-quantiles").textContent = `${formatPercent(levels[state.level])} quantile of each cause: ${texts.join(", ")}`;
  }

  /* The curve of a row as far as its quantiles tell it. */
  function readQuantiles(row) {
    const known = levels.map((level, k) => [row[QUANTILES][k], 1 - level]).filter(([time]) => time !== null);
    const max = row[MAX_LEVEL] ?? (fromLeft ? 1 : 0);
    return { initial: fromLeft ? 1 - max : 1, times: known.map(([time]) => time), values: known.map(([, value]) => value) };
  }

  /* All causes of a row, as areas that add up to 1, up to the end of its curves. */
  function drawRowCauses(host, row) {
    const unit = content.rows.unit;
    const [low, last] = content.time_range;
    const high = Math.max(last + 0.12 * (last - low), row[TIME]);
    const steps = row[STEPS].map((i) => content.rows.times[i]);
    const times = [low, ...steps];
    const shares = row[SHARES].map((values) => [0, ...values.map((value) => value / unit)]);
    const free = times.map((_, i) => 1 - shares.reduce((sum, values) => sum + values[i], 0));
    const isLimited = free.at(-1) > 1e-3;
    const end = isLimited ? Math.max(times.at(-1), row[LAST_NEIGHBOUR]) : high;
    const at = drawCauses(host, { times, shares, end }, {
      label: `Incidence of each cause for ${row[LABEL]}. At ${formatNumber(end)}: ` +
        content.causes.map((cause, k) => `${cause} ${formatPercent(shares[k].at(-1))}`).join(", ") +
        `, no event ${formatPercent(free.at(-1))}.`,
      ratio: 0.72, legend: listCauses(content.causes),
      x: { low, high, title: words.time, format: formatNumber },
    });
    const observed = at.x(row[TIME]);
    shape(at.svg, "line", { class: "observed on-areas", x1: observed, x2: observed, y1: at.top, y2: at.bottom });
    writeBeside(at, observed, at.top + 12, status(row));
    addCursor(at, times.map((time, i) => ({
      x: at.x(time), y: at.y(1 - free[i]),
      lines: [`time ${formatNumber(time)}`, ...listShares(content.causes, free[i], shares.map((values) => values[i]))],
    })));
  }

  function drawCurve(host, row) {
    if (row.length > SHARES) {
      drawRowCauses(host, row);
      return;
    }
    const unit = content.rows.unit;
    const curve = hasCurve(row) ? {
      initial: row[INITIAL] / unit,
      times: row[STEPS].map((i) => content.rows.times[i]),
      values: row[SURVIVAL].map((value) => value / unit),
    } : readQuantiles(row);
    const [first, end] = content.time_range;
    const pad = 0.12 * (end - first);
    const low = fromLeft ? Math.min(first - pad, row[TIME]) : Math.min(first, row[TIME]);
    const high = Math.max(end + pad, row[TIME]);
    const left = !hasCurve(row) && !fromLeft ? 1 - (row[MAX_LEVEL] ?? 0)
      : curve.values.length ? curve.values.at(-1) : curve.initial;
    /* The curve ends at the last neighbour (under left censoring, it starts at the first). */
    const from = Math.min(...curve.times.slice(0, 1), row[LAST_NEIGHBOUR]);
    const until = Math.max(...curve.times.slice(-1), row[LAST_NEIGHBOUR]);
    const isLimited = fromLeft ? curve.initial < 1 - 1e-3 : left > 1e-3;
    const part = `${fromLeft ? "Levels below" : "Levels above"} ${formatMaxLevel(row)}`;
    const middle = levels[state.level];
    const label = `Survival curve of ${row[LABEL]}. Its ${formatPercent(middle)} quantile is ` +
      `${formatQuantile(row, state.level)}, its 80\u00a0% interval ${formatInterval(row)}.` +
      (isLimited ? ` ${part} are not identifiable because of censoring.` : "");
    const { curve: lower } = intervals.get(row);
    const at = drawAxes(host, {
      label, ratio: 0.72, legend: lower ? [["solid", "survival"], ["band", "not determined"]] : [],
      x: { low, high, title: words.time, format: formatNumber },
      y: { low: 0, high: 1, title: words.survival, format: formatPercent },
    });
    if (isLimited) {
      if (fromLeft) hatch(at, at.x(low), at.y(1), at.x(from), at.y(curve.initial));
      else hatch(at, at.x(until), at.y(left), at.x(high), at.y(0));
    }
    if (lower) {
      const values = lower.values.map((value) => value / unit);
      drawUndetermined(at, { initial: curve.initial, times: lower.times, values }, curve, low, until);
    }
    if (hasCurve(row)) {
      const path = stepPath(at, curve, fromLeft ? from : low, fromLeft ? high : until);
      shape(at.svg, "path", { class: "line", d: path });
    } else host.append(element("p", { class: "note" }, "This file has the quantiles of this row, and no curve."));
    if (isLimited) {
      const [cx, cy] = fromLeft ? [at.x(from), at.y(curve.initial)] : [at.x(until), at.y(left)];
      shape(at.svg, "circle", { class: "dot open", cx, cy, r: 5 });
    }
    drawObserved(at, outcome(row), status(row));
    const stops = [{ x: at.x(low), y: at.y(curve.initial), lines: [`time ${formatNumber(low)}`,
      `survival: ${formatPercent(curve.initial)}`] }];
    if (fromLeft) stops.pop();
    if (hasCurve(row)) {
      curve.times.forEach((time, i) => stops.push({ x: at.x(time), y: at.y(curve.values[i]),
        lines: [`time ${formatNumber(time)}`, `survival: ${formatPercent(curve.values[i])}`] }));
    }
    levels.forEach((level, k) => {
      const value = row[QUANTILES][k];
      if (value === null) return;
      const here = k === state.level;
      const [cx, cy] = [at.x(value), at.y(1 - level)];
      shape(at.svg, "circle", { class: here ? "dot" : "dot other", cx, cy, r: here ? 6 : 4.5 });
      stops.push({ x: cx, y: cy, lines: [`${formatPercent(level)} quantile: ${formatNumber(value)}`] });
      if (here) writeBelow(at, cx, cy, `${formatPercent(level)}: ${formatNumber(value)}`);
    });
    if (isLimited) {
      const short = at.y(0) - at.y(left) < 44;
      const y = fromLeft ? at.y(curve.initial) + 16 : (short ? at.y(left) : at.y(0)) - 24;
      const spot = { class: "label", x: fromLeft ? at.left + 4 : at.right - 4,
        "text-anchor": fromLeft ? "start" : "end" };
      shape(at.svg, "text", { ...spot, y }, "not identifiable:");
      shape(at.svg, "text", { ...spot, y: y + 15 }, part.toLowerCase());
    }
    stops.sort((one, two) => one.x - two.x);
    addCursor(at, stops);
  }

  /* Text on the left below a point of the curve, where the curve is not; or else on its right,
     lower than the line of the status. */
  function writeBelow(at, x, y, text) {
    if (x - at.left > 7 * text.length + 12) {
      shape(at.svg, "text", { class: "label", x: x - 8, y: y + 16, "text-anchor": "end" }, text);
    } else writeBeside(at, x + 6, Math.max(at.top + 28, y - 6), text);
  }

  byId("search").addEventListener("input", showList);
  showList();
  choose(visible[0], false);

  /* Redraw what depends on the chosen quantile. */
  return () => {
    heads.forEach(({ button }, c) => { button.textContent = columns[c].head(); });
    for (const { row, tr } of order) if (tr) tr.cells[3].textContent = columns[3].cell(row);
    if (sorted.column === 3) sortBy(3, true);
    showRow();
  };
}
