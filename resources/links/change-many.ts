import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { invalidField, validate } from "../http/validate.ts";
import { type Changes, changesSchema } from "./changes.ts";
import { tag } from "./schema.ts";
import type { Link } from "./types.ts";

/** The most links of one change. Each takes some milliseconds, and the caller waits for all of them. */
export const CHANGED_MAX = 1000;
/** The most links that are read together. They take up to 60 KB each. */
export const READ_MAX = 100;
// A change of more is several pieces of work, so that others of the organization get their turns.
const PER_PIECE = 100;

export function idsUpTo(max: number) {
  const rule = { error: `must have 1 to ${max.toLocaleString("en")} links` };
  return z
    .array(z.string())
    .min(1, rule)
    .max(max, rule)
    .transform((values) => [...new Set(values)]);
}

export const selectionSchema = z.strictObject({ ids: idsUpTo(READ_MAX) });

const actionSchema = z.strictObject({
  ids: idsUpTo(CHANGED_MAX),
  action: z.enum(["archive", "restore", "add-tag", "remove-tag", "change", "delete"]),
  tag: tag.optional(),
  changes: changesSchema.optional(),
});

/** Reads what to do with selected links. @throws Problem 422 also if the tag or the changes of an action are missing */
export function readAction(input: unknown): { ids: string[]; changes: Changes | "delete" } {
  const { ids, action, tag, changes } = validate(actionSchema, input);
  const given: Record<typeof action, Changes | "delete" | undefined> = {
    archive: { archived: true },
    restore: { archived: false },
    "add-tag": tag === undefined ? undefined : { add_tags: [tag] },
    "remove-tag": tag === undefined ? undefined : { remove_tags: [tag] },
    change: changes,
    delete: "delete",
  };
  if (given[action]) return { ids, changes: given[action] };
  throw invalidField(action === "change" ? "changes" : "tag", "is required");
}

/** What happened to a link: whether it is different now, or why it could not be changed. */
export type ChangeResult = { id: string; link?: Link; isChanged: boolean; error?: Problem };

type ChangeOptions = {
  apply(id: string): Promise<Pick<ChangeResult, "link" | "isChanged">>;
  enqueue<T>(work: () => Promise<T>): Promise<T>;
  /** How many characters of links the results have. Others are left out. */
  maxLength?: number;
};

/**
 * Changes links one after the other, each as a request of its own would. Rejects only on an unexpected error, after
 * which some may be changed.
 */
export async function changeEach(
  ids: string[],
  { apply, enqueue, maxLength = 0 }: ChangeOptions,
): Promise<ChangeResult[]> {
  const results: ChangeResult[] = [];
  let length = 0;

  async function changeOne(id: string): Promise<ChangeResult> {
    try {
      const { link, isChanged } = await apply(id);
      if (!link || length >= maxLength) return { id, isChanged };
      length += JSON.stringify(link).length;
      return { id, link, isChanged };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return { id, isChanged: false, error };
    }
  }

  for (let start = 0; start < ids.length; start += PER_PIECE) {
    await enqueue(async () => {
      for (const id of ids.slice(start, start + PER_PIECE)) {
        // On SQLite, a transaction is a part of this turn of the event loop. Others are served in between.
        await nextTurn();
        results.push(await changeOne(id));
      }
    });
  }
  return results;
}
