import type { WebhookEvent } from "./api.ts";

/** Standard Webhooks 1.0.0 leaves the tolerance to the receiver; its libraries use this one. */
const TOLERANCE_S = 5 * 60;
const SIGNATURE = /^v1,([A-Za-z0-9+/]{43}=)$/;
const SECRET = /^(?:whsec_)?([A-Za-z0-9+/]+={0,2})$/;

/** The request isn't from the server, or is too old. Respond with 400. */
export class WebhookVerificationError extends Error {
  override name = "WebhookVerificationError";
}

type RequestHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Returns the event in a request to a webhook, once its signature is verified (Standard Webhooks 1.0.0).
 *
 * @param body exactly as received, not parsed
 * @param headers of the Fetch API, or of Node.js
 * @param secrets the secret of the webhook, or several while you rotate it
 * @throws WebhookVerificationError for a request that isn't signed with a secret, or not within five minutes of now
 * @throws TypeError for a secret that isn't one
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: RequestHeaders,
  secrets: string | readonly string[],
): Promise<WebhookEvent> {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
    read(headers, name),
  ) as [string, string, string];
  // A timestamp that is no number is too far from every time.
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_S)) {
    throw new WebhookVerificationError("webhook-timestamp is more than five minutes from now");
  }
  const text = typeof body === "string" ? body : new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  for (const key of await Promise.all([secrets].flat().map(importKey))) {
    for (const signature of signatures.split(" ")) {
      const [, encoded] = SIGNATURE.exec(signature) ?? [];
      // Compares in constant time.
      const isValid = encoded && (await crypto.subtle.verify("HMAC", key, decode(encoded), signed));
      if (isValid) return JSON.parse(text);
    }
  }
  throw new WebhookVerificationError("webhook-signature has no valid signature");
}

function read(headers: RequestHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value === "string") return value;
  throw new WebhookVerificationError(`${name} is missing`);
}

function importKey(secret: string): Promise<CryptoKey> {
  const [, encoded] = SECRET.exec(secret) ?? [];
  if (!encoded) throw new TypeError("the secret must be that of a webhook: whsec_ and base64");
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", decode(encoded), algorithm, false, ["verify"]);
}

function decode(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
