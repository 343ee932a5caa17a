import { type EventData, toPublicData } from "../events/public-data.ts";
import type { DeliveredEvent } from "./types.ts";

/** The body of a delivery, the same in every attempt (Standard Webhooks 1.0.0, "Payload structure"). */
export type WebhookPayload = { type: string; timestamp: string; data: EventData };

/** Composes the body of an event's deliveries: its public data, or the link itself for an event about a link. */
export function toPayload(event: DeliveredEvent, shortUrl: string): WebhookPayload {
  const { type, createdAt } = event;
  const data = toPublicData(event, shortUrl);
  return {
    type,
    timestamp: new Date(createdAt).toISOString(),
    data: "link" in data ? (data.link as EventData) : data,
  };
}
