"use strict";
/* The incidence of all causes of each subject, as areas that add up to 1. */

function drawIncidence(host, { times, given, subjects }, model) {
  const both = subjects.length > 1;
  const causes = model.causes.map(({ cause }) => nameCause(cause));
  subjects.forEach((subject, k) => {
    if (both) host.append(element("p", { class: "note" }, `Subject ${NAMES[k]}`));
    const known = times.map((_, i) => i).filter((i) => subject.survival[i] !== null);
    const end = known.length === times.length ? times.at(-1) : subject.estimable.bound ?? times[known.at(-1)];
    const shares = subject.incidence.map(({ values }) => known.map((i) => values[i]));
    const at = drawCauses(host, { times: known.map((i) => times[i]), shares, end }, {
      label: `Incidence of each cause for subject ${NAMES[k]}. ${describeSubject(subject, model, given)}`,
      ratio: both ? 0.4 : 0.56, legend: k ? [] : listCauses(causes),
      x: { low: times[0], high: times.at(-1), title: nameAxis(model, given), format: formatNumber },
    });
    if (!known.length) return;
    const text = "not known";
    if (known.length < times.length && at.right - at.x(end) > 9 * text.length) {
      shape(at.svg, "text", { class: "label", x: at.right - 6, y: at.top + 16, "text-anchor": "end" }, text);
    }
    addCursor(at, times.map((time, i) => ({
      x: at.x(time), y: subject.survival[i] === null ? null : at.y(1 - subject.survival[i]),
      lines: [`${given === null ? "time" : "another"} ${formatNumber(time)}${unitOf(model)}`,
        ...listShares(causes, subject.survival[i], subject.incidence.map(({ values }) => values[i]))],
    })));
  });
}
