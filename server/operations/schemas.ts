import { z } from "zod";
import { hasAtMost, isLine } from "../../resources/http/text.ts";
import { toJson } from "../../resources/http/to-json.ts";
import type { ShownApp } from "../clients/client-view.ts";
import type { Word } from "./operation.ts";

/** RFC 3339 in UTC. */
export const timestamp = z.iso.datetime();

export const flag = z.boolean({ error: "must be true or false" });

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

export function appToJson(app: ShownApp) {
  return toJson(authorizedAppSchema, { ...app, app: app.name, publishedBy: app.publisher });
}

const REASON_MAX = 255;
const REASON_RULE = `must be 1 to ${REASON_MAX} characters without control characters`;

/** Why something is disabled or suspended. */
export const reasonSchema = z
  .string({ error: REASON_RULE })
  .trim()
  .refine((text) => text !== "" && hasAtMost(REASON_MAX, text) && isLine(text), { error: REASON_RULE })
  .nullable()
  .default(null);

/** The option of a command whose input has a reason. */
export function reasonOption(readers: string): Word {
  return { syntax: "--reason <text>", text: `why, for ${readers}: 1 to ${REASON_MAX} characters` };
}

export const deleteWebhooks = flag
  .default(false)
  .describe("Whether to delete the webhooks that were created this way, too, if you may manage webhooks.");
