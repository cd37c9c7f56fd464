"use strict";
/* Words for times and the event, for every page. */

function formatTime({ value, bound, reason }) {
  if (value !== null) return formatNumber(value);
  if (bound === null) return "unknown";
  return `${reason === "before_bound" ? "before" : "after"} ${formatNumber(bound)}`;
}

function capitalise(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/* The unit of times behind a number, and in the title of an axis. */
function unitOf(model) {
  return model.time_unit ? `\u00a0${model.time_unit}` : "";
}

/* With intervals the column of the notes has their right ends. */
function nameTimes({ notes, time_unit: unit }) {
  const name = (!notes.lower && notes.time) || "time";
  if (!unit) return name;
  const stem = (text) => text.toLowerCase().replace(/s$/, "");
  return `${stem(name) === stem(unit) ? "time" : name} (${unit})`;
}

function nameSurvival(model) {
  return model.event_name ? `probability without ${model.event_name}` : "survival probability";
}

function formatDifference(value) {
  return value > 0 ? `+${formatNumber(value)}` : formatNumber(value);
}
