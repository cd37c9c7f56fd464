"use strict";
/* The arms of a treatment forest, shared by the report and the server's page. */

const ARMS = ["control", "treatment"];
const MAX_NAME = 28;  // signs of the name of an arm in a chart

function shortenName(name) {
  return shortenText(name, MAX_NAME);
}

/* Names of the arms where the curves are farthest apart: right above the upper one, left below the
   lower one. values[k][i] is the curve of an arm at times[i], null where it is not known; lower and
   upper are the ends of its band. */
function labelArms(at, names, times, values, lower = values, upper = values) {
  const known = [...times.keys()].filter((i) => values.every((curve) => curve[i] !== null));
  if (!known.length) return;
  const texts = names.map(shortenName);
  const width = SIGN * Math.max(...texts.map((text) => Array.from(text).length));
  const roomy = known.filter((i) => at.x(times[i]) > at.left + width + 12 && at.x(times[i]) < at.right - width - 12);
  const gap = (i) => Math.abs(values[0][i] - values[1][i]);
  const best = (roomy.length ? roomy : [known[known.length >> 1]]).reduce((one, two) => (gap(two) > gap(one) ? two : one));
  const top = values[1][best] >= values[0][best] ? 1 : 0;
  texts.forEach((text, k) => {
    const [end, dx, dy, anchor] = k === top ? [upper, 8, -7, "start"] : [lower, -8, 17, "end"];
    const y = Math.min(at.y(end[k][best]) + dy, at.bottom - 5);
    shape(at.svg, "text", { class: `arm-label ${ARMS[k]}`, x: at.x(times[best]) + dx, y, "text-anchor": anchor }, text);
  });
}
