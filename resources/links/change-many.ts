import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { invalidField, validate } from "../http/validate.ts";
import { tag } from "./schema.ts";
import type { LinkChanges } from "./types.ts";

const LINKS_MAX = 100;
const IDS_RULE = { error: `must have 1 to ${LINKS_MAX} links` };
const ids = z
  .array(z.string({ error: "must be a string" }), { error: "must be an array" })
  .min(1, IDS_RULE)
  .max(LINKS_MAX, IDS_RULE)
  .transform((values) => [...new Set(values)]);

export const selectionSchema = z.strictObject({ ids });

const changeSchema = selectionSchema.extend({
  action: z.enum(["archive", "restore", "add-tag", "remove-tag", "delete"]),
  tag: tag.optional(),
});

/** What happened to a link: it was changed, or the error says why not. */
export type ChangeResult = { id: string; error?: Problem };

type ChangeOne = {
  /** Changes fields that depend on the current tags. */
  update(id: string, changes: (current: { tags: string[] }) => LinkChanges): Promise<unknown>;
  remove(id: string): Promise<void>;
};

/**
 * Changes links one after the other, each as a request of its own would. Rejects only on an unexpected error, after
 * which some may be changed.
 * @throws Problem 422 for an invalid change, or if not 1 to 100 links are given
 */
export async function changeLinks(input: unknown, change: ChangeOne): Promise<ChangeResult[]> {
  const { ids, ...rest } = validate(changeSchema, input);
  const apply = changeOf(rest, change);
  const results: ChangeResult[] = [];
  for (const id of ids) {
    // On SQLite, a transaction is a part of this turn of the event loop. Others are served in between.
    await nextTurn();
    try {
      await apply(id);
      results.push({ id });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      results.push({ id, error });
    }
  }
  return results;
}

function changeOf(
  { action, tag }: Omit<z.output<typeof changeSchema>, "ids">,
  { update, remove }: ChangeOne,
): (id: string) => Promise<unknown> {
  if (action === "delete") return remove;
  if (action === "archive" || action === "restore") {
    return (id) => update(id, () => ({ archived: action === "archive" }));
  }
  if (tag === undefined) throw invalidField("tag", "is required");
  return (id) =>
    update(id, ({ tags }) => {
      const others = tags.filter((other) => other !== tag);
      if (action === "remove-tag") return { tags: others };
      return tags.includes(tag) ? {} : { tags: [...tags, tag] };
    });
}
