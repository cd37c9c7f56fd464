"use strict";
/* The prediction for the subjects: sentence, chart of survival curves, table of quantiles. */

const WORDS = { 0.1: "for one in ten", 0.25: "for a quarter", 0.5: "for half", 0.75: "for three quarters", 0.9: "for nine in ten" };
const EVENT = "the event";  // if the model has no name for it
const NEGLIGIBLE = 0.002;  // share of unidentified levels that is not mentioned

function atLevel(subject, level) {
  return subject.quantiles.find((quantile) => quantile.level === level);
}

function isLimited({ estimable }) {
  return estimable.from_level > NEGLIGIBLE || estimable.to_level < 1 - NEGLIGIBLE;
}

/* Whether nothing is known of the time that remains. */
function isUnknown(subject) {
  return subject.quantiles.some(({ reason }) => reason === "given_too_late");
}

/* Whether a quantile is known, and is not written as the bound of the other. */
function isBeforeEnd(quantile, other) {
  return quantile.value !== null && (other.value !== null || formatNumber(quantile.value) !== formatNumber(other.bound));
}

/* What the page asks the server, and what it says about the answer. */
function makeQuestion(rows, given) {
  return ["subjects", { subjects: rows, given }];
}

function describeAnswer({ answer, model }) {
  return answer.subjects.map((subject) => describeSubject(subject, model, answer.given));
}

function describeModel(model) {
  const censored = `${formatPercent(1 - model.events / model.rows)} of them ${model.notes.lower ? "right-" : ""}censored`;
  return `${model.name}: ${model.trees} trees grown from ${formatCount(model.rows)} rows` +
    (model.notes.source ? ` of ${model.notes.source}` : "") + `, ${censored}. Move a covariate to see how the prediction changes: this compares ` +
    "subjects who differ in it, and does not predict what happens if someone changes it.";
}

/* The prediction in a sentence. */
function describeSubject(subject, model, given) {
  if (given !== null) return describeRemaining(subject, model, given);
  const [early, half] = [atLevel(subject, 0.1), atLevel(subject, 0.5)];
  const event = capitalise(model.event_name || EVENT), unit = unitOf(model);
  const time = (quantile) => formatTime(quantile) + unit;
  if (model.censoring === "left") {
    return half.value === null
      ? `${event} comes before ${formatNumber(half.bound)}${unit} for more than half of subjects like this; earlier times are not identifiable because of censoring.`
      : `${event} is expected by ${time(half)} for half of subjects like this, by ${time(atLevel(subject, 0.9))} for nine in ten.`;
  }
  const first = isBeforeEnd(early, half) ? `by ${time(early)} for one in ten` : "";
  if (half.value !== null) {
    return `${event} is expected by ${time(half)} for half of subjects like this${first ? `, ${first}` : ""}.`;
  }
  const known = `by ${formatNumber(half.bound)}${unit} for ${formatPercent(subject.estimable.to_level)}`;
  return `${event} is expected ${first ? `${first}, ${known}` : known} of subjects like this; later times are not identifiable because of censoring.`;
}

/* The prediction of the time that remains. */
function describeRemaining(subject, model, given) {
  const unit = unitOf(model), event = model.event_name || EVENT, survived = `${formatNumber(given)}${unit}`;
  if (isUnknown(subject)) return `No training row like this subject was at risk after ${survived}: nothing is known of the time that remains.`;
  const [early, half] = [atLevel(subject, 0.1), atLevel(subject, 0.5)];
  const within = (quantile) => `within another ${formatTime(quantile)}${unit}`;
  const first = isBeforeEnd(early, half) ? `${within(early)} for one in ten` : "";
  const start = `After ${survived} already survived, ${event} is expected`;
  if (half.value !== null) return `${start} ${within(half)} for half of subjects like this${first ? `, ${first}` : ""}.`;
  const reach = `within another ${formatNumber(half.bound)}${unit}`, hidden = "later times are not identifiable because of censoring";
  if (subject.estimable.to_level < NEGLIGIBLE) return `After ${survived} already survived, ${event} is not expected ${reach} for subjects like this; ${hidden}.`;
  const known = `${reach} for ${formatPercent(subject.estimable.to_level)}`;
  return `${start} ${first ? `${first}, ${known}` : known} of subjects like this; ${hidden}.`;
}

/* The title of the axis of time: the time that remains, if some was survived. */
function nameAxis(model, given) {
  if (given === null) return nameTimes(model);
  return `remaining time${model.time_unit ? ` (${model.time_unit})` : ""} after ${formatNumber(given)}${unitOf(model)} survived`;
}

/* Points of the known part of a curve, [time, value, place in the grid]: up to its end. */
function knownPart(subject, times, fromLeft) {
  const { bound, from_level, to_level } = subject.estimable;
  const points = times.map((time, i) => [time, subject.survival[i], i]).filter(([, value]) => value !== null);
  if (points.length === times.length || isUnknown(subject)) return points;
  if (fromLeft) return [[bound, 1 - from_level, null], ...points];
  return [...points, [bound, 1 - to_level, null]];
}

function drawCurves(host, { answer, model }) {
  const { times, subjects } = answer;
  if (subjects[0].incidence) {
    drawIncidence(host, answer, model);
    return;
  }
  const fromLeft = model.censoring === "left";
  const [low, high] = [times[0], times.at(-1)];
  const both = subjects.length > 1;
  const legend = subjects.map((_, k) => [k ? "dashed" : "solid", both ? `subject ${NAMES[k]}` : "survival"]);
  if (subjects[0].lower) legend.push(["band", `${formatPercent(answer.confidence.level)} confidence`]);
  legend.push(["bar-of-time", "80\u00a0% interval"]);
  const at = drawAxes(host, {
    label: subjects.map((subject, k) => `Survival curve of subject ${NAMES[k]}. ${describeSubject(subject, model, answer.given)}`).join(" "),
    ratio: 0.56, legend,
    x: { low, high, title: nameAxis(model, answer.given), format: formatNumber },
    y: { low: 0, high: 1, title: nameSurvival(model), format: formatPercent },
  });
  subjects.forEach((subject) => drawUnidentified(at, subject, fromLeft, low, high));
  subjects.forEach((subject, k) => {
    if (!subject.lower) return;
    const inside = knownPart(subject, times, fromLeft).filter(([, , i]) => i !== null);
    const edge = (values) => toSteps(inside.map(([time, , i]) => [time, values[i]]));
    drawBand(at, edge(subject.upper), edge(subject.lower), k ? "fill-band of-b" : "fill-band");
  });
  subjects.forEach((subject, k) => {
    if (isUnknown(subject)) return;
    const points = knownPart(subject, times, fromLeft);
    const path = `M${joinPoints(at, toSteps(points))}`;
    shape(at.svg, "path", { class: k ? "line second curve" : "line curve", d: path });
    if (isLimited(subject)) {
      const [time, value] = fromLeft ? points[0] : points.at(-1);
      shape(at.svg, "circle", { class: k ? "dot open of-b" : "dot open", cx: at.x(time), cy: at.y(value), r: 5 });
    }
    drawInterval(at, subject, k, low, high);
  });
  subjects.forEach((subject, k) => drawDots(at, subject, k, both));
  labelUnidentified(at, subjects, fromLeft);
  addCursor(at, times.map((time, i) => ({
    x: at.x(time), y: subjects[0].survival[i] === null ? null : at.y(subjects[0].survival[i]),
    lines: [`${answer.given === null ? "time" : "another"} ${formatNumber(time)}${unitOf(model)}`, ...subjects.map((subject, k) =>
      `${both ? `${NAMES[k]}: ` : "survival: "}${formatSurvival(subject, i)}`)],
  })));
}

function formatSurvival(subject, i) {
  if (subject.survival[i] === null) return "not identifiable";
  const range = subject.lower ? ` (${formatPercent(subject.lower[i])} to ${formatPercent(subject.upper[i])})` : "";
  return formatPercent(subject.survival[i]) + range;
}

/* Hatch the part of the chart that is not identifiable. */
function drawUnidentified(at, subject, fromLeft, low, high) {
  if (!isLimited(subject)) return;
  const { bound, from_level, to_level } = subject.estimable;
  const [x, end] = fromLeft ? [at.x(low), at.x(bound)] : [at.x(bound ?? low), at.x(high)];
  const [y, foot] = fromLeft ? [at.y(1), at.y(1 - from_level)] : [at.y(1 - to_level), at.y(0)];
  hatch(at, x, y, end, foot);
}

/* Its label, in the middle of the widest gap between the heights at which the curves end. */
function labelUnidentified(at, subjects, fromLeft) {
  if (!subjects.some(isLimited)) return;
  const heights = subjects.map(({ estimable }) => (fromLeft ? estimable.from_level : 1 - estimable.to_level));
  const ends = [0, ...heights].sort((one, two) => one - two);
  const gaps = ends.slice(1).map((end, i) => [end - ends[i], (end + ends[i]) / 2]);
  const [, center] = gaps.reduce((one, two) => (two[0] > one[0] ? two : one));
  const middle = fromLeft ? 1 - center : center;
  const [x, anchor] = fromLeft ? [at.left + 6, "start"] : [at.right - 6, "end"];
  const y = Math.max(at.top + 12, Math.min(at.bottom - 26, at.y(middle) + 4));
  shape(at.svg, "text", { class: "label", x, y, "text-anchor": anchor }, "not identifiable");
}

/* The 80 % interval, along the axis; dotted where an end is not identifiable. */
function drawInterval(at, subject, k, low, high) {
  const y = at.bottom - 7 - 9 * k;
  const [first, last] = [atLevel(subject, 0.1), atLevel(subject, 0.9)];
  const line = (kind, from, to) => shape(at.svg, "line",
    { class: `span ${kind}${k ? " of-b" : ""}`, x1: at.x(from), x2: at.x(to), y1: y, y2: y });
  const from = first.value ?? Math.max(low, first.bound), to = last.value ?? Math.min(high, last.bound);
  if (first.value === null && first.reason === "before_bound") line("unknown", low, from);
  if (last.value === null && last.reason === "after_bound") line("unknown", to, high);
  line("known", from, to);
}

function drawDots(at, subject, k, both) {
  for (const { level, value } of subject.quantiles) {
    if (value === null) continue;
    const isHalf = level === 0.5;
    const [cx, cy] = [at.x(value), at.y(1 - level)];
    shape(at.svg, "circle", { class: k ? "dot of-b" : "dot", cx, cy, r: isHalf ? 6 : 4 });
    if (!isHalf) continue;
    const text = `${both ? `${NAMES[k]} ` : ""}half by ${formatNumber(value)}`;
    writeBeside(at, cx, cy - 8, text, 10);
  }
}

/* Table of quantiles, and notes on what is not identifiable. */
function fillNumbers({ answer, model }) {
  const { subjects } = answer;
  const both = subjects.length > 1;
  const head = element("tr");
  const by = answer.given === null ? "by" : "within";
  const since = answer.given === null ? "" : ` from ${formatNumber(answer.given)}${unitOf(model)} on`;
  head.append(element("th", { scope: "col" }, `${capitalise(model.event_name || "event")} expected${since}`));
  subjects.forEach((_, k) => head.append(element("th", { scope: "col", class: `number side${NAMES[k]}` }, both ? NAMES[k] : model.time_unit || "time")));
  if (both) head.append(element("th", { scope: "col", class: "number" }, "B − A"));
  const table = byId("quantiles");
  table.querySelector("thead").replaceChildren(head);
  const row = (name, cells) => {
    const tr = element("tr");
    tr.append(element("th", { scope: "row" }, name), ...cells.map((text) => element("td", { class: "number" }, text)));
    return tr;
  };
  const rows = subjects[0].quantiles.map(({ level }) => {
    const found = subjects.map((subject) => atLevel(subject, level));
    const cells = found.map(formatTime);
    if (both) cells.push(describeDifference(...found));
    return row(`${WORDS[level] || formatPercent(level)} ${by}`, cells);
  });
  const spans = subjects.map((subject) => {
    const [from, to] = [0.1, 0.9].map((level) => formatTime(atLevel(subject, level)));
    return from === to ? from : `${from} to ${to}`;
  });
  rows.push(row("for eight in ten, from", both ? [...spans, ""] : spans));
  table.querySelector("tbody").replaceChildren(...rows);
  const notes = subjects.map((subject, k) => describeLimit(subject, both ? `For ${NAMES[k]}, ` : "", model, answer.given)).filter(Boolean);
  if (answer.confidence.reason && !model.causes.length) notes.push(describeNoBand(answer.confidence.reason));
  byId("notes").replaceChildren(...notes.map((text) => element("p", {}, text)));
}

/* The second quantile less the first; a bound if one of them has only a bound. */
function describeDifference(first, second) {
  const isKnown = [first, second].map(({ value }) => value !== null);
  if (!isKnown.includes(true)) return "unknown";
  const difference = (second.value ?? second.bound) - (first.value ?? first.bound);
  if (!isKnown.includes(false)) return formatDifference(difference);
  const isAbove = isKnown[0] ? second.reason === "after_bound" : first.reason === "before_bound";
  const isLater = difference > 0 || (difference === 0 && isAbove);
  if (difference === 0) return isLater ? "later" : "earlier";
  return `${isAbove === isLater ? "more" : "less"} than ${formatNumber(Math.abs(difference))} ${isLater ? "later" : "earlier"}`;
}

function describeLimit(subject, who, model, given) {
  if (!isLimited(subject) || isUnknown(subject)) return "";
  const { from_level, to_level, bound } = subject.estimable;
  const text = model.censoring === "left"
    ? `levels below ${formatPercent(from_level)} are not identifiable because of censoring: the first neighbour has time ${formatNumber(bound)}${unitOf(model)}.`
    : `levels above ${formatPercent(to_level)} are not identifiable because of censoring: the last neighbour was followed for ${given === null ? "" : "another "}${formatNumber(bound)}${unitOf(model)}.`;
  return who ? who + text : text[0].toUpperCase() + text.slice(1);
}

function describeNoBand(reason) {
  return reason.includes("bag_size")
    ? "Fit with --bag-size 2 for a confidence band."
    : `No confidence band: ${reason}`;
}
