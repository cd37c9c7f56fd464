"use strict";
/* Competing risks, shared by the report and the server's page: the incidence of every cause as areas
   that add up to 1. */

/* Draw the areas up to end, and hatch what comes after it; returns the chart. */
function drawCauses(host, { times, shares, end }, axes) {
  const at = drawAxes(host, { ...axes, y: { low: 0, high: 1, title: "probability", format: formatPercent } });
  if (!times.length) return at;
  drawAreas(at, times, shares, end);
  if (end < axes.x.high) hatch(at, at.x(end), at.top, at.right, at.bottom);
  return at;
}

/* Lines of the tip: no event, and the causes below it in the order in which they lie. */
function listShares(causes, free, shares) {
  const format = (value) => (value === null ? "not known" : formatPercent(Math.max(0, value)));
  return [`no event: ${format(free)}`, ...causes.map((cause, k) => `${cause}: ${format(shares[k])}`).reverse()];
}

/* Areas of several causes on top of each other, and of no event above them. shares[k][i] is the
   incidence of cause k from times[i] to times[i + 1], and from the last time to end. */
function drawAreas(at, times, shares, end) {
  let below = times.map(() => 0);
  const edge = (heights) => times.flatMap((time, i) => [[time, heights[i]], [times[i + 1] ?? end, heights[i]]]);
  [...shares, null].forEach((values, k) => {
    const above = values ? below.map((height, i) => height + values[i]) : times.map(() => 1);
    drawBand(at, edge(above), edge(below), values ? `fill-cause cause${k % 6}` : "fill-none");
    below = above;
  });
}

/* Keys of the areas, in the order in which they lie: no event on top. */
function listCauses(causes) {
  return [["no-event", "no event"], ...causes.map((cause, k) => [`cause${k % 6}`, cause]).reverse()];
}
