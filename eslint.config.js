/* The scripts of reports and of the server's pages, as browsers run them: each page loads its files
   one after the other, and what one of them declares at its top level the others may use. So a name
   is undefined if no file of the page declares it, and unused if no file of any page mentions it. */
import { readFileSync, readdirSync } from "node:fs";
import { basename } from "node:path";
import js from "@eslint/js";
import globals from "globals";

const SHARED = "src/cqrf/_views/assets";
const SERVER = "src/cqrf/serve/assets";
const REPORT = "src/cqrf/report/assets";

const listScripts = (folder) => readdirSync(folder).filter((name) => name.endsWith(".js"));
const read = (path) => readFileSync(path, "utf8");
const shared = new Set(listScripts(SHARED));

/* Paths of the scripts of every page: report/page.py lists those of a report, script elements those
   of a page of the server. */
function findPages() {
  const reports = [...read("src/cqrf/report/page.py").matchAll(/PageAssets\(\n([^]*?)\n\)/g)];
  const pages = readdirSync(SERVER).filter((name) => name.endsWith(".html"));
  const inReports = reports.map(([, list]) => [REPORT, [...list.matchAll(/"(\w+\.js)"/g)]]);
  const inPages = pages.map((name) => [SERVER, [...read(`${SERVER}/${name}`).matchAll(/src="(\w+\.js)"/g)]]);
  return [...inReports, ...inPages].map(([folder, found]) =>
    found.map(([, name]) => `${shared.has(name) ? SHARED : folder}/${name}`));
}

const listDeclared = (path) =>
  [...read(path).matchAll(/^(?:async )?(?:function|const|let|class) (?:(\w+)|[[{]([^=]+)[\]}] =)/gm)]
    .flatMap(([, name, several]) => (name ? [name] : several.split(",").map((each) => each.trim())));

/* For a file: names that the other files of all its pages declare, and those that one mentions. */
function describeFile(path, pages) {
  const companies = pages.filter((page) => page.includes(path)).map((page) => page.filter((each) => each !== path));
  if (!companies.length) throw new Error(`no page has ${path}`);
  const declared = companies.map((page) => new Set(page.flatMap(listDeclared)));
  const known = [...declared[0]].filter((name) => declared.every((names) => names.has(name)));
  const text = companies.flat().map(read).join("\n");
  const used = listDeclared(path).filter((name) => new RegExp(`\\b${name}\\b`).test(text));
  return { known, used };
}

const PAGES = findPages();
const FILES = [SHARED, SERVER, REPORT].flatMap((folder) => listScripts(folder).map((name) => `${folder}/${name}`));
const MARKUP = ["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc"];
const AS_TEXT = "text of the data must never be markup: use textContent";

const RULES = {
  curly: ["error", "multi-line"],
  eqeqeq: "error",
  "max-lines": ["error", 400],
  "no-eval": "error",
  "no-implied-eval": "error",
  "no-new-func": "error",
  "no-redeclare": ["error", { builtinGlobals: true }],
  "no-restricted-properties": ["error", { object: "document", property: "write", message: AS_TEXT }],
  "no-restricted-syntax": ["error", {
    selector: `MemberExpression[property.name=/^(${MARKUP.join("|")})$/]`, message: AS_TEXT,
  }],
  "no-shadow": ["error", { ignoreOnInitialization: true }],
  "no-use-before-define": ["error", { functions: false, variables: false }],
  "no-var": "error",
  "object-shorthand": "error",
  "prefer-const": "error",
  "prefer-template": "off",
  strict: ["error", "global"],
};

export default [
  { ignores: [".venv/", "docs/_build/", "node_modules/"] },
  js.configs.recommended,
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  { files: ["eslint.config.js"], languageOptions: { globals: globals.node } },
  {
    name: "the manual",
    files: ["docs/_static/*.js"],
    languageOptions: {
      sourceType: "script", ecmaVersion: 2023, globals: { ...globals.browser, DOCUMENTATION_OPTIONS: "readonly" },
    },
    rules: { ...RULES, strict: "off" },
  },
  ...FILES.map((path) => {
    const { known, used } = describeFile(path, PAGES);
    const names = Object.fromEntries(known.map((name) => [name, "readonly"]));
    return {
      name: basename(path),
      files: [path],
      languageOptions: { sourceType: "script", ecmaVersion: 2023, globals: { ...globals.browser, ...names } },
      rules: { ...RULES, "no-unused-vars": ["error", { varsIgnorePattern: `^(${used.join("|")})$` }] },
    };
  }),
];
