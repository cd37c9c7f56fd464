/* The prediction for the subjects: sentence, chart of survival curves, table of quantiles. */

const WORDS = { 0.1: "for one in ten by", 0.25: "for a quarter by", 0.5: "for half by", 0.75: "for three quarters by", 0.9: "for nine in ten by" };
const NEGLIGIBLE = 0.002;  // share of unidentified levels that is not mentioned

function formatTime({ value, bound, reason }) {
  if (value !== null) return formatNumber(value);
  return `${reason === "before_bound" ? "before" : "after"} ${formatNumber(bound)}`;
}

function atLevel(subject, level) {
  return subject.quantiles.find((quantile) => quantile.level === level);
}

function isLimited({ estimable }) {
  return estimable.from_level > NEGLIGIBLE || estimable.to_level < 1 - NEGLIGIBLE;
}

/* The prediction in a sentence. */
function describeSubject(subject, model) {
  const [early, half] = [atLevel(subject, 0.1), atLevel(subject, 0.5)];
  if (model.censoring === "left") {
    const late = atLevel(subject, 0.9);
    return half.value === null
      ? `The event comes before ${formatNumber(half.bound)} for more than half of subjects like this; earlier times are not identifiable because of censoring.`
      : `Half of subjects like this are expected to have the event by ${formatTime(half)}; nine in ten by ${formatTime(late)}.`;
  }
  if (half.value !== null) {
    return `Half of subjects like this are expected to have the event by ${formatNumber(half.value)}` +
      (early.value === null ? "." : `; one in ten by ${formatNumber(early.value)}.`);
  }
  const known = `${formatPercent(subject.estimable.to_level)} of subjects like this are expected to have the event by ${formatNumber(half.bound)}`;
  const start = early.value === null ? known : `One in ten subjects like this are expected to have the event by ${formatNumber(early.value)}, ` +
    `${formatPercent(subject.estimable.to_level)} by ${formatNumber(half.bound)}`;
  return `${start}; later times are not identifiable because of censoring.`;
}

/* Points of the identifiable part of a curve. */
function knownPart(subject, times, fromLeft) {
  const { bound, from_level, to_level } = subject.estimable;
  const points = times.map((time, i) => [time, subject.survival[i], i]);
  if (!isLimited(subject)) return points;
  if (fromLeft) return [[bound, 1 - from_level, null], ...points.filter(([time]) => time > bound)];
  return [...points.filter(([time]) => time < bound), [bound, 1 - to_level, null]];
}

function drawCurves(host, { answer, model }) {
  const { times, subjects } = answer;
  const fromLeft = model.censoring === "left";
  const [low, high] = [times[0], times.at(-1)];
  const both = subjects.length > 1;
  const legend = subjects.map((_, k) => [k ? "dashed" : "solid", both ? `subject ${NAMES[k]}` : "survival"]);
  if (subjects[0].lower) legend.push(["band", `${formatPercent(answer.confidence.level)} confidence`]);
  legend.push(["bar-of-time", "80\u00a0% interval"]);
  const at = drawAxes(host, {
    label: subjects.map((subject, k) => `Survival curve of subject ${NAMES[k]}. ${describeSubject(subject, model)}`).join(" "),
    ratio: 0.56, legend,
    x: { low, high, title: model.notes.time || "time", format: formatNumber },
    y: { low: 0, high: 1, title: "survival probability", format: formatPercent },
  });
  subjects.forEach((subject) => drawUnidentified(at, subject, fromLeft, low, high));
  subjects.forEach((subject, k) => {
    if (!subject.lower) return;
    const inside = knownPart(subject, times, fromLeft).filter(([, , i]) => i !== null);
    const edge = (values) => inside.map(([time, , i]) => `${at.x(time).toFixed(1)} ${at.y(values[i]).toFixed(1)}`);
    const path = `M${[...edge(subject.upper), ...edge(subject.lower).reverse()].join("L")}Z`;
    shape(at.svg, "path", { class: k ? "fill-band of-b" : "fill-band", d: path });
  });
  subjects.forEach((subject, k) => {
    const points = knownPart(subject, times, fromLeft);
    const path = points.map(([time, value], i) => `${i ? "L" : "M"}${at.x(time).toFixed(1)} ${at.y(value).toFixed(1)}`);
    shape(at.svg, "path", { class: k ? "line second curve" : "line curve", d: path.join("") });
    if (isLimited(subject)) {
      const [time, value] = fromLeft ? points[0] : points.at(-1);
      shape(at.svg, "circle", { class: k ? "dot open of-b" : "dot open", cx: at.x(time), cy: at.y(value), r: 5 });
    }
    drawInterval(at, subject, k, low, high);
  });
  subjects.forEach((subject, k) => drawDots(at, subject, k, both));
  labelUnidentified(at, subjects, fromLeft);
  addCursor(at, times.map((time, i) => ({
    x: at.x(time), y: at.y(subjects[0].survival[i]),
    lines: [`time ${formatNumber(time)}`, ...subjects.map((subject, k) =>
      `${both ? `${NAMES[k]}: ` : "survival: "}${formatSurvival(subject, i, time, fromLeft)}`)],
  })));
}

function formatSurvival(subject, i, time, fromLeft) {
  const { bound } = subject.estimable;
  if (isLimited(subject) && (fromLeft ? time < bound : time > bound)) return "not identifiable";
  const range = subject.lower ? ` (${formatPercent(subject.lower[i])} to ${formatPercent(subject.upper[i])})` : "";
  return formatPercent(subject.survival[i]) + range;
}

function unidentifiedShare({ estimable }) {
  return 1 - estimable.to_level + estimable.from_level;
}

/* Hatch the part of the chart that is not identifiable. */
function drawUnidentified(at, subject, fromLeft, low, high) {
  if (!isLimited(subject)) return;
  const { bound, from_level, to_level } = subject.estimable;
  const [x, end] = fromLeft ? [at.x(low), at.x(bound)] : [at.x(bound), at.x(high)];
  const [y, foot] = fromLeft ? [at.y(1), at.y(1 - from_level)] : [at.y(1 - to_level), at.y(0)];
  shape(at.svg, "rect", { class: "fill-hatch", x, y, width: Math.max(0, end - x), height: Math.max(0, foot - y) });
}

/* Its label, between the heights at which the curves end. */
function labelUnidentified(at, subjects, fromLeft) {
  const widest = subjects.reduce((one, two) => (unidentifiedShare(two) > unidentifiedShare(one) ? two : one));
  if (!isLimited(widest)) return;
  const height = ({ estimable }) => (fromLeft ? estimable.from_level : 1 - estimable.to_level);
  const heights = subjects.map(height);
  const next = Math.max(0, ...heights.filter((each) => each < height(widest)));
  const middle = fromLeft ? 1 - (height(widest) + next) / 2 : (height(widest) + next) / 2;
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
    const turns = cx > at.right - 8 * text.length;
    shape(at.svg, "text", { class: "label", x: turns ? cx - 10 : cx + 10, y: cy - 8, "text-anchor": turns ? "end" : "start" }, text);
  }
}

/* Table of quantiles, and notes on what is not identifiable. */
function fillQuantiles({ answer, model }) {
  const { subjects } = answer;
  const both = subjects.length > 1;
  const head = element("tr");
  head.append(element("th", { scope: "col" }, "Event expected"));
  subjects.forEach((_, k) => head.append(element("th", { scope: "col", class: `number side${NAMES[k]}` }, both ? NAMES[k] : "time")));
  if (both) head.append(element("th", { scope: "col", class: "number" }, "B − A"));
  const table = document.getElementById("quantiles");
  table.querySelector("thead").replaceChildren(head);
  const row = (name, cells) => {
    const tr = element("tr");
    tr.append(element("th", { scope: "row" }, name), ...cells.map((text) => element("td", { class: "number" }, text)));
    return tr;
  };
  const rows = subjects[0].quantiles.map(({ level }) => {
    const found = subjects.map((subject) => atLevel(subject, level));
    const cells = found.map(formatTime);
    if (both) {
      const isKnown = found.every(({ value }) => value !== null);
      cells.push(isKnown ? formatDifference(found[1].value - found[0].value) : "unknown");
    }
    return row(WORDS[level] || formatPercent(level), cells);
  });
  const spans = subjects.map((subject) => `${formatTime(atLevel(subject, 0.1))} to ${formatTime(atLevel(subject, 0.9))}`);
  rows.push(row("for eight in ten, from", both ? [...spans, ""] : spans));
  table.querySelector("tbody").replaceChildren(...rows);
  const notes = subjects.map((subject, k) => describeLimit(subject, both ? `For ${NAMES[k]}, ` : "", model)).filter(Boolean);
  if (answer.confidence.reason) notes.push(describeNoBand(answer.confidence.reason));
  document.getElementById("notes").replaceChildren(...notes.map((text) => element("p", {}, text)));
}

function formatDifference(value) {
  return value > 0 ? `+${formatNumber(value)}` : formatNumber(value);
}

function describeLimit(subject, who, model) {
  if (!isLimited(subject)) return "";
  const { from_level, to_level, bound } = subject.estimable;
  const text = model.censoring === "left"
    ? `levels below ${formatPercent(from_level)} are not identifiable because of censoring: the first neighbour has time ${formatNumber(bound)}.`
    : `levels above ${formatPercent(to_level)} are not identifiable because of censoring: the last neighbour has time ${formatNumber(bound)}.`;
  return who ? who + text : text[0].toUpperCase() + text.slice(1);
}

function describeNoBand(reason) {
  return reason.includes("bag_size")
    ? "Fit with --set bag_size=2 for a confidence band."
    : `No confidence band: ${reason}`;
}
