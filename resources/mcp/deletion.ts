import { z } from "zod";

/** The result of a tool that deletes something. */
export const deletionSchema = z.object({
  deleted: z.boolean(),
  id: z.string(),
  reason: z.string().optional(),
});

/** Returns the result of a deletion that its user did not confirm. */
export function notDeleted({ id }: Record<string, unknown>, reason: string): z.output<typeof deletionSchema> {
  return { deleted: false, id: id as string, reason };
}
