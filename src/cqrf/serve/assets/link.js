"use strict";
/* The link: the whole state in the fragment of the address, which browsers do not send. */

const LINK_VERSION = 1;

function writeLink(state, fingerprint) {
  const kept = {
    v: LINK_VERSION, m: fingerprint,
    s: state.subjects.map(({ values }) => values), r: state.subjects.map(({ row }) => row),
    ...(state.given === null ? {} : { g: state.given }),
  };
  const bytes = new TextEncoder().encode(JSON.stringify(kept));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return "#" + text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/* The state of a link, or a sentence with the reason why it cannot be used. */
function readLink(hash, model) {
  let kept;
  try {
    const text = atob(hash.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (sign) => sign.charCodeAt(0));
    kept = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return "The link cannot be read: it may be incomplete.";
  }
  if (kept === null || typeof kept !== "object" || kept.v !== LINK_VERSION) {
    return "The link was made by another version of this page.";
  }
  if (kept.m !== model.fingerprint) return "The link belongs to another model.";
  const { s, r, g = null } = kept;
  const fits = Array.isArray(s) && (s.length === 1 || s.length === 2) && s.every((values) =>
    Array.isArray(values) && values.length === model.columns.length &&
    values.every((value, i) => isValue(value, model.columns[i])));
  const isTime = g === null || (Number.isFinite(g) && model.censoring !== "left");
  if (!fits || !isTime) return "The link cannot be read: it may be incomplete.";
  const subjects = s.map((values, k) => {
    const row = Array.isArray(r) ? r[k] : null;
    return { values, row: Number.isInteger(row) && row > 0 ? row : null };
  });
  return { subjects, given: g };
}

function isValue(value, { kind, choices }) {
  if (value === null) return true;
  if (kind === "category") return (choices || []).some((choice) => choice.value === value);
  if (kind === "date") return typeof value === "string" && !Number.isNaN(toDays(value));
  return typeof value === "number" && Number.isFinite(value);
}

/* Days since 1970 of a date, and back. */
function toDays(text) {
  const isFull = /^\d{4}-\d\d-\d\d(T[\d:.]+)?$/.test(text);
  return isFull ? Date.parse(text.includes("T") ? text + "Z" : text) / 86400000 : NaN;
}

function fromDays(days) {
  return new Date(Math.round(days) * 86400000).toISOString().slice(0, 10);
}
