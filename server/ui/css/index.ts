import { readFileSync } from "node:fs";

// The order within a list decides between rules of equal specificity.
const BASE = ["base", "page", "fields", "controls"];
const DASHBOARD = [
  "layout",
  "header",
  "panel",
  "notices",
  "plans",
  "forms",
  "values",
  "table",
  "links",
  "chart",
  "deliveries",
  "connect",
  "landing",
];

export const BASE_CSS = concatenate(BASE);

/** The style sheet that dashboard pages load after `BASE_CSS`. */
export const DASHBOARD_CSS = concatenate(DASHBOARD);

function concatenate(names: string[]): string {
  return names.map((name) => readFileSync(new URL(`${name}.css`, import.meta.url), "utf8")).join("\n");
}
