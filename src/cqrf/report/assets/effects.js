"use strict";
/* The report on a treatment forest: draws each section from its content. */

(() => {
  const content = JSON.parse(byId("content").textContent);
  const { words, names } = content;
  /* Treated rows upwards, rows of the control downwards. */
  function drawOverlap(host) {
    const { histogram: { edges, counts: [control, treatment] }, limits, text } = content.arms;
    const up = Math.max(...treatment, 1) * 1.25, down = Math.max(...control, 1) * 1.25;
    const at = drawAxes(host, {
      label: `Histogram of the propensities of both arms. ${text.join(" ")}`, ratio: 0.5,
      x: { low: 0, high: 1, title: "propensity", format: formatNumber },
      y: { low: -down, high: up, title: "rows", format: (value) => formatNumber(Math.abs(value)) },
    });
    for (const limit of limits) shape(at.svg, "line", { class: "limit", x1: at.x(limit), x2: at.x(limit), y1: at.top, y2: at.bottom });
    const stops = treatment.map((count, i) => {
      const [x, width] = [at.x(edges[i]) + 0.5, at.x(edges[i + 1]) - at.x(edges[i]) - 1];
      shape(at.svg, "rect", { class: "fill-first", x, width, y: at.y(count), height: at.y(0) - at.y(count) });
      shape(at.svg, "rect", { class: "fill-second", x, width, y: at.y(0), height: at.y(-control[i]) - at.y(0) });
      return { x: x + width / 2, y: at.y(count), lines: [`${formatNumber(edges[i])} to ${formatNumber(edges[i + 1])}`, `${names[1]}: ${count}`, `${names[0]}: ${control[i]}`] };
    });
    shape(at.svg, "line", { class: "axis", x1: at.left, x2: at.right, y1: at.y(0), y2: at.y(0) });
    shape(at.svg, "text", { class: "arm-label treatment", x: at.x(limits[0]) + 6, y: at.top + 12 }, shortenName(names[1]));
    shape(at.svg, "text", { class: "arm-label control", x: at.x(limits[1]) - 6, y: at.bottom - 7, "text-anchor": "end" }, shortenName(names[0]));
    addCursor(at, stops);
  }

  function valueAt({ times, values, end }, time) {
    if (end !== null && time > end) return null;
    let value = values[0];
    for (let i = 0; i < times.length && times[i] <= time; i++) value = values[i];
    return value;
  }

  function drawCurves(host) {
    const { curves, summary } = content.averages;
    const low = curves[0].times[0], high = Math.max(...curves.map(({ times, end }) => end ?? times.at(-1)));
    const at = drawAxes(host, {
      label: `Average survival curves of both arms. ${summary}`, legend: [["band", "95\u00a0% band"]],
      x: { low, high: high + 0.04 * (high - low), title: words.time, format: formatNumber },
      y: { low: 0, high: 1, title: words.survival, format: formatPercent },
    });
    const steps = ({ times, end }, values) => toSteps([...values.map((value, i) => [times[i], value]), [end ?? high, values.at(-1)]]);
    curves.forEach((curve, k) => {
      drawBand(at, steps(curve, curve.upper), steps(curve, curve.lower), k ? "fill-band" : "fill-band of-b");
    });
    curves.forEach((curve, k) => {
      shape(at.svg, "path", { class: k ? "line curve" : "line second curve", d: `M${joinPoints(at, steps(curve, curve.values))}` });
      if (curve.end === null || curve.values.at(-1) === 0) return;
      shape(at.svg, "circle", { class: `dot open ${ARMS[k]}`, cx: at.x(curve.end), cy: at.y(curve.values.at(-1)), r: 5 });
    });
    const times = [...new Set(curves.flatMap((curve) => curve.times))].sort((a, b) => a - b);
    const read = (key) => curves.map((curve) => times.map((time) => valueAt({ ...curve, values: curve[key] }, time)));
    labelArms(at, names, times, ...["values", "lower", "upper"].map(read));
    addCursor(at, times.map((time) => ({
      x: at.x(time), y: at.y(valueAt(curves[1], time) ?? valueAt(curves[0], time) ?? 0),
      lines: [`at ${formatNumber(time)}`, ...[1, 0].map((k) => {
        const value = valueAt(curves[k], time);
        return `${names[k]}: ${value === null ? "not known" : formatPercent(value)}`;
      })],
    })));
  }

  /* A forest plot of lines of text, so that it fits any width. */
  function listSubgroups() {
    const { groups, all, title } = content.subgroups;
    const lines = [...groups.flatMap((group) => group.lines), all];
    const ends = lines.flatMap(({ effect }) => effect).filter((value) => value !== null);
    const least = Math.min(0, ...ends), most = Math.max(0, ...ends), pad = 0.03 * (most - least || 1);
    const place = (value) => `${(100 * (value - least + pad)) / (most - least + 2 * pad)}%`;
    const add = (host, kind, from, to = null) => {
      const node = element("div", { class: kind });
      node.style.left = place(from);
      if (to !== null) node.style.width = `calc(${place(to)} - ${place(from)})`;
      host.append(node);
    };
    const line = ({ name, rows, effect: [value, lower, upper], label }, kind = "") => {
      const host = element("div", { class: `line-of-group ${kind}` }), track = element("span", { class: "track", "aria-hidden": "true" });
      add(track, "zero", 0);
      if (all.effect[0] !== null) add(track, "average", all.effect[0]);
      if (lower !== null) add(track, "whisker", lower, upper);
      if (value !== null) add(track, "mark", value);
      host.append(element("span", { class: "name", dir: "auto" }, name), element("span", { class: "rows" }, formatCount(rows)), track, element("span", { class: "value" }, label));
      return host;
    };
    const made = groups.flatMap((group) => [element("h3", { dir: "auto" }, group.name), ...group.lines.map((each) => line(each))]);
    const scale = element("div", { class: "scale-of-group", "aria-hidden": "true" }), axis = element("div", { class: "ticks" });
    for (const tick of ticks(least, most, 4)) {
      const mark = element("span", {}, formatNumber(tick));
      mark.style.left = place(tick);
      axis.append(mark);
    }
    scale.append(element("span"), element("span"), axis, element("span"), element("div", { class: "title-of-scale" }, title));
    byId("forest").style.setProperty("--value-width", `${(0.58 * Math.max(...lines.map(({ label }) => label.length))).toFixed(1)}rem`);
    byId("forest").append(...made, line(all, "whole"), scale);
  }

  function drawRanking(host) {
    const { shares, values, lower, upper, text } = content.ranking;
    const all = [...lower, ...upper, ...values].filter((value) => value !== null);
    const at = drawAxes(host, {
      label: `Targeting curve. ${text[1]}`, legend: [["solid", "TOC"], ["band", "95\u00a0% band"], ["faint", "no difference"]],
      x: { low: 0, high: 1, title: "share of rows, those ranked first", format: formatPercent },
      y: { low: Math.min(0, ...all), high: Math.max(0, ...all), title: "gain above the average", format: formatNumber },
    });
    const edge = (ends) => shares.map((share, i) => [share, ends[i]]);
    drawBand(at, edge(upper), edge(lower));
    shape(at.svg, "line", { class: "line perfect", x1: at.left, x2: at.right, y1: at.y(0), y2: at.y(0) });
    shape(at.svg, "path", { class: "line", d: linePath(at, shares, values) });
    addCursor(at, shares.map((share, i) => ({
      x: at.x(share), y: at.y(values[i]),
      lines: [`first ${formatPercent(share)}`, `${formatNumber(values[i])} (${formatNumber(lower[i])} to ${formatNumber(upper[i])})`],
    })));
  }

  function drawSpread(host) {
    const { histogram: { edges, counts }, title, text } = content.variation;
    const at = drawAxes(host, {
      label: `Histogram. ${text[0]}`,
      x: { low: edges[0], high: edges.at(-1), title, format: formatNumber },
      y: { low: 0, high: Math.max(...counts) * 1.08, title: "rows", format: formatNumber },
    });
    const stops = counts.map((count, i) => {
      const [x, end] = [at.x(edges[i]) + 0.5, at.x(edges[i + 1]) - 0.5];
      shape(at.svg, "rect", { class: edges[i] < 0 ? "fill-second" : "fill-first", x, width: end - x, y: at.y(count), height: at.bottom - at.y(count) });
      return { x: (x + end) / 2, y: at.y(count), lines: [`${formatNumber(edges[i])} to ${formatNumber(edges[i + 1])}`, `${count} rows`] };
    });
    if (edges[0] < 0 && edges.at(-1) > 0) shape(at.svg, "line", { class: "limit", x1: at.x(0), x2: at.x(0), y1: at.top, y2: at.bottom });
    addCursor(at, stops);
  }

  byId("title").textContent = content.title;
  byId("summary").textContent = content.summary;
  byId("assumed").textContent = content.assumed;
  byId("source").textContent = content.source === null ? "" : `Data: ${content.source}`;
  byId("source").hidden = content.source === null;
  for (const section of ["arms", "averages", "subgroups", "ranking", "variation", "assumptions"]) fillText(section, content[section].text);
  fillTable("counts", content.arms.rows, ["", "number", "number", "number"]);
  byId("overlapped").hidden = content.arms.histogram === null;
  if (content.arms.histogram) draw(byId("overlap"), drawOverlap);
  byId("effects").querySelector("thead tr").append(...content.averages.heads.map((text, i) => element("th", { scope: "col", class: i ? "number" : "", dir: "auto" }, text)));
  fillTable("effects", content.averages.rows, ["", "number", "number"]);
  draw(byId("curves"), drawCurves);
  listSubgroups();
  draw(byId("toc"), drawRanking);
  if (content.variation.histogram) draw(byId("spread"), drawSpread);
  fillList("items", content.about.items);
  fillList("settings", content.about.settings);
})();
