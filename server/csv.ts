import { Readable } from "node:stream";
import { type Options, stringify } from "csv-stringify/sync";
import type { Context } from "koa";

/** Formats rows as CSV. Without the escape, a spreadsheet would run a cell that starts like a formula. */
export const toCsv = (rows: object[], options: Options = {}): string =>
  stringify(rows, { ...options, escape_formulas: true });

/** Sends a CSV file to be saved, as fast as the client reads it. */
export function sendCsv(ctx: Context, name: string, parts: AsyncIterable<string>): void {
  ctx.type = "text/csv";
  ctx.attachment(`${name}.csv`);
  ctx.body = Readable.from(parts);
}
