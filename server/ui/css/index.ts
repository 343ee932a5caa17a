import { readFileSync } from "node:fs";

// The order within a list decides between rules of equal specificity.
const BASE = ["tokens", "base", "controls"];
const DASHBOARD = ["components", "layout", "table", "links", "analytics", "organization", "consent"];

/** The style of pages that load nothing. */
export const BASE_CSS = concatenate(BASE);

export const STYLE_CSS = concatenate(["font", ...BASE]);

/** The style sheet that dashboard pages load after `STYLE_CSS`. */
export const DASHBOARD_CSS = concatenate(DASHBOARD);

function concatenate(names: string[]): string {
  return names.map((name) => readFileSync(new URL(`${name}.css`, import.meta.url), "utf8")).join("\n");
}
