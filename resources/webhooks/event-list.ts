import { z } from "zod";
import type { Caller } from "../access/actor.ts";
import { WEBHOOK_EVENTS } from "../events/delivered-events.ts";
import { type Cursors, notOfThisList, pageOf, pageQuery } from "../http/pagination.ts";
import { validate } from "../http/validate.ts";
import { DELIVERY_EXAMPLE, deliverySchema, toPayload } from "./schema.ts";
import type { EventList } from "./types.ts";

const LISTED_EVENTS = z.enum(WEBHOOK_EVENTS).exclude(["link.clicked", "webhook.test"]).options;
const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
const LATEST = "latest";

export const eventQuery = z.strictObject({
  limit: pageQuery.shape.limit.describe("The maximum number of events. A page of large ones may have fewer."),
  cursor: z
    .string()
    .optional()
    .describe("A `next_cursor` or `resume_cursor`, or `latest` for later events only. Default: 30 days ago."),
  type: z
    .array(z.enum(LISTED_EVENTS))
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

export const eventPageSchema = pageOf(eventSchema, "EventPage", EVENT_EXAMPLE)
  .extend({
    data: z
      .array(eventSchema)
      .describe(
        "Each `type`, `timestamp` and `data` are those that webhooks get. Can be empty before the last page.",
      ),
    resume_cursor: z
      .string()
      .describe("The cursor behind this page. After the last page, it gets the events that happen later."),
  })
  .meta({
    title: "EventPage",
    examples: [{ data: [EVENT_EXAMPLE], next_cursor: null, resume_cursor: "fnOqhcM_lYVjjJ0w8DcVQjQy" }],
  });

type EventListOptions = { events: EventList; cursors: Cursors; shortUrl: string };

/** Creates the list of events for REST and MCP. */
export function createListEvents({ events, cursors, shortUrl }: EventListOptions) {
  return async function listEvents(
    { organizationId }: Caller,
    query: unknown,
  ): Promise<z.output<typeof eventPageSchema>> {
    const { cursor, limit, type: types = LISTED_EVENTS } = validate(eventQuery, query);
    // A cursor is a position among all events, so it remains valid with other types.
    const list = JSON.stringify([organizationId, "events"]);
    const given = cursor === undefined || cursor === LATEST ? 0 : cursors.read(cursor, list);
    const end = await events.end(organizationId);
    const after = cursor === LATEST ? end : Number(given);
    // The database was replaced by an older one, whose next events would be skipped.
    if (after > end) throw notOfThisList();
    const since = Date.now() - RETENTION_MS;
    const page =
      after === end
        ? { events: [], position: end }
        : await events.read(organizationId, { after, end, since, types, limit });
    const resume_cursor = cursors.write(String(page.position), list);
    return {
      data: page.events.map((event) => ({ id: event.id, ...toPayload(event, shortUrl) })) as ListedBody[],
      next_cursor: page.position < end ? resume_cursor : null,
      resume_cursor,
    };
  };
}

export type ListEvents = ReturnType<typeof createListEvents>;
type ListedBody = z.output<typeof eventSchema>;
