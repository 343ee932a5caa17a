import { createHmac, timingSafeEqual } from "node:crypto";
import { Problem } from "./problem.ts";

const TAG_BYTES = 16;

/** Signed positions in a list: one that was edited, or came from another organization or filter, is refused. */
export type Cursors = {
  /** @param bound what the cursor is good for, such as the organization and the filter */
  write(position: string, bound: string): string;
  /** @throws Problem 422 `invalid_cursor` */
  read(cursor: string, bound: string): string;
};

/** @param secret shared by every process, so that a page may come from another one */
export function createCursors(secret: string): Cursors {
  const sign = (position: string, bound: string) =>
    createHmac("sha256", secret).update(`${bound}\n${position}`).digest().subarray(0, TAG_BYTES);
  return {
    write: (position, bound) =>
      Buffer.concat([sign(position, bound), Buffer.from(position)]).toString("base64url"),
    read(cursor, bound) {
      const bytes = Buffer.from(cursor, "base64url");
      const position = bytes.subarray(TAG_BYTES).toString();
      const isOurs =
        bytes.length > TAG_BYTES && timingSafeEqual(bytes.subarray(0, TAG_BYTES), sign(position, bound));
      if (!isOurs) {
        const message = "This is not a next_cursor of this list with this filter.";
        throw new Problem(422, "invalid_cursor", message, { errors: [{ field: "cursor", message }] });
      }
      return position;
    },
  };
}
