"use strict";
/* The OpenAPI document as a page: each operation with its fields, an example and its status codes. */

(async () => {
  const described = await (await fetch("openapi.json")).json();
  const schemas = described.components.schemas;
  const resolve = (schema) => (schema.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema);

  /* Short name of a schema. */
  function name(schema) {
    if (schema.$ref) return schema.$ref.split("/").at(-1);
    if (schema.anyOf || schema.oneOf) return (schema.anyOf || schema.oneOf).map(name).join(" or ");
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.type === "array") return `list of ${name(schema.items || {})}`;
    return [schema.type || "anything"].flat().join(" or ") + (schema.format ? ` (${schema.format})` : "");
  }

  function listFields(schema, label) {
    const table = element("table");
    const required = new Set(schema.required || []);
    for (const [field, about] of Object.entries(schema.properties || {})) {
      const row = element("tr");
      const key = element("th", { scope: "row" });
      key.append(element("code", { dir: "auto" }, field));
      const what = element("td", {}, name(about) + (required.has(field) ? "" : ", optional"));
      row.append(key, what, element("td", {}, about.description || ""));
      table.append(row);
    }
    const scroll = element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": label });
    scroll.append(table);
    return scroll;
  }

  /* A schema and its fields, as a region whose label is unique. */
  function showBody(title, schema, of = "") {
    const found = resolve(schema);
    const host = element("details", { open: "" });
    host.append(element("summary", {}, `${title}: ${name(schema)}`));
    if (found.description) host.append(element("p", {}, found.description));
    host.append(listFields(found, [title, of, name(schema)].filter(Boolean).join(" ")));
    return host;
  }

  function quote(text) {
    return `'${text.replaceAll("'", "'\\''")}'`;
  }

  function curlCommand(path, method, schema) {
    const address = location.origin + path.replace("{row}", "1");
    if (method === "get") return `curl -s ${quote(address)}`;
    const body = JSON.stringify(resolve(schema).example);
    return `curl -s ${quote(address)} -H 'Content-Type: application/json' \\\n  -d ${quote(body)}`;
  }

  function showOperation(path, method, operation) {
    const section = element("section", { id: operation.operationId });
    const title = element("h2");
    const of = `${method.toUpperCase()} ${path}`;
    title.append(element("code", {}, of));
    section.append(title, element("p", {}, operation.description || operation.summary));
    const body = operation.requestBody?.content["application/json"].schema;
    section.append(element("pre", { tabindex: "0" }, curlCommand(path, method, body)));
    if (operation.parameters) {
      const properties = Object.fromEntries(operation.parameters.map((each) => [each.name, each.schema]));
      section.append(showBody("Parameters", { type: "object", properties }, of));
    }
    if (body) section.append(showBody("Request", body, of));
    const answer = operation.responses["200"].content["application/json"].schema;
    section.append(showBody("Response", answer, of));
    const list = element("dl");
    for (const [status, about] of Object.entries(operation.responses)) {
      list.append(element("dt", {}, status), element("dd", {}, about.description));
    }
    section.append(list);
    return section;
  }

  /* A paragraph with code between backticks. */
  function paragraph(text) {
    const made = element("p");
    made.append(...text.split("`").map((part, i) => element(i % 2 ? "code" : "span", {}, part)));
    return made;
  }

  byId("about").append(...described.info.description.trim().split("\n\n").map(paragraph));
  const main = byId("operations");
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const [method, operation] of Object.entries(methods)) main.append(showOperation(path, method, operation));
  }
  const used = element("section");
  used.append(element("h2", {}, "Schemas"));
  for (const part of ["Row", "RowPrediction", "Quantile", "Time", "Interval", "SurvivalProbability", "Estimable", "CausePrediction", "CauseQuantile",
    "RowEffects", "TimeGained", "SurvivalDifference", "QuantileDifference", "ArmCurves", "Arm", "Column", "ErrorResponse", "ProblemDetail"]) {
    if (!(part in schemas)) continue;
    used.append(showBody("Schema", { $ref: `#/components/schemas/${part}` }));
  }
  main.append(used);
})();
