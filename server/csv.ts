import { Readable } from "node:stream";
import type { Context } from "koa";
import { toDate } from "./ui/text.ts";

/** Formats the first row, after the byte order mark without which Excel doesn't read UTF-8. */
export function csvHeader(columns: readonly string[]): string {
  return `\ufeff${toCsv([columns])}`;
}

/** Formats rows as CSV (RFC 4180), with the line endings of Unix. */
export function toCsv(rows: (readonly unknown[])[]): string {
  return rows.map((cells) => `${cells.map(toCell).join(",")}\n`).join("");
}

/** Returns the values of these columns, in their order. Objects are JSON. */
export function cellsOf(columns: readonly string[], row: Record<string, unknown>): unknown[] {
  return columns.map((name) =>
    typeof row[name] === "object" ? row[name] && JSON.stringify(row[name]) : row[name],
  );
}

// Also the variants that Unicode's NFKC makes the same, which Apple Numbers normalizes, and behind spaces, which programs
// trim. An import removes one apostrophe, so a text that has its own gets another.
const FORMULA =
  /^'*\s*[=+\-@\t\r\u207a\u207c\u208a\u208c\u2a75\u2a76\ufb29\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]/;

/** OWASP, "CSV Injection": without the apostrophe, a spreadsheet would run a text that starts like a formula. */
function toCell(value: unknown): string {
  const text = String(value ?? "");
  const safe = typeof value === "string" && FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const NAME_MAX = 60;

/** Names a file after an organization, what it has and the day, such as “harbor-coffee-links-2026-11-22”. */
export function exportName(organization: string, what: string): string {
  const name = organization.toLowerCase().slice(0, NAME_MAX);
  return [...(name.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []), what, toDate(Date.now())].join("-");
}

/** Sends a CSV file to be saved, as fast as the client reads it. */
export function sendCsv(ctx: Context, name: string, parts: AsyncIterable<string>): void {
  ctx.type = "text/csv";
  ctx.attachment(`${name}.csv`);
  ctx.body = Readable.from(parts);
}
