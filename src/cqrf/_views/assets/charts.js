"use strict";
/* Charts, shared by the report and the server's page: axes, steps, lines, bands, and a cursor for the
   pointer and the arrow keys. */

const SVG = byId("patterns").namespaceURI;
const MARGIN = { left: 46, right: 14, top: 22, bottom: 38 };
const HALF_SIGN = 3.9;  // half the width of a sign of an axis
const SIGN = 7.4;  // width of a sign of a label
const FOOT = 34;  // height of a line of texts with its title
const tip = byId("tip");

function shape(parent, name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  parent.append(made);
  return made;
}

/* Round numbers inside [low, high], about this many. */
function ticks(low, high, about) {
  const rough = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((size) => size >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

/* Draw now and whenever the width changes. */
const drawers = new Map();
const watcher = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.clientWidth && target.clientWidth !== Number(target.dataset.width)) redraw(target);
  }
});

function draw(host, drawChart) {
  drawers.set(host, drawChart);
  redraw(host);
  watcher.observe(host);
}

function redraw(host) {
  host.dataset.width = host.clientWidth;
  host.replaceChildren();
  drawers.get(host)(host);
}

/* What is printed has another width than the window: charts with data-printed are drawn for it. */
let isPrinting = false;
for (const [event, begins] of [["beforeprint", true], ["afterprint", false]]) {
  window.addEventListener(event, () => {
    isPrinting = begins;
    for (const host of drawers.keys()) if (host.dataset.printed) redraw(host);
  });
}

function chartWidth(host) {
  return Math.max(220, (isPrinting && Number(host.dataset.printed)) || host.clientWidth || 480);
}

/* Draw axes; returns the svg and the maps from values to pixels. x has its ends, and the labels of
   points, pairs of ticks, or round numbers by its format; x.foot is a line of texts below the axis. */
function drawAxes(host, { x, y, label, ratio = 0.62, tallest = 400, legend = [] }) {
  if (legend.length) {
    const made = element("div", { class: "legend" });
    for (const [kind, text] of legend) made.append(element("span", { class: kind }, text));
    host.append(made);
  }
  const width = chartWidth(host);
  const height = Math.round(Math.min(tallest, Math.max(190, width * ratio))) + (x.foot ? FOOT : 0);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  host.append(svg);
  const right = width - MARGIN.right;
  const bottom = height - MARGIN.bottom + (x.title ? 0 : 14) - (x.foot ? FOOT : 0);
  const at = {
    svg, width, height, right, bottom, left: MARGIN.left, top: MARGIN.top,
    x: (value) => MARGIN.left + ((value - x.low) / (x.high - x.low)) * (right - MARGIN.left),
    y: (value) => bottom - ((value - y.low) / (y.high - y.low)) * (bottom - MARGIN.top),
  };
  for (const tick of ticks(y.low, y.high, 5)) {
    const place = at.y(tick);
    shape(svg, "line", { class: "grid", x1: at.left, x2: right, y1: place, y2: place });
    shape(svg, "text", { x: at.left - 6, y: place + 4, "text-anchor": "end" }, y.format(tick));
  }
  shape(svg, "line", { class: "axis", x1: at.left, x2: right, y1: bottom, y2: bottom });
  shape(svg, "text", { x: 2, y: 12 }, y.title);
  shape(svg, "text", { x: (at.left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, x.title);
  if (x.labels) labelCategories(at, x.labels);
  else drawTicks(at, x);
  return at;
}

function drawTicks(at, x) {
  const wide = x.kind === "date" ? 90 : 65;
  const made = x.ticks || ticks(x.low, x.high, (at.right - at.left) / wide).map((tick) => [tick, tick]);
  let taken = -Infinity;  // where the last label ends
  for (const [spot, value] of made) {
    const place = at.x(spot), text = x.format(value);
    shape(at.svg, "line", { class: "axis", x1: place, x2: place, y1: at.bottom, y2: at.bottom + 4 });
    const half = HALF_SIGN * text.length;
    const middle = Math.min(place, at.width - half);
    if (middle - half < taken) continue;
    taken = middle + half + 4;
    shape(at.svg, "text", { x: middle, y: at.bottom + 17, "text-anchor": "middle" }, text);
    if (x.foot) shape(at.svg, "text", { class: "foot", x: middle, y: at.height - 4, "text-anchor": "middle" }, x.foot.text(value));
  }
  if (x.foot) shape(at.svg, "text", { x: 2, y: at.height - 19 }, x.foot.title);
}

function labelCategories(at, labels) {
  const width = (at.right - at.left) / labels.length;
  const every = Math.ceil(26 / width);
  labels.forEach((name, i) => {
    if (i % every) return;
    const most = Math.max(2, Math.floor((width * every) / 7.5));
    shape(at.svg, "text", { x: at.x(i), y: at.bottom + 17, "text-anchor": "middle" }, shortenText(name, most));
  });
}

/* Path of a right-continuous step curve from low to high. */
function stepPath(at, curve, low, high) {
  let path = `M${at.x(low).toFixed(1)} ${at.y(curve.initial).toFixed(1)}`;
  curve.times.forEach((time, i) => {
    path += `H${at.x(time).toFixed(1)}V${at.y(curve.values[i]).toFixed(1)}`;
  });
  return path + `H${at.x(high).toFixed(1)}`;
}

function curveValue(curve, time) {
  let value = curve.initial;
  for (let i = 0; i < curve.times.length && curve.times[i] <= time; i++) value = curve.values[i];
  return value;
}

/* Corners of a step curve through points [x, y]: each y holds until the next x. */
function toSteps(points) {
  return points.flatMap(([x, y], i) => (i ? [[x, points[i - 1][1]], [x, y]] : [[x, y]]));
}

function joinPoints(at, points) {
  return points.map(([x, y]) => `${at.x(x).toFixed(1)} ${at.y(y).toFixed(1)}`).join("L");
}

/* A line through points, broken where y is null. */
function linePath(at, xs, ys) {
  let path = "", open = false;
  ys.forEach((value, i) => {
    if (value === null) open = false;
    else {
      path += `${open ? "L" : "M"}${at.x(xs[i]).toFixed(1)} ${at.y(value).toFixed(1)}`;
      open = true;
    }
  });
  return path;
}

/* The area between two lines through points. */
function drawBand(at, upper, lower, kind = "fill-band") {
  shape(at.svg, "path", { class: kind, d: `M${joinPoints(at, [...upper, ...lower.slice().reverse()])}Z` });
}

/* Hatch a part of a chart in which nothing is known, from corner to corner in pixels. */
function hatch(at, left, top, right, bottom) {
  shape(at.svg, "rect", { class: "fill-hatch", x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) });
}

/* A text beside a point, on the side where it fits. */
function writeBeside(at, x, y, text, gap = 6) {
  const turns = x + gap > at.right - SIGN * text.length;
  shape(at.svg, "text", { class: "label", x: turns ? x - gap : x + gap, y: Math.max(at.top + 10, y), "text-anchor": turns ? "end" : "start" }, text);
}

/* A cursor over stops, each { x, y, lines }, by pointer, touch and arrow keys. */
function addCursor(at, stops) {
  if (!stops.length) return;
  const { svg } = at;
  const line = shape(svg, "line", { class: "cursor", y1: at.top, y2: at.bottom, visibility: "hidden" });
  let current = -1;
  const hide = () => {
    line.setAttribute("visibility", "hidden");
    tip.hidden = true;
  };
  const stop = (i) => {
    current = Math.max(0, Math.min(stops.length - 1, i));
    const { x, y, lines } = stops[current];
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    line.setAttribute("visibility", "visible");
    const box = svg.getBoundingClientRect(), scale = box.width / at.width;
    showTip(lines, box.left + x * scale, box.top + (y ?? at.top) * scale);
  };
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * at.width) / box.width;
    let best = 0;
    stops.forEach((each, i) => {
      if (Math.abs(each.x - x) < Math.abs(stops[best].x - x)) best = i;
    });
    stop(best);
  };
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("pointermove", nearest);
  svg.addEventListener("pointerdown", nearest);
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("focus", () => {
    if (svg.matches(":focus-visible")) stop(current < 0 ? 0 : current);
  });
  svg.addEventListener("keydown", (event) => {
    const far = Math.max(1, Math.round(stops.length / 10));
    const move = { ArrowRight: 1, ArrowLeft: -1, PageDown: far, PageUp: -far, Home: -1e9, End: 1e9 };
    if (event.key === "Escape") hide();
    else if (event.key in move) {
      stop(current + move[event.key]);
      event.preventDefault();
    }
  });
}

function showTip(lines, x, y) {
  tip.replaceChildren(...lines.map((text) => element("div", {}, text)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const pageWidth = document.documentElement.clientWidth;
  const left = x + 12 + width > pageWidth ? x - 12 - width : x + 12;
  tip.style.left = `${Math.max(4, Math.min(left, pageWidth - width - 4))}px`;
  tip.style.top = `${Math.max(4, y - height - 8)}px`;
}
