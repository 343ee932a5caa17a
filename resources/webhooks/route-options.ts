import { z } from "zod";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import type { ApiContext } from "../http/api-context.ts";
import type { Operation } from "../openapi/operation.ts";
import { WEBHOOK_EXAMPLE } from "./schema.ts";
import type { WebhookService } from "./service.ts";

export type WebhookRouteOptions = { webhooks: WebhookService; shortUrl: string };

export const READ = { tag: "Webhooks", scopes: ["webhooks:read"] } satisfies Partial<Operation>;
export const WRITE = { tag: "Webhooks", scopes: ["webhooks:write"] } satisfies Partial<Operation>;

/** The path parameters of a webhook. */
export const webhookParams = z.object({
  id: z
    .string()
    .describe("The webhook ID.")
    .meta({ examples: [WEBHOOK_EXAMPLE.id] }),
});

/** Returns the caller that the bearer check authenticated. */
export function callerOf(ctx: ApiContext): AuthenticatedCaller {
  return ctx.state.caller;
}

/** Returns the webhook ID in the path. */
export function idOf(ctx: ApiContext): string {
  return ctx.params?.id as string;
}
