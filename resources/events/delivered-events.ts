import { z } from "zod";
import { LINK_EXAMPLE, linkSchema } from "../links/schema.ts";
import { EVENT_DATA_SCHEMAS } from "./schemas.ts";

const TIMESTAMP_EXAMPLE = "2026-03-01T09:30:00.000Z";
const GRANT_EXAMPLE = {
  grant_id: "V1StGXR8_Z5jdHi6B-myT",
  client_id: "lgc_Zr3vYb0aQn5fTtK1",
  user_id: "usr_01JAV4Q7M2X9C5B8N3K6T0R1WF",
};
const AUTHORIZATION_EXAMPLE = { ...GRANT_EXAMPLE, scopes: ["links:read", "links:write"] };

// The body of a link event carries the link itself.
const link = { data: linkSchema, example: LINK_EXAMPLE };

type Delivered = { meaning: string; data?: z.ZodObject; example: object };

const DELIVERED_EVENTS = {
  "link.created": { meaning: "A link was created. Not sent for links that are imported.", ...link },
  "link.updated": { meaning: "A link was updated. The data is its new state.", ...link },
  "link.deleted": { meaning: "A link was deleted. The data is its last state.", ...link },
  "link.clicked": {
    meaning: "A short link was followed, once or several times within a second.",
    example: {
      link_id: LINK_EXAMPLE.id,
      slug: LINK_EXAMPLE.slug,
      url: LINK_EXAMPLE.url,
      short_url: LINK_EXAMPLE.short_url,
      clicked_at: TIMESTAMP_EXAMPLE,
      clicks: 1,
      bot_clicks: 0,
      referrer: "news.example",
      country: "DE",
      device: "mobile",
      browser: "Safari",
      operating_system: "iOS",
    },
  },
  "client.secret_rotated": {
    meaning: "The client secret was rotated.",
    example: {
      client_id: "lgc_Zr3vYb0aQn5fTtK1",
      compromised: false,
      previous_expires_at: "2026-03-02T09:30:00.000Z",
    },
  },
  "authorization.granted": {
    meaning: "A user authorized an app to act for the organization.",
    example: AUTHORIZATION_EXAMPLE,
  },
  "authorization.revoked": {
    meaning: "An app lost its access to the organization.",
    example: AUTHORIZATION_EXAMPLE,
  },
  "token.replay_detected": {
    meaning:
      "An authorization code or refresh token was used again, so it may have been stolen. All tokens of its grant were revoked.",
    example: { ...GRANT_EXAMPLE, replayed: "refresh_token" },
  },
  "webhook.test": {
    meaning: "A test event. Respond with 2xx; otherwise, it is safe to ignore.",
    example: { webhook_id: "whk_01JAV4T9Q5YQ8Z6K3W2N7R1XCE", verification: true },
  },
} satisfies Partial<Record<keyof typeof EVENT_DATA_SCHEMAS, Delivered>>;

/** The event types that webhooks can subscribe to. */
export const WEBHOOK_EVENTS = Object.keys(DELIVERED_EVENTS) as (keyof typeof DELIVERED_EVENTS)[];

/** The other event types in the audit logs of organizations. The operator's log belongs to none. */
export const AUDIT_EVENTS = (Object.keys(EVENT_DATA_SCHEMAS) as (keyof typeof EVENT_DATA_SCHEMAS)[]).filter(
  (type) => !type.startsWith("operator.") && !Object.hasOwn(DELIVERED_EVENTS, type),
);

/** The body of each event's deliveries. */
export const WEBHOOK_EVENT_SCHEMAS = WEBHOOK_EVENTS.map((event) => {
  const { meaning, data, example }: Delivered = DELIVERED_EVENTS[event];
  const body: z.ZodObject = z
    .object({
      type: z.literal(event),
      timestamp: z.iso.datetime().describe("When the event happened."),
      data: data ?? EVENT_DATA_SCHEMAS[event],
    })
    .meta({
      title: titleOf(event),
      examples: [{ type: event, timestamp: TIMESTAMP_EXAMPLE, data: example }],
    });
  return { event, meaning, body };
});

function titleOf(event: string): string {
  const words = event.split(/[._]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join("")}Event`;
}
