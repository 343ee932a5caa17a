import { z } from "zod";
import type { WebhookEvent } from "../events.ts";
import { LINK_EXAMPLE, linkSchema } from "../links/schema.ts";

const time = z.iso.datetime();

const click = z.object({
  link_id: z.string(),
  slug: z.string(),
  url: z.string().describe("Where the link led."),
  short_url: z.string(),
  clicked_at: time,
  referrer: z.string().nullable().describe("The host that the visitor came from, if known."),
  country: z.string().nullable().describe("ISO 3166-1 alpha-2, if known."),
  bot: z.boolean().describe("Whether it was a program that says so of itself."),
});

const rotation = z.object({
  client_id: z.string(),
  compromised: z.boolean().describe("Whether everything older was ended at once, tokens as well."),
  previous_expires_at: time.describe("Until when the secret before is good."),
});

const authorization = z.object({
  grant_id: z.string(),
  client_id: z.string().describe("The client of the app."),
  user_id: z.string().describe("The person in whose name it acts."),
  scopes: z.array(z.string()),
});

const CLICK_EXAMPLE = {
  link_id: LINK_EXAMPLE.id,
  slug: LINK_EXAMPLE.slug,
  url: LINK_EXAMPLE.url,
  short_url: LINK_EXAMPLE.short_url,
  clicked_at: "2026-03-01T09:30:00.000Z",
  referrer: "news.example",
  country: "DE",
  bot: false,
};
const ROTATION_EXAMPLE = {
  client_id: "lgc_Zr3vYb0aQn5fTtK1",
  compromised: false,
  previous_expires_at: "2026-03-02T09:30:00.000Z",
};
const AUTHORIZATION_EXAMPLE = {
  grant_id: "V1StGXR8_Z5jdHi6B-myT",
  client_id: "lgc_Zr3vYb0aQn5fTtK1",
  user_id: "usr_01JAV3XQ7C5W9D2N8M4K6R0TBE",
  scopes: ["links:read", "links:write"],
};

const link = { data: linkSchema, example: LINK_EXAMPLE };
const PAYLOADS: Record<WebhookEvent, { meaning: string; data: z.ZodObject; example: object }> = {
  "link.created": { meaning: "A link was made.", ...link },
  "link.updated": { meaning: "A link was changed; this is how it is now.", ...link },
  "link.deleted": { meaning: "A link was deleted; this is how it was.", ...link },
  "link.clicked": { meaning: "A short link was followed.", data: click, example: CLICK_EXAMPLE },
  "client.secret_rotated": {
    meaning: "The client of the organization got a new secret.",
    data: rotation,
    example: ROTATION_EXAMPLE,
  },
  "authorization.granted": {
    meaning: "A person let an app act for the organization.",
    data: authorization,
    example: AUTHORIZATION_EXAMPLE,
  },
  "authorization.revoked": {
    meaning: "An app may not act for the organization any more.",
    data: authorization,
    example: AUTHORIZATION_EXAMPLE,
  },
  "webhook.test": {
    meaning: "Somebody tested this webhook; it means nothing.",
    data: z.object({ webhook_id: z.string() }),
    example: { webhook_id: "whk_01JAV4T9Q5YQ8Z6K3W2N7R1XCE" },
  },
};

/** What webhooks are told of: what it means, and the schema of the body that is sent. */
export const TOLD: readonly { event: WebhookEvent; meaning: string; body: z.ZodObject }[] = Object.entries(
  PAYLOADS,
).map(([name, { meaning, data, example }]) => {
  const event = name as WebhookEvent;
  const body = z
    .object({ type: z.literal(event), timestamp: time.describe("When it happened."), data })
    .meta({
      title: titleOf(event),
      examples: [{ type: event, timestamp: "2026-03-01T09:30:00.000Z", data: example }],
    });
  return { event, meaning, body };
});

/** `link.created` → `LinkCreatedEvent`. */
function titleOf(event: WebhookEvent): string {
  const words = event.split(/[._]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join("")}Event`;
}
