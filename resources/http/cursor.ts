import { createHmac, timingSafeEqual } from "node:crypto";
import { invalidField } from "./validate.ts";

const TAG_BYTES = 16;

/** Signs the positions of pagination cursors and verifies them, along with the list that they belong to. */
export type Cursors = {
  /** @param list identifies the list, such as the organization and the filter */
  write(position: string, list: string): string;
  /** @throws Problem 422 `invalid_cursor` for one that was modified or belongs to another list */
  read(cursor: string, list: string): string;
};

/** @param secret shared by all processes, so any of them can serve the next page */
export function createCursors(secret: string): Cursors {
  const sign = (position: string, list: string) =>
    createHmac("sha256", secret).update(`${list}\n${position}`).digest().subarray(0, TAG_BYTES);
  return {
    write: (position, list) =>
      Buffer.concat([sign(position, list), Buffer.from(position)]).toString("base64url"),
    read(cursor, list) {
      const bytes = Buffer.from(cursor, "base64url");
      const position = bytes.subarray(TAG_BYTES).toString();
      const isValid =
        bytes.length > TAG_BYTES && timingSafeEqual(bytes.subarray(0, TAG_BYTES), sign(position, list));
      if (!isValid) throw invalidField("cursor", "must be a next_cursor of this list with the same filter");
      return position;
    },
  };
}
