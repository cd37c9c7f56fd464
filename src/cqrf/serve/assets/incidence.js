/* The incidence of all causes of each subject, as areas that add up to 1. */

function drawIncidence(host, { times, given, subjects }, model) {
  const both = subjects.length > 1;
  const causes = model.causes.map(({ cause }) => String(cause));
  subjects.forEach((subject, k) => {
    if (both) host.append(element("p", { class: "note" }, `Subject ${NAMES[k]}`));
    const known = times.map((_, i) => i).filter((i) => subject.survival[i] !== null);
    const at = drawAxes(host, {
      label: `Incidence of each cause for subject ${NAMES[k]}. ${describeSubject(subject, model, given)}`,
      ratio: both ? 0.4 : 0.56, legend: k ? [] : listCauses(causes),
      x: { low: times[0], high: times.at(-1), title: nameAxis(model, given), format: formatNumber },
      y: { low: 0, high: 1, title: "probability", format: formatPercent },
    });
    if (!known.length) return;
    const end = known.length === times.length ? times.at(-1) : subject.estimable.bound ?? times[known.at(-1)];
    drawAreas(at, known.map((i) => times[i]), subject.incidence.map(({ values }) => known.map((i) => values[i])), end);
    if (known.length < times.length) {
      const x = at.x(end), text = "not known";
      shape(at.svg, "rect", { class: "fill-hatch", x, y: at.top, width: Math.max(0, at.right - x), height: at.bottom - at.top });
      if (at.right - x > 9 * text.length) shape(at.svg, "text", { class: "label", x: at.right - 6, y: at.top + 16, "text-anchor": "end" }, text);
    }
    addCursor(at, times.map((time, i) => ({
      x: at.x(time), y: subject.survival[i] === null ? null : at.y(1 - subject.survival[i]),
      lines: [`${given === null ? "time" : "another"} ${formatNumber(time)}${unitOf(model)}`,
        `no event: ${formatShare(subject.survival[i])}`,
        ...subject.incidence.map(({ cause, values }) => `${cause}: ${formatShare(values[i])}`).reverse()],
    })));
  });
}

function formatShare(value) {
  return value === null ? "not known" : formatPercent(value);
}
