"use strict";
/* What interval censoring leaves open, as areas of a chart. */

/* The area between the smallest and the largest curve that fit the rows equally well. A step that may
   have come any time before its right end begins where the axis does. */
function drawUndetermined(at, lower, upper, low, end) {
  const place = (time) => Math.max(low, Math.min(end, time ?? low));
  const edge = ({ initial, times, values }) =>
    toSteps([[low, initial], ...times.map((time, i) => [place(time), values[i]]), [end, values.at(-1) ?? initial]]);
  drawBand(at, edge(upper), edge(lower));
}

/* The time of a row: a line, or the band between the ends of its interval. */
function drawObserved(at, { time, event, lower }, text) {
  const x = at.x(time);
  const line = (place) => shape(at.svg, "line", { class: "observed", x1: place, x2: place, y1: at.top, y2: at.bottom });
  if (event && lower !== undefined && lower !== time) {
    const start = lower === null ? at.left : Math.max(at.left, at.x(lower));
    shape(at.svg, "rect", { class: "fill-band of-b", x: start, y: at.top, width: x - start, height: at.bottom - at.top });
    if (start > at.left) line(start);
  }
  line(x);
  writeBeside(at, x, at.top + 12, text);
}
