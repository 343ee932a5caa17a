import type { Plan } from "../../resources/plans.ts";
import type { LeasedDelivery } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { DELIVERY_COLUMNS, type DeliveryRow, toDelivery } from "./delivery-row.ts";
import { encryptionContextOf } from "./row.ts";

/** A delivery with its event, webhook and organization. */
export type LeasedRow = DeliveryRow & {
  webhookId: string;
  organizationId: string;
  organizationDeletedAt: number | null;
  url: string;
  enabled: boolean | number;
  plan: Plan;
  attemptCount: number;
  failingSince: number | null;
  pausedUntil: number | null;
  secret: string;
  previousSecret: string | null;
  previousUntil: number | null;
};

/** The columns of a delivery `d` with its event `e`, webhook `w` and organization `o`. */
export const LEASED_COLUMNS = {
  ...DELIVERY_COLUMNS,
  webhookId: "w.id",
  organizationId: "w.organization_id",
  organizationDeletedAt: "o.deleted_at",
  url: "w.url",
  enabled: "w.enabled",
  plan: "o.plan",
  attemptCount: "d.attempts",
  failingSince: "w.failing_since",
  pausedUntil: "w.paused_until",
  secret: "w.secret",
  previousSecret: "w.previous_secret",
  previousUntil: "w.previous_until",
};

type LeaseContext = { lease: string; now: number; encryption: Encryption };

/** Converts a row to a leased delivery with its decrypted signing secrets. */
export function toLeasedDelivery(row: LeasedRow, { lease, now, encryption }: LeaseContext): LeasedDelivery {
  const { webhookId, organizationId, url, attemptCount, failingSince, pausedUntil } = row;
  const hasPrevious = row.previousSecret !== null && (row.previousUntil ?? 0) > now;
  const secrets = [row.secret, ...(hasPrevious ? [row.previousSecret as string] : [])];
  return {
    ...toDelivery(row),
    lease,
    webhookId,
    organizationId,
    url,
    enabled: Boolean(row.enabled),
    plan: row.organizationDeletedAt === null ? row.plan : "free",
    attemptCount,
    failingSince,
    pausedUntil,
    secrets: secrets.flatMap((secret) => decrypt(encryption, secret, webhookId)),
  };
}

/** Returns no secret if it can't be decrypted: one manipulated row must not block the deliveries of all others. */
function decrypt(encryption: Encryption, ciphertext: string, webhookId: string): string[] {
  try {
    return [encryption.decrypt(ciphertext, encryptionContextOf(webhookId))];
  } catch {
    return [];
  }
}
