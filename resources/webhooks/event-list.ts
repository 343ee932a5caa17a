import { z } from "zod";
import type { Caller } from "../access/actor.ts";
import { WEBHOOK_EVENTS } from "../events/schemas.ts";
import { type Cursors, pageQuery } from "../http/pagination.ts";
import type { Problem } from "../http/problem.ts";
import { invalidField, validate } from "../http/validate.ts";
import { DELIVERY_EXAMPLE, deliverySchema, toPayload } from "./schema.ts";
import type { EventList } from "./types.ts";

const LISTED_EVENTS = z.enum(WEBHOOK_EVENTS).exclude(["link.clicked", "webhook.test"]).options;
const TYPE_RULE = { error: `must be one of ${LISTED_EVENTS.join(", ")}` };
const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
const LATEST = "latest";

export const eventQuery = z.strictObject({
  limit: pageQuery.shape.limit.describe("The maximum number of events. A page of large ones may have fewer."),
  after: z
    .string()
    .optional()
    .describe("A `next_cursor`, or `latest` for one that only later events follow. Default: 30 days ago."),
  type: z
    .array(z.enum(LISTED_EVENTS, TYPE_RULE))
    .min(1)
    .max(LISTED_EVENTS.length)
    .optional()
    .describe("Only events of these types."),
});

const EVENT_EXAMPLE = {
  id: DELIVERY_EXAMPLE.id,
  type: "authorization.granted" as const,
  timestamp: "2026-03-01T09:30:00.000Z",
  data: {
    grant_id: "V1StGXR8_Z5jdHi6B-myT",
    client_id: "lgc_Zr3vYb0aQn5fTtK1",
    user_id: "usr_01JAV3XQ7C5W9D2N8M4K6R0TBE",
    scopes: ["links:read"],
  },
};

const eventSchema = z.object({
  id: z.string().describe("The event ID, which webhooks get as `webhook-id`."),
  ...deliverySchema.shape.request.shape,
  type: z.enum(LISTED_EVENTS),
});

export const eventPageSchema = z
  .object({
    data: z.array(eventSchema).describe("Each `type`, `timestamp` and `data` are those that webhooks get."),
    next_cursor: z.string().describe("Where to continue, now or when there are new events. Never null."),
    has_more: z.boolean().describe("Whether to continue now: there may be more events."),
  })
  .meta({
    title: "EventPage",
    examples: [{ data: [EVENT_EXAMPLE], next_cursor: "fnOqhcM_lYVjjJ0w8DcVQjQy", has_more: false }],
  });

type EventListOptions = { events: EventList; cursors: Cursors; shortUrl: string };

/** Creates the list of events for REST and MCP. */
export function createListEvents({ events, cursors, shortUrl }: EventListOptions) {
  return async function listEvents(
    { organizationId }: Caller,
    query: unknown,
  ): Promise<z.output<typeof eventPageSchema>> {
    const { after: cursor, limit, type: types = LISTED_EVENTS } = validate(eventQuery, query);
    // A cursor is a position among all events, so it remains valid with other types.
    const list = JSON.stringify([organizationId, "events"]);
    const given = cursor === undefined || cursor === LATEST ? 0 : cursors.read(cursor, list, notAPosition);
    const end = await events.end(organizationId);
    const after = cursor === LATEST ? end : Number(given);
    // The database was replaced by an older one, whose next events would be skipped.
    if (after > end) throw notAPosition();
    const since = Date.now() - RETENTION_MS;
    const page =
      after === end
        ? { events: [], position: end }
        : await events.read(organizationId, { after, end, since, types, limit });
    return {
      data: page.events.map((event) => ({ id: event.id, ...toPayload(event, shortUrl) })) as ListedBody[],
      next_cursor: cursors.write(String(page.position), list),
      has_more: page.position < end,
    };
  };
}

export type ListEvents = ReturnType<typeof createListEvents>;
type ListedBody = z.output<typeof eventSchema>;

function notAPosition(): Problem {
  return invalidField("after", "must be a next_cursor of this list, or latest");
}
