"use strict";
/* The incidence of all rows by cause, as areas that add up to 1. */

function drawTableIncidence(host, { time_range: [low, high], words, data }) {
  const { causes } = data.incidence;
  const times = [low, ...data.incidence.times];
  const shares = data.incidence.shares.map((values) => [0, ...values]);
  const free = times.map((_, i) => 1 - shares.reduce((sum, values) => sum + values[i], 0));
  const end = data.incidence.end ?? high;
  const at = drawCauses(host, { times, shares, end }, {
    label: `Incidence of each cause among all rows. At ${formatNumber(end)}: ` +
      causes.map((cause, k) => `${cause} ${formatPercent(shares[k].at(-1))}`).join(", ") +
      `, no event ${formatPercent(Math.max(0, free.at(-1)))}.`,
    legend: listCauses(causes),
    x: { low, high, title: words.time, format: formatNumber },
  });
  addCursor(at, times.map((time, i) => ({
    x: at.x(time), y: at.y(1 - free[i]),
    lines: [`at ${formatNumber(time)}`, ...listShares(causes, free[i], shares.map((values) => values[i]))],
  })));
}

/* Scores of each cause, below its name. */
function listCauseScores(causes) {
  return causes.flatMap(({ cause, scores }) => {
    const head = element("th", { colspan: "3", scope: "colgroup", dir: "auto" }, cause);
    return [[head], ...scores.map(({ name, note, forest, baseline }) => {
      const cell = element("td", {}, name);
      cell.append(element("span", { class: "note" }, note));
      return [cell, forest, baseline];
    })];
  });
}
