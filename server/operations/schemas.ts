import { z } from "zod";

/** RFC 3339 in UTC. */
export const timestamp = z.iso.datetime();

export const flag = z.boolean({ error: "must be true or false" });

/** What `showApp` returns. */
export const authorizedAppSchema = z.object({
  id: z.string(),
  app: z.string().describe("The app's name."),
  client_id: z.string(),
  published_by: z.string().nullable().describe("The host or organization that publishes it."),
  scopes: z.array(z.string()),
  granted_at: timestamp,
  expires_at: timestamp,
  last_used_at: timestamp.nullable(),
});

export const deleteWebhooks = flag
  .default(false)
  .describe("Whether to delete the webhooks that were created this way, too, if you may manage webhooks.");
