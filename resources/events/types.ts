import type { Actor } from "../access/actor.ts";
import type { WEBHOOK_EVENTS } from "./delivered-events.ts";
import type { EVENT_DATA_SCHEMAS } from "./schemas.ts";

export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];
export type EventType = keyof typeof EVENT_DATA_SCHEMAS;

/** The operator of the service, using the administration command. */
export const OPERATOR: Actor = { id: "operator" };
export const ANONYMOUS: Actor = { id: "anonymous" };
export const SYSTEM: Actor = { id: "system" };
