/* Pictures: what the forest says about the subjects, drawn and in words. */

const WORDS = { 0.1: "for one in ten by", 0.25: "for a quarter by", 0.5: "for half by", 0.75: "for three quarters by", 0.9: "for nine in ten by" };
const HIDDEN = 0.002;  // of the probability, below which nothing is said to be hidden

function sayTime({ value, bound, reason }) {
  if (value !== null) return say(value);
  return `${reason === "before_bound" ? "before" : "after"} ${say(bound)}`;
}

function atLevel(subject, level) {
  return subject.quantiles.find((quantile) => quantile.level === level);
}

function hides({ estimable }) {
  return estimable.from_level > HIDDEN || estimable.to_level < 1 - HIDDEN;
}

/* The subject in a sentence or two. */
function sayExpected(subject, model) {
  const [early, half] = [atLevel(subject, 0.1), atLevel(subject, 0.5)];
  if (model.censoring === "left") {
    const late = atLevel(subject, 0.9);
    return half.value === null
      ? `The event comes before ${say(half.bound)} for more than half of subjects like this; when, the data cannot tell.`
      : `Half of subjects like this are expected to have the event by ${sayTime(half)}; nine in ten by ${sayTime(late)}.`;
  }
  if (half.value !== null) {
    return `Half of subjects like this are expected to have the event by ${say(half.value)}` +
      (early.value === null ? "." : `; one in ten by ${say(early.value)}.`);
  }
  const known = `${percent(subject.estimable.to_level)} of subjects like this are expected to have the event by ${say(half.bound)}`;
  const start = early.value === null ? known : `One in ten subjects like this are expected to have the event by ${say(early.value)}, ` +
    `${percent(subject.estimable.to_level)} by ${say(half.bound)}`;
  return `${start}; what comes later is beyond what the data can tell.`;
}

/* Points of a curve from where it is known to where it is. */
function knownPart(subject, times, fromLeft) {
  const { bound, from_level, to_level } = subject.estimable;
  const points = times.map((time, i) => [time, subject.survival[i], i]);
  if (!hides(subject)) return points;
  if (fromLeft) return [[bound, 1 - from_level, null], ...points.filter(([time]) => time > bound)];
  return [...points.filter(([time]) => time < bound), [bound, 1 - to_level, null]];
}

function drawCurves(host, { answer, model }) {
  const { times, subjects } = answer;
  const fromLeft = model.censoring === "left";
  const [low, high] = [times[0], times.at(-1)];
  const both = subjects.length > 1;
  const legend = subjects.map((_, k) => [k ? "dashed" : "solid", both ? `subject ${NAMES[k]}` : "survival"]);
  if (subjects[0].lower) legend.push(["band", `${percent(answer.confidence.level)} confidence`]);
  legend.push(["bar-of-time", "80\u00a0% of times"]);
  const at = frame(host, {
    label: subjects.map((subject, k) => `Survival curve of subject ${NAMES[k]}. ${sayExpected(subject, model)}`).join(" "),
    ratio: 0.56, legend,
    x: { low, high, title: model.notes.time || "time", say },
    y: { low: 0, high: 1, title: "probability of an event after this time", say: percent },
  });
  subjects.forEach((subject) => drawHidden(at, subject, fromLeft, low, high));
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
    if (hides(subject)) {
      const [time, value] = fromLeft ? points[0] : points.at(-1);
      shape(at.svg, "circle", { class: k ? "dot open of-b" : "dot open", cx: at.x(time), cy: at.y(value), r: 5 });
    }
    drawInterval(at, subject, k, low, high);
  });
  subjects.forEach((subject, k) => drawDots(at, subject, k, both));
  nameHidden(at, subjects, fromLeft);
  follow(at, times.map((time, i) => ({
    x: at.x(time), y: at.y(subjects[0].survival[i]),
    lines: [`time ${say(time)}`, ...subjects.map((subject, k) =>
      `${both ? `${NAMES[k]}: ` : "event after: "}${sayChance(subject, i, time, fromLeft)}`)],
  })));
}

function sayChance(subject, i, time, fromLeft) {
  const { bound } = subject.estimable;
  if (hides(subject) && (fromLeft ? time < bound : time > bound)) return "not known";
  const range = subject.lower ? ` (${percent(subject.lower[i])} to ${percent(subject.upper[i])})` : "";
  return percent(subject.survival[i]) + range;
}

function shareHidden({ estimable }) {
  return 1 - estimable.to_level + estimable.from_level;
}

/* The corner of the picture that censoring hides. */
function drawHidden(at, subject, fromLeft, low, high) {
  if (!hides(subject)) return;
  const { bound, from_level, to_level } = subject.estimable;
  const [x, end] = fromLeft ? [at.x(low), at.x(bound)] : [at.x(bound), at.x(high)];
  const [y, foot] = fromLeft ? [at.y(1), at.y(1 - from_level)] : [at.y(1 - to_level), at.y(0)];
  shape(at.svg, "rect", { class: "fill-hatch", x, y, width: Math.max(0, end - x), height: Math.max(0, foot - y) });
}

/* Its name, between the heights at which the curves end. */
function nameHidden(at, subjects, fromLeft) {
  const widest = subjects.reduce((one, two) => (shareHidden(two) > shareHidden(one) ? two : one));
  if (!hides(widest)) return;
  const height = ({ estimable }) => (fromLeft ? estimable.from_level : 1 - estimable.to_level);
  const heights = subjects.map(height);
  const next = Math.max(0, ...heights.filter((each) => each < height(widest)));
  const middle = fromLeft ? 1 - (height(widest) + next) / 2 : (height(widest) + next) / 2;
  const [x, anchor] = fromLeft ? [at.left + 6, "start"] : [at.right - 6, "end"];
  const y = Math.max(at.top + 12, Math.min(at.bottom - 26, at.y(middle) + 4));
  shape(at.svg, "text", { class: "said", x, y, "text-anchor": anchor }, "beyond what the data can tell");
}

/* Where eight in ten times lie, along the axis; dotted where censoring hides the end. */
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
    const text = `${both ? `${NAMES[k]} ` : ""}half by ${say(value)}`;
    const turns = cx > at.right - 8 * text.length;
    shape(at.svg, "text", { class: "said", x: turns ? cx - 10 : cx + 10, y: cy - 8, "text-anchor": turns ? "end" : "start" }, text);
  }
}

/* Quantiles beside each other, and what cannot be told. */
function fillNumbers({ answer, model }) {
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
    const cells = found.map(sayTime);
    if (both) {
      const isKnown = found.every(({ value }) => value !== null);
      cells.push(isKnown ? saySigned(found[1].value - found[0].value) : "not known");
    }
    return row(WORDS[level] || percent(level), cells);
  });
  const spans = subjects.map((subject) => `${sayTime(atLevel(subject, 0.1))} to ${sayTime(atLevel(subject, 0.9))}`);
  rows.push(row("for eight in ten", both ? [...spans, ""] : spans));
  table.querySelector("tbody").replaceChildren(...rows);
  const notes = subjects.map((subject, k) => sayHidden(subject, both ? `For ${NAMES[k]}, ` : "", model)).filter(Boolean);
  if (answer.confidence.reason) notes.push(sayUnsure(answer.confidence.reason));
  document.getElementById("notes").replaceChildren(...notes.map((text) => element("p", {}, text)));
}

function saySigned(value) {
  return value > 0 ? `+${say(value)}` : say(value);
}

function sayHidden(subject, who, model) {
  if (!hides(subject)) return "";
  const { from_level, to_level, bound } = subject.estimable;
  const text = model.censoring === "left"
    ? `levels below ${percent(from_level)} are beyond what the data can tell: the first time seen of such rows is ${say(bound)}.`
    : `levels above ${percent(to_level)} are beyond what the data can tell: the last time seen of such rows is ${say(bound)}.`;
  return who ? who + text : text[0].toUpperCase() + text.slice(1);
}

function sayUnsure(reason) {
  return reason.includes("bag_size")
    ? "Fit with --set bag_size=2 to see how sure the curve is."
    : `How sure the curve is cannot be shown: ${reason}`;
}
