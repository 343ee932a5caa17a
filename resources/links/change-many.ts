import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { invalidField, validate } from "../http/validate.ts";
import { tag } from "./schema.ts";
import type { Link, LinkChanges } from "./types.ts";

/** The most links of one change. Each takes some milliseconds, and a browser waits for all of them. */
export const CHANGED_MAX = 1000;
/** The most links that are read together. They take up to 60 KB each. */
export const READ_MAX = 100;
// A change of more is several pieces of work, so that others of the organization get their turns.
const PER_PIECE = 100;

function idsUpTo(max: number) {
  const rule = { error: `must have 1 to ${max.toLocaleString("en")} links` };
  return z
    .array(z.string())
    .min(1, rule)
    .max(max, rule)
    .transform((values) => [...new Set(values)]);
}

export const selectionSchema = z.strictObject({ ids: idsUpTo(READ_MAX) });

type Current = Pick<Link, "tags" | "archived">;

/** What each action changes: nothing if it makes no difference. */
const CHANGES = {
  archive: ({ archived }) => (archived ? {} : { archived: true }),
  restore: ({ archived }) => (archived ? { archived: false } : {}),
  "add-tag": ({ tags }, tag) => (tags.includes(tag) ? {} : { tags: [...tags, tag] }),
  "remove-tag": ({ tags }, tag) =>
    tags.includes(tag) ? { tags: tags.filter((other) => other !== tag) } : {},
} satisfies Record<string, (current: Current, tag: string) => LinkChanges>;

const changeSchema = z.strictObject({
  ids: idsUpTo(CHANGED_MAX),
  action: z.enum(["archive", "restore", "add-tag", "remove-tag", "delete"]),
  tag: tag.optional(),
});

/** What happened to a link: whether it is different now, or why it could not be changed. */
export type ChangeResult = { id: string; isChanged: boolean; error?: Problem };

type ChangeOne = {
  /** Changes fields that depend on the current ones. */
  update(id: string, changes: (current: Current) => LinkChanges): Promise<unknown>;
  remove(id: string): Promise<void>;
  enqueue<T>(work: () => Promise<T>): Promise<T>;
};

/**
 * Changes links one after the other, each as a request of its own would. Rejects only on an unexpected error, after
 * which some may be changed.
 * @throws Problem 422 for an invalid change, or if not 1 to 1,000 links are given
 */
export async function changeLinks(input: unknown, change: ChangeOne): Promise<ChangeResult[]> {
  const { ids, ...rest } = validate(changeSchema, input);
  const apply = changeOf(rest, change);
  const results: ChangeResult[] = [];
  for (let start = 0; start < ids.length; start += PER_PIECE) {
    const piece = ids.slice(start, start + PER_PIECE);
    results.push(...(await change.enqueue(() => changeEach(piece, apply))));
  }
  return results;
}

async function changeEach(ids: string[], apply: (id: string) => Promise<boolean>): Promise<ChangeResult[]> {
  const results: ChangeResult[] = [];
  for (const id of ids) {
    // On SQLite, a transaction is a part of this turn of the event loop. Others are served in between.
    await nextTurn();
    try {
      results.push({ id, isChanged: await apply(id) });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      results.push({ id, isChanged: false, error });
    }
  }
  return results;
}

/** Returns a function that changes a link, and resolves to whether it is different now. */
function changeOf(
  { action, tag }: Omit<z.output<typeof changeSchema>, "ids">,
  { update, remove }: ChangeOne,
): (id: string) => Promise<boolean> {
  if (action === "delete") return (id) => remove(id).then(() => true);
  if (tag === undefined && action.endsWith("-tag")) throw invalidField("tag", "is required");
  return async (id) => {
    let isChanged = false;
    await update(id, (current) => {
      const changes = CHANGES[action](current, tag ?? "");
      isChanged = Object.keys(changes).length > 0;
      return changes;
    });
    return isChanged;
  };
}
