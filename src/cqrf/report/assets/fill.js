"use strict";
/* Parts of a report from its content: sentences, tables, lists. */

function fillText(section, sentences) {
  document.querySelector(`#${section} .text`).append(...sentences.map((text) => element("p", {}, text)));
}

function fillTable(id, rows, classes = []) {
  byId(id).querySelector("tbody").append(...rows.map((cells) => {
    const tr = element("tr");
    tr.append(...cells.map((cell, i) =>
      cell instanceof Node ? cell : element("td", { class: classes[i] || "", dir: "auto" }, cell)));
    return tr;
  }));
}

function fillList(id, pairs) {
  for (const [name, value] of pairs) {
    byId(id).append(element("dt", {}, name), element("dd", {}, value));
  }
}
