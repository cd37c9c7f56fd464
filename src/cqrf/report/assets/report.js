"use strict";
/* The page: draws each section from its content. */

(() => {
  const content = JSON.parse(byId("content").textContent);
  const state = { level: content.first_level };
  const { words } = content;
  const MAX_PRINTED = 25;  // columns, as in the style
  const hasIntervals = content.data.lower_curve !== null;

  function drawHistogram(host) {
    const { edges, events, censored } = content.data.histogram;
    const [came, not] = hasIntervals ? [`${words.event} by then`, "right-censored then"] : [words.event, "censored"];
    const most = Math.max(...events.map((count, i) => count + censored[i]));
    const sum = (counts) => counts.reduce((total, count) => total + count, 0);
    const at = drawAxes(host, {
      label: `${hasIntervals ? "Histogram of right ends and of right-censored times" : "Histogram of the observed times"} from ${formatNumber(edges[0])} to ${formatNumber(edges.at(-1))}: ` +
        `${sum(events)} events and ${sum(censored)} censorings.`,
      legend: [["first", came], ["second", not]],
      x: { low: edges[0], high: edges.at(-1), title: hasIntervals ? words.time : `observed ${words.time}`, format: formatNumber },
      y: { low: 0, high: most * 1.05, title: "rows", format: formatNumber },
    });
    const stops = events.map((count, i) => {
      const [x, end] = [at.x(edges[i]) + 0.5, at.x(edges[i + 1]) - 0.5];
      const width = Math.max(0.5, end - x);
      const [middle, y] = [at.y(count), at.y(count + censored[i])];
      shape(at.svg, "rect", { class: "fill-first", x, y: middle, width, height: at.bottom - middle });
      shape(at.svg, "rect", { class: "fill-second", x, y, width, height: middle - y });
      return { x: (x + end) / 2, y,
        lines: [`${formatNumber(edges[i])} to ${formatNumber(edges[i + 1])}`, `${came}: ${count}`,
          `${not}: ${censored[i]}`] };
    });
    addCursor(at, stops);
  }

  function drawMarginal(host) {
    const { event_curve: events, lower_curve: lower, censoring_curve: censorings, at_risk: risk } = content.data;
    const countAtRisk = (time) => formatCount(risk.counts[Math.round((time - risk.start) / risk.step)] ?? 0);
    const [low, high] = content.time_range;
    const legend = [];
    if (events) legend.push(["solid", words.event]);
    if (censorings) legend.push(["dashed", "censoring"]);
    if (lower) legend.push(["band", "not determined"]);
    const at = drawAxes(host, {
      label: (hasIntervals ? "Survival curve of the time of the event." : "Kaplan-Meier curves of the time of the event and of the time of censoring.") +
        (events ? ` The survival probability at ${formatNumber(events.end ?? high)} is ` +
          `${formatPercent(events.values.at(-1))}.` : " No row has an event."),
      legend,
      x: { low, high, title: words.time, format: formatNumber, foot: risk && { title: "rows at risk", text: countAtRisk } },
      y: { low: 0, high: 1, title: words.survival, format: formatPercent },
    });
    if (lower) drawUndetermined(at, lower, events, low, events.end ?? high);
    const times = new Set();
    for (const [curve, kind] of [[censorings, "line second"], [events, "line"]]) {
      if (!curve) continue;
      shape(at.svg, "path", { class: kind, d: stepPath(at, curve, curve.start ?? low, curve.end ?? high) });
      curve.times.forEach((time) => times.add(time));
    }
    const stops = [...times].sort((a, b) => a - b).map((time) => ({
      x: at.x(time), y: at.y(curveValue(events || censorings, time)),
      lines: [`at ${formatNumber(time)}`,
        events ? `${words.event}: ${formatPercent(curveValue(events, time))}` : `no ${words.event}`,
        ...hasIntervals ? [] : [censorings ? `censoring: ${formatPercent(curveValue(censorings, time))}` : "no censoring"]],
    }));
    addCursor(at, stops);
  }

  function drawCalibration(host) {
    const { levels, observed, lower, upper, judged, text } = content.calibration;
    const share = (value) => formatPercent(value);
    const at = drawAxes(host, {
      label: "Calibration: share of subjects with the event before each predicted quantile. " + text[1],
      legend: [["solid", "observed"], ["band", "95\u00a0% band"], ["faint", "perfect"]], ratio: 0.95, tallest: 600,
      x: { low: 0, high: 1, title: "predicted level", format: share },
      y: { low: 0, high: 1, title: "share with the event before", format: share },
    });
    /* The band is pale between levels of which one cannot be judged. */
    const there = levels.map((_, i) => i)
      .filter((i) => lower[i] !== null && upper[i] !== null && observed[i] !== null);
    const parts = { "fill-band": "", "fill-band pale": "" };
    there.slice(1).forEach((j, k) => {
      const i = there[k], isPale = judged[i] === null || judged[j] === null;
      const corners = [[i, upper], [j, upper], [j, lower], [i, lower]].map(([each, ends]) => `${at.x(levels[each])} ${at.y(ends[each])}`);
      parts[isPale ? "fill-band pale" : "fill-band"] += `M${corners.join("L")}Z`;
    });
    for (const [kind, d] of Object.entries(parts)) if (d) shape(at.svg, "path", { class: kind, d });
    const [x1, x2, y1, y2] = [at.x(0), at.x(1), at.y(0), at.y(1)];
    shape(at.svg, "line", { class: "line perfect", x1, x2, y1, y2 });
    const whole = linePath(at, levels, observed);
    shape(at.svg, "path", { class: "line", "stroke-opacity": 0.3, d: whole });
    shape(at.svg, "path", { class: "line", d: linePath(at, levels, judged) });
    addCursor(at, levels.map((_, i) => i).filter((i) => observed[i] !== null).map((i) => ({
      x: at.x(levels[i]), y: at.y(observed[i]),
      lines: [`predicted: ${share(levels[i])}`, `observed: ${share(observed[i])}`],
    })));
  }

  /* A bar from zero to a value, and a whisker; places are shares of the track. */
  function makeTrack(kind, from, to, whisker) {
    const track = element("span", { class: `track ${kind}` });
    const place = (node, start, end) => {
      node.style.left = `${100 * start}%`;
      node.style.width = `${100 * (end - start)}%`;
      track.append(node);
    };
    place(element("div", { class: "size" }), Math.min(from, to), Math.max(from, to));
    if (whisker) {
      place(element("div", { class: "whisker" }), ...whisker);
      place(element("div", { class: "zero" }), from, from);
    }
    return track;
  }

  function listBars() {
    const { bars } = content.importance;
    const most = Math.max(...bars.map(({ share }) => share), 1e-9);
    const ends = bars.flatMap((bar) => bar.ends || []);
    const low = Math.min(0, ...ends);
    const span = Math.max(...ends, 1e-9) - low;
    const place = (value) => (value - low) / span;
    byId("bars").classList.toggle("both", ends.length > 0);
    if (ends.length) {
      const head = element("li", { class: "head" });
      head.append(element("span", { class: "name" }), element("span", { class: "of-gain" }, "Gain"),
        element("span", { class: "of-lost" }, "Permutation: skill lost"));
      byId("bars").append(head);
    }
    for (const { name, share, label, rest, lost, ends: whisker, lost_label: text } of bars) {
      const item = element("li", { class: rest ? "rest" : "" });
      item.append(element("span", { class: "name", title: name, dir: "auto" }, name),
        makeTrack("gain", 0, share / most), element("span", { class: "share" }, label));
      if (whisker) {
        item.append(makeTrack("lost", place(0), place(lost), whisker.map(place)),
          element("span", { class: "share" }, text));
      }
      byId("bars").append(item);
    }
  }

  /* All panels have the same axis of time, so that they can be compared. */
  function makePanels() {
    const { panels } = content.dependence;
    const all = panels.flatMap(({ values }) => values.flat()).filter((value) => value !== null);
    const [first, end] = content.time_range;
    const low = Math.min(first, ...all), high = all.length ? Math.max(...all) * 1.04 : end;
    return panels.map((panel) => {
      const figure = element("figure");
      const note = element("p", { class: "note" });
      const host = element("div", { class: "chart panel", "data-printed": "220" });
      figure.append(element("h3", { dir: "auto", title: panel.name }, panel.name), host, note);
      byId("panels").append(figure);
      return () => {
        draw(host, () => drawPanel(host, panel, low, high > low ? high : end));
        note.textContent = describeGaps(panel);
      };
    });
  }

  function describeGaps({ values, grid, name, kind }) {
    const gone = values[state.level].filter((value) => value === null).length;
    const level = formatPercent(content.levels[state.level]);
    if (!gone) return `The ${level} quantile is identifiable at all values.`;
    const what = kind === "category" ? "categories" : "values";
    if (gone === grid.length) return `The ${level} quantile is not identifiable at any value of ${name}, because of censoring.`;
    return `Gaps: because of censoring the ${level} quantile is not identifiable at ${gone} of ${grid.length} ${what} of ${name}.`;
  }

  function formatValue(value, kind) {
    if (kind === "date") {
      const date = new Date(1000 * value);
      return Number.isNaN(date.getTime()) ? "a date" : date.toISOString().slice(0, 10);
    }
    return kind === "duration" ? formatNumber(value / 86400) + " days" : formatNumber(value);
  }

  function drawPanel(host, panel, low, high) {
    const { name, kind, grid, labels, places, ticks } = panel;
    const arePoints = Boolean(labels);
    const xs = arePoints ? grid.map((_, i) => i) : places;
    const level = formatPercent(content.levels[state.level]);
    const chosen = panel.values[state.level];
    const known = chosen.filter((value) => value !== null);
    const span = known.length
      ? `from ${formatNumber(Math.min(...known))} to ${formatNumber(Math.max(...known))}` : "not identifiable because of censoring";
    const [start, stop] = arePoints ? [-0.5, xs.length - 0.5] : [0, 1];
    const at = drawAxes(host, {
      label: `The ${level} quantile along ${name}: ${span}. ${describeGaps(panel)}`,
      x: { low: start, high: stop, kind, title: kind === "duration" ? `${name} (days)` : "",
        labels, ticks,
        format: kind === "duration" ? (value) => formatNumber(value / 86400) : (value) => formatValue(value, kind) },
      y: { low, high, title: words.time, format: formatNumber },
      legend: [["solid", `${level} quantile`], ["faint", "the other levels"]],
    });
    const order = panel.values.map((_, k) => k).filter((k) => k !== state.level);
    for (const k of [...order, state.level]) {
      const here = k === state.level;
      if (!arePoints) {
        shape(at.svg, "path", { class: here ? "line" : "line other", d: linePath(at, xs, panel.values[k]) });
      }
      panel.values[k].forEach((value, i) => {
        if (value === null || !(here || arePoints)) return;
        shape(at.svg, "circle", { class: here ? "dot" : "dot other", cx: at.x(xs[i]), cy: at.y(value),
          r: arePoints ? (here ? 6 : 3.5) : 3.5 });
      });
    }
    addCursor(at, xs.map((x, i) => ({
      x: at.x(x), y: chosen[i] === null ? null : at.y(chosen[i]),
      lines: [`${name}: ${arePoints ? labels[i] : formatValue(grid[i], kind)}`,
        ...content.levels.map((each, k) => `${formatPercent(each)}: ` +
          (panel.values[k][i] === null ? "not identifiable" : formatNumber(panel.values[k][i]))).reverse()],
    })));
  }

  byId("title").textContent = content.title;
  byId("summary").textContent = content.summary;
  byId("source").textContent = content.source === null ? "" : `Data: ${content.source}`;
  byId("source").hidden = content.source === null;

  const select = byId("quantile");
  content.levels.forEach((level, k) => {
    const text = level === 0.5 ? "50\u00a0% (median)" : formatPercent(level);
    select.append(element("option", { value: String(level) }, text));
    if (k === state.level) select.selectedIndex = k;
  });

  for (const section of ["data", "evaluation", "calibration", "importance", "dependence", "rows",
    "limits"]) fillText(section, content[section].text);
  if (hasIntervals) {
    byId("histogram-title").textContent = "Right ends, and times of right-censored rows";
    byId("marginal-title").textContent = "Survival of all rows, the maximum likelihood estimate";
  }
  draw(byId("histogram"), drawHistogram);
  draw(byId("marginal"), drawMarginal);
  if (content.data.incidence) {
    byId("by-cause").hidden = false;
    draw(byId("incidence"), (host) => drawTableIncidence(host, content));
  }
  fillTable("columns", content.data.columns);
  const nMore = content.data.columns.length - MAX_PRINTED;
  if (nMore > 0) byId("more-columns").textContent = `${nMore} more columns are not printed.`;
  byId("scores").hidden = !content.evaluation.scores.length;
  fillTable("scores", content.evaluation.scores.map(({ name, note, forest, interval, baseline }) => {
    const cell = element("td", {}, name);
    if (note) cell.append(element("span", { class: "note" }, note));
    const value = element("td", { class: "number" }, forest);
    if (interval) value.append(element("span", { class: "note" }, interval));
    return [cell, value, baseline];
  }), ["", "number", "number"]);
  if (content.cause_scores) {
    byId("of-causes").hidden = false;
    fillText("of-causes", content.cause_scores.text);
    fillTable("cause-scores", listCauseScores(content.cause_scores.causes), ["", "number", "number"]);
  }
  if (content.calibration.levels) draw(byId("calibrated"), drawCalibration);
  listBars();
  const panels = makePanels();
  panels.forEach((show) => show());
  const showRows = listRows(content, state);
  fillTable("unidentified", content.limits.shares.map(({ level, label }) => [level, label]));
  fillList("items", content.about.items);
  fillList("settings", content.about.settings);

  select.addEventListener("change", () => {
    state.level = select.selectedIndex;
    panels.forEach((show) => show());
    showRows();
  });
})();
