"use strict";
/* Elements and number formats, shared by all pages. Whatever comes from the data is written as text,
   never as markup. */

function byId(id) {
  return document.getElementById(id);
}

function element(name, attributes = {}, text = null) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

/* A text of at most so many signs. */
function shortenText(text, most) {
  const signs = Array.from(text);
  return signs.length > most ? signs.slice(0, most - 1).join("") + "…" : text;
}

function formatCount(value) {
  return value.toLocaleString("en-US");
}

function formatNumber(value) {
  if (value === null || !Number.isFinite(value)) return "unknown";
  const size = Math.abs(value);
  if (size >= 1000) return withMinus(formatCount(Math.round(value)));
  return withMinus(String(Number(value.toPrecision(size >= 100 ? 4 : 3))));
}

function withMinus(text) {
  return text.replace(/^-/, "\u2212");
}

function formatPercent(share) {
  const value = 100 * share;
  return (value > 10 && value < 90 ? value.toFixed(0) : String(Number(value.toFixed(1)))) + "\u00a0%";
}
