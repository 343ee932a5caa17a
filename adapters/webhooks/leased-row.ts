import type { Plan } from "../../resources/plans.ts";
import type { LeasedDelivery } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { DELIVERY_COLUMNS, type DeliveryRow, toDelivery } from "./delivery-row.ts";
import { decryptUrl, encryptionContextOf } from "./row.ts";

/** A delivery with its event, webhook and organization. */
export type LeasedRow = DeliveryRow & {
  webhookId: string;
  organizationId: string;
  organizationDeletedAt: number | null;
  url: string;
  enabled: boolean | number;
  plan: Plan;
  suspendedAt: number | null;
  attemptCount: number;
  host: string;
  urlHash: string;
  failingSince: number | null;
  slowSince: number | null;
  failures: number;
  pausedUntil: number | null;
  traceparent: string | null;
  verificationEventId: string | null;
  verificationExpiresAt: number | null;
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
  suspendedAt: "o.suspended_at",
  attemptCount: "d.attempts",
  host: "w.host",
  urlHash: "w.url_hash",
  failingSince: "w.failing_since",
  slowSince: "w.slow_since",
  failures: "w.failures",
  pausedUntil: "w.paused_until",
  traceparent: "e.traceparent",
  verificationEventId: "w.verification_event_id",
  verificationExpiresAt: "w.verification_expires_at",
  secret: "w.secret",
  previousSecret: "w.previous_secret",
  previousUntil: "w.previous_until",
};

type LeaseContext = { lease: string; now: number; encryption: Encryption };

/** Converts a row to a leased delivery with its decrypted signing secrets. */
export function toLeasedDelivery(row: LeasedRow, { lease, now, encryption }: LeaseContext): LeasedDelivery {
  const { webhookId, organizationId, host, urlHash, attemptCount, failures } = row;
  const hasPrevious = row.previousSecret !== null && (row.previousUntil ?? 0) > now;
  const secrets = [row.secret, ...(hasPrevious ? [row.previousSecret as string] : [])];
  return {
    ...toDelivery(row),
    lease,
    webhookId,
    organizationId,
    url: decrypted(() => decryptUrl(encryption, { id: webhookId, url: row.url }))[0] ?? "",
    enabled: Boolean(row.enabled),
    plan: row.organizationDeletedAt === null ? row.plan : "free",
    suspended: row.suspendedAt !== null,
    attemptCount,
    host,
    urlHash,
    failures,
    failingSince: row.failingSince,
    slowSince: row.slowSince,
    pausedUntil: row.pausedUntil,
    traceparent: row.traceparent,
    verifies: row.verificationEventId === row.eventId,
    unverifiedUntil: row.verificationExpiresAt,
    secrets: secrets.flatMap((secret) =>
      decrypted(() => encryption.decryptOften(secret, encryptionContextOf(webhookId))),
    ),
  };
}

/** Returns nothing if a value can't be decrypted: one manipulated row must not block the deliveries of all others. */
function decrypted(decrypt: () => string): string[] {
  try {
    return [decrypt()];
  } catch {
    return [];
  }
}
