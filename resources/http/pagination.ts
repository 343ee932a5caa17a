import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Problem } from "./problem.ts";
import { invalidField } from "./validate.ts";

const LIMIT_RULE = { error: "must be a whole number from 1 to 100" };
export const DEFAULT_LIMIT = 25;

export const pageQuery = z.strictObject({
  limit: z
    .int(LIMIT_RULE)
    .min(1, LIMIT_RULE)
    .max(100, LIMIT_RULE)
    .default(DEFAULT_LIMIT)
    .describe("The maximum number of results."),
  cursor: z.string().optional().describe("The `next_cursor` of the previous page."),
});

export function pageOf<Item extends z.ZodObject>(item: Item, title: string, example: object) {
  const next_cursor = z.string().nullable().describe("The cursor of the next page; null on the last page.");
  const examples = [{ data: [example], next_cursor: null }] as never[];
  return z.object({ data: z.array(item), next_cursor }).meta({ title, examples });
}

const TAG_BYTES = 16;

export type Cursors = ReturnType<typeof createCursors>;

/** Creates signed cursors: positions in a list of an organization and filter. All processes share `secret`. */
export function createCursors(secret: string) {
  const sign = (position: string, list: string) =>
    createHmac("sha256", secret).update(`${list}\n${position}`).digest().subarray(0, TAG_BYTES);
  return {
    write: (position: string, list: string) =>
      Buffer.concat([sign(position, list), Buffer.from(position)]).toString("base64url"),
    /** @throws Problem 422 `invalid_cursor` for one that was modified or of another list */
    read(cursor: string, list: string): string {
      const bytes = Buffer.from(cursor, "base64url");
      const position = bytes.subarray(TAG_BYTES).toString();
      const isValid =
        bytes.length > TAG_BYTES && timingSafeEqual(bytes.subarray(0, TAG_BYTES), sign(position, list));
      if (!isValid) throw notOfThisList();
      return position;
    },
  };
}

export function notOfThisList(): Problem {
  return invalidField("cursor", "must be a cursor of this list with the same filter");
}
