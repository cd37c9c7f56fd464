"use strict";
/* The event of a row and what is known of its time, shared by the report and the server's page. lower is its left
   end with interval censoring: the time itself if that is exact or right-censored, null if the row is
   left-censored; undefined without interval censoring. */

/* A cause in words: a number alone would be read as one. */
function nameCause(cause) {
  return typeof cause === "number" ? `cause ${cause}` : cause;
}

/* A sentence's end: event at 12, between 10 and 12, before 12, after 12. */
function describeTime(name, { time, event, lower }, fromLeft, unit) {
  const at = formatNumber(time) + unit;
  if (!event) return fromLeft ? `${name} before ${at}` : lower === undefined ? `no ${name} until ${at}` : `${name} after ${at}`;
  if (lower === undefined || lower === time) return `${name} at ${at}`;
  return lower === null ? `${name} before ${at}` : `${name} between ${formatNumber(lower)} and ${at}`;
}

/* A cell of a table: 12, 10 to 12, <12 or 12+. */
function formatObserved({ time, event, lower }, fromLeft) {
  const at = formatNumber(time);
  if (!event) return fromLeft ? `<${at}` : `${at}+`;
  if (lower === undefined || lower === time) return at;
  return lower === null ? `<${at}` : `${formatNumber(lower)} to ${at}`;
}

/* The kind of a row with interval censoring. */
function nameKind({ time, event, lower }) {
  if (!event) return "right-censored";
  if (lower === null) return "left-censored";
  return lower === time ? "exact" : "interval";
}
