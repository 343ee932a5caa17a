import { createHmac, randomBytes } from "node:crypto";
import { toView } from "../links/schema.ts";
import type { Link } from "../ports.ts";
import type { ToldEvent } from "./ports.ts";

const SECRET_BYTES = 32;
const SECRET_PREFIX = "whsec_";

/** What a receiver is sent: the same in every attempt (Standard Webhooks 1.0.0, "Payload structure"). */
export type Message = { type: string; timestamp: string; data: Record<string, unknown> };

/** The body of an event; a link is shown as the API shows it, and one that was clicked with its short address. */
export function toMessage({ type, createdAt, data }: ToldEvent, shortUrl: string): Message {
  return { type, timestamp: new Date(createdAt).toISOString(), data: told(data, shortUrl) };
}

function told(data: ToldEvent["data"], shortUrl: string): Message["data"] {
  if ("link" in data) return toView(data.link as Link, shortUrl);
  return "slug" in data ? { ...data, short_url: `${shortUrl}/${data.slug}` } : data;
}

/** A new secret: `whsec_` and 32 random bytes in base64. */
export function newWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64");
}

/**
 * The headers that prove where a body comes from (Standard Webhooks 1.0.0, "Signature scheme").
 * @param id the same in every attempt
 * @param at epoch milliseconds of the attempt
 * @param secrets each signs, so that a receiver may take its time with a new one
 */
export function signatureHeaders(
  id: string,
  at: number,
  body: string,
  secrets: string[],
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000));
  const signatures = secrets.map((secret) => `v1,${sign(`${id}.${timestamp}.${body}`, secret)}`);
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}

function sign(content: string, secret: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
  return createHmac("sha256", key).update(content).digest("base64");
}
