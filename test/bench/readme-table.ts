import { KUTT } from "./kutt.ts";
import type { Measured } from "./measure.ts";
import { OURS } from "./versions.ts";

const SYSTEMS = [OURS, "better-auth", "node-oauth2-server", "oidc-provider + Knex", KUTT];
const rows = new Map<string, Map<string, Measured>>();

/** Adds a row to the table for the README. */
export function noteForReadme(title: string, measured: Map<string, Measured>): void {
  rows.set(title, measured);
}

/** Prints the rates of the systems that a user would choose from: for each, the better one of 16 and 64 connections. */
export function printReadmeTable(): void {
  if (rows.size === 0) return;
  console.log(`\n| per second | ${SYSTEMS.join(" | ")} |\n|---${"|--:".repeat(SYSTEMS.length)}|`);
  for (const [title, measured] of rows) {
    const cells = SYSTEMS.map((system) => bestRate(measured.get(system)));
    console.log(`| ${[title, ...cells].join(" | ")} |`);
  }
}

function bestRate(measured: Measured | undefined): string {
  if (!measured) return "–";
  return Math.round(Math.max(...measured.levels.map(({ rate }) => rate))).toLocaleString("en");
}
