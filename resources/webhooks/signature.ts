import { createHmac, randomBytes } from "node:crypto";

const SECRET_BYTES = 32;
const SECRET_PREFIX = "whsec_";

/** Generates a signing secret: `whsec_` and 32 random bytes in base64. */
export function newWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64");
}

/** Standard Webhooks 1.0.0, "Signature scheme". One signature per secret, for receivers during a rotation. */
export function signatureHeaders(
  id: string,
  at: number,
  body: string,
  secrets: string[],
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000));
  const sign = (secret: string) =>
    createHmac("sha256", Buffer.from(secret.slice(SECRET_PREFIX.length), "base64"))
      .update(`${id}.${timestamp}.${body}`)
      .digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map((secret) => `v1,${sign(secret)}`).join(" "),
  };
}
