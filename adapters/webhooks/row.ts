import type { EventType, WebhookEvent } from "../../resources/events/types.ts";
import { tryTo } from "../../resources/try-to.ts";
import type { Delivery, Exchange, Webhook, WebhookFields } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { sha256 } from "../crypto/ids.ts";
import { contextOf, type Flag } from "../database/tables/columns.ts";
import type { EventRow } from "../database/tables/events.ts";
import { type DeliveryRow, deliveries, type WebhookRow, webhooks } from "../database/tables/webhooks.ts";
import type { DomainEvent } from "../events/outbox.ts";

export function toColumns(
  encryption: Encryption,
  { id, organization_id }: Pick<WebhookRow, "id" | "organization_id">,
  { url, events, enabled }: Partial<WebhookFields>,
) {
  return {
    ...(url !== undefined && {
      url: encryption.encrypt(url, contextOf(webhooks.columns.url, id)),
      ...indexed(organization_id, url),
    }),
    ...(events && { events: events.join(" ") }),
    ...(enabled !== undefined && { enabled }),
  };
}

export function toWebhook(encryption: Encryption, row: WebhookRow): Webhook {
  return {
    id: row.id,
    organizationId: row.organization_id,
    url: decryptUrl(encryption, row),
    events: eventsOf(row),
    enabled: Boolean(row.enabled),
    verified: row.verification_expires_at === null,
    disabledReason: row.disabled_reason,
    failingSince: row.failing_since,
    lastSuccessAt: row.last_success_at,
    createdBy: row.created_by,
    createdVia: row.created_via,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** Returns what the audit log keeps of a deleted webhook: without a URL that can't be decrypted. */
export function auditedDeletion(encryption: Encryption, row: WebhookRow) {
  const url = tryTo(() => decryptUrl(encryption, row));
  return auditedFields({ ...(url !== undefined && { url }), events: eventsOf(row) });
}

function eventsOf({ events }: WebhookRow): WebhookEvent[] {
  return events.split(" ") as WebhookEvent[];
}

/** The hash doesn't depend on the key, nor on a dot after the hostname, which names the same host (RFC 1034 §3.1). */
function indexed(organizationId: string, url: string): Pick<WebhookRow, "host" | "url_hash"> {
  const parsed = URL.parse(url);
  if (parsed?.hostname.endsWith(".")) parsed.hostname = parsed.hostname.slice(0, -1);
  return { host: parsed?.hostname ?? "", url_hash: sha256(`${organizationId} ${parsed?.href ?? url}`) };
}

export function auditedFields<Fields extends Partial<WebhookFields>>(fields: Fields) {
  const { url, ...others } = fields;
  return { ...(url !== undefined && { url: redactUrl(url) }), ...others };
}

/** Returns a URL for the audit log: without its path and query, which some services use as a password. */
export function redactUrl(url: string): string {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.pathname === "/" && !parsed.search)) return url;
  return `${parsed.origin}/…`;
}

/** A ciphertext copied to another row can't be decrypted there. */
export function encryptionContextOf(id: string): string {
  return contextOf(webhooks.columns.secret, id);
}

/** Decrypts the URL of a row. @throws Error if the key differs or the ciphertext was modified */
export function decryptUrl(encryption: Encryption, { id, url }: Pick<WebhookRow, "id" | "url">): string {
  return encryption.decryptOften(url, contextOf(webhooks.columns.url, id));
}

export function webhookEvent(
  type: EventType,
  { id, organization_id }: Pick<WebhookRow, "id" | "organization_id">,
  data: object,
): DomainEvent {
  return { organizationId: organization_id, type, subject: id, data };
}

/** The columns of a delivery without the wide one, which only its page shows. */
export type ListedDeliveryRow = Omit<DeliveryRow, "type" | "exchange">;

/** A delivery with its event; `waits` is whether it waits for the verification of the webhook. */
export type StoredDelivery = ListedDeliveryRow &
  Pick<EventRow, "data" | "traceparent"> & { type: WebhookEvent; waits?: Flag };

export const DELIVERY_COLUMNS = [
  ...Object.keys(deliveries.columns)
    .filter((name) => name !== "type" && name !== "exchange")
    .map((name) => `d.${name}`),
  ...["e.type", "e.data", "e.traceparent"],
];

export function toDelivery(row: StoredDelivery): Delivery {
  return {
    event: { id: row.event_id, type: row.type, data: JSON.parse(row.data), createdAt: row.created_at },
    status: row.status,
    attempts: JSON.parse(row.log),
    nextAttemptAt: row.waits ? null : row.due_at,
  };
}

type DeliveryKey = Pick<DeliveryRow, "webhook_id" | "event_id">;

/** Endpoints may repeat the path of the URL in a response, and some services use it as a password. */
export function encryptExchange(encryption: Encryption, key: DeliveryKey, exchange: Exchange): string {
  return encryption.encrypt(JSON.stringify(exchange), exchangeContextOf(key));
}

/** Returns null for what an encryption key that was removed had encrypted: it isn't worth encrypting again. */
export function decryptExchange(
  encryption: Encryption,
  key: DeliveryKey & Pick<DeliveryRow, "exchange">,
): Exchange | null {
  const { exchange } = key;
  if (exchange === null) return null;
  const text = tryTo(() => encryption.decrypt(exchange, exchangeContextOf(key)));
  return text === undefined ? null : JSON.parse(text);
}

function exchangeContextOf({ webhook_id, event_id }: DeliveryKey): string {
  return `delivery-exchange:${webhook_id}:${event_id}`;
}
