"use strict";
/* A treatment forest: sentence, survival curves of both arms, table of differences. */

/* What the page asks the server, and what it says about the answer. */
function makeQuestion(rows, _, model) {
  return ["effects", { rows, times: model.times }];
}

function describeAnswer({ answer, model }) {
  const [gained] = answer.rows[0].time_gained;
  const { control, treatment } = answer.arms;
  const unit = unitOf(model), format = formatByWidth(gained);
  const size = (value) => `${format(Math.abs(value))}${unit} ${value < 0 ? "shorter" : "longer"}`;
  if (gained.value === null) return [`The difference between ${treatment} and ${control} is not known up to ${formatNumber(gained.horizon)}${unit}.`];
  const level = formatPercent(answer.confidence);
  const interval = gained.lower === null ? "" : ` (${level} interval: ${size(gained.lower)} to ${size(gained.upper)})`;
  const unclear = gained.lower !== null && gained.lower <= 0 && gained.upper >= 0 ? " The interval includes no difference." : "";
  return [`For subjects like this, the mean time up to ${formatNumber(gained.horizon)}${unit} is ${size(gained.value)} with ${treatment} than with ${control}${interval}.${unclear}`];
}

/* Format of an effect and its ends: digits that are small beside the width of the interval are left out. */
function formatByWidth({ value, lower, upper }) {
  const width = lower === null ? Math.abs(value) : upper - lower;
  const decimals = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(width || 1))));
  return (each) => withMinus(Number(each.toFixed(decimals)).toLocaleString("en-US", { maximumFractionDigits: decimals }));
}

function describeModel(model) {
  const arms = model.arms.map(({ name, rows, events }) => `${name} (${formatCount(rows)} rows, ${formatCount(events)} events)`).reverse().join(" and ");
  return `${model.name}: ${model.trees} trees grown from ${formatCount(model.rows)} rows` + (model.notes.source ? ` of ${model.notes.source}` : "") +
    ` of two arms, ${arms}. Move a covariate to compare the arms for other subjects.`;
}

function drawCurves(host, { answer, model }) {
  const { times, arms } = answer;
  const { curves } = answer.rows[0];
  const at = drawAxes(host, {
    label: `Survival curves of ${arms.treatment} and ${arms.control}. ${describeAnswer({ answer, model })[0]}`, ratio: 0.56,
    x: { low: times[0], high: times.at(-1), title: nameTimes(model), format: formatNumber },
    y: { low: 0, high: 1, title: nameSurvival(model), format: formatPercent },
  });
  shadeDifference(at, times, curves);
  drawHorizon(at, model);
  for (const arm of ARMS) {
    const points = times.map((time, i) => [time, curves[arm][i]]).filter(([, value]) => value !== null);
    shape(at.svg, "path", { class: arm === "control" ? "line second curve" : "line curve", d: `M${joinPoints(at, toSteps(points))}` });
    if (points.length === times.length) continue;
    const [time, value] = points.at(-1);
    shape(at.svg, "circle", { class: `dot open ${arm}`, cx: at.x(time), cy: at.y(value), r: 5 });
  }
  labelArms(at, ARMS.map((arm) => arms[arm]), times, ARMS.map((arm) => curves[arm]));
  addCursor(at, times.map((time, i) => ({
    x: at.x(time), y: curves.treatment[i] === null ? null : at.y(curves.treatment[i]),
    lines: [`time ${formatNumber(time)}${unitOf(model)}`, ...["treatment", "control"].map((arm) =>
      `${arms[arm]}: ${curves[arm][i] === null ? "not known" : formatPercent(curves[arm][i])}`)],
  })));
}

/* Shade between the curves, in the colour of the arm that is above, as far as both are known. */
function shadeDifference(at, times, { control, treatment }) {
  const sign = (i) => (control[i] === null || treatment[i] === null ? 0 : Math.sign(treatment[i] - control[i]));
  for (let i = 0; i + 1 < times.length; i++) {
    if (!sign(i)) continue;
    const first = i;
    while (i + 2 < times.length && sign(i + 1) === sign(first)) i++;
    const edge = (values) => toSteps([...times.slice(first, i + 1).map((time, k) => [time, values[first + k]]), [times[i + 1], values[i]]]);
    drawBand(at, edge(treatment), edge(control), sign(first) > 0 ? "fill-band" : "fill-band of-b");
  }
}

function drawHorizon(at, { horizon }) {
  const x = at.x(horizon);
  shape(at.svg, "line", { class: "horizon", x1: x, x2: x, y1: at.top, y2: at.bottom });
  writeBeside(at, x, at.top + 11, `horizon ${formatNumber(horizon)}`);
}

/* Table of differences, and what is assumed. */
function fillNumbers({ answer, model }) {
  const { arms, rows: [row] } = answer;
  const unit = unitOf(model), level = formatPercent(answer.confidence);
  const table = byId("effects");
  const head = element("tr");
  head.append(element("th", { scope: "col", dir: "auto" }, `${shortenName(arms.treatment)} less ${shortenName(arms.control)}`), element("th", { scope: "col", class: "number" }, "Difference"),
    element("th", { scope: "col", class: "number" }, `${level} interval`));
  table.querySelector("thead").replaceChildren(head);
  const sign = (text) => (/[1-9]/.test(text) && !text.startsWith("\u2212") ? `+${text}` : text);
  const line = (name, effect, note = "", factor = 1) => {
    const scaled = Object.fromEntries(["value", "lower", "upper"].map((key) => [key, effect[key] === null ? null : factor * effect[key]]));
    const plain = scaled.value === null ? null : formatByWidth(scaled);
    const format = (value) => sign(plain(value));
    const tr = element("tr"), title = element("th", { scope: "row" }, name);
    if (note) title.append(element("span", { class: "note", dir: "auto" }, note));
    const interval = scaled.lower === null ? "unknown" : `${format(scaled.lower)} to ${format(scaled.upper)}`;
    tr.append(title, element("td", { class: "number" }, scaled.value === null ? "unknown" : format(scaled.value)), element("td", { class: "number" }, interval));
    return tr;
  };
  const survival = model.event_name ? `Without ${model.event_name}` : "Survival";
  table.querySelector("tbody").replaceChildren(
    ...row.time_gained.map((effect) => line(`Time gained up to ${formatNumber(effect.horizon)}${unit}`, effect)),
    ...row.survival.map((effect) => line(`${survival} at ${formatNumber(effect.time)}${unit}, %\u00a0points`, effect, "", 100)),
    ...row.quantiles.map((effect) => line("Median time", effect,
      `${shortenName(arms.treatment)} ${formatTime(effect.treatment)}, ${shortenName(arms.control)} ${formatTime(effect.control)}`)));
  const hidden = row.quantiles.some(({ reason }) => reason === "not_identifiable");
  const notes = [answer.assumption, "The time gained and the differences of survival are estimated directly; the difference of the medians is read off the curves.", ...(hidden ? ["The difference of the medians is not identifiable: censoring hides the median of an arm."] : [])];
  byId("notes").replaceChildren(...notes.map((text) => element("p", {}, text)));
}
