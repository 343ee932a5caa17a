import type { WebhookEvent } from "../../resources/events/types.ts";
import type { Webhook, WebhookFields } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import type { WebhookRow } from "../database/tables.ts";
import { hostOf, redactUrl, urlHashOf } from "./url.ts";

/** Converts between webhooks and their rows, whose URLs and secrets are encrypted. */
export type WebhookRows = {
  /** Returns the columns of the given fields. */
  toColumns(owner: Pick<WebhookRow, "id" | "organization_id">, fields: Partial<WebhookFields>): Columns;
  /** Returns a webhook without its secrets. */
  toWebhook(row: WebhookRow): Webhook;
  /** Returns the settings that the audit log keeps of a deleted webhook: without a URL that can't be decrypted. */
  toDeleted(row: WebhookRow): Pick<Webhook, "events"> & { url?: string };
};

type Columns = Partial<Pick<WebhookRow, "url" | "host" | "url_hash" | "events" | "enabled">>;

/** Creates the conversion with an encryption. */
export function createWebhookRows(encryption: Encryption): WebhookRows {
  const eventsOf = ({ events }: WebhookRow) => events.split(" ") as WebhookEvent[];
  return {
    toColumns({ id, organization_id }, { url, events, enabled }) {
      return {
        ...(url !== undefined && {
          url: encryption.encrypt(url, urlContextOf(id)),
          host: hostOf(url),
          url_hash: urlHashOf(organization_id, url),
        }),
        // Event types are stored as a space-separated list.
        ...(events && { events: events.join(" ") }),
        ...(enabled !== undefined && { enabled }),
      };
    },

    toWebhook: (row) => ({
      id: row.id,
      organizationId: row.organization_id,
      url: decryptUrl(encryption, row),
      events: eventsOf(row),
      enabled: Boolean(row.enabled),
      verified: row.verification_expires_at === null,
      disabledReason: row.disabled_reason,
      failingSince: row.failing_since,
      createdBy: row.created_by,
      createdVia: row.created_via,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }),

    toDeleted(row) {
      const events = eventsOf(row);
      try {
        return { url: decryptUrl(encryption, row), events };
      } catch {
        return { events };
      }
    },
  };
}

/** Returns the settings of a webhook for the audit log. */
export function auditedFields<Fields extends Partial<WebhookFields>>(fields: Fields) {
  const { url, ...others } = fields;
  return { ...(url !== undefined && { url: redactUrl(url) }), ...others };
}

/** Returns the encryption context of a webhook's secrets. A ciphertext copied to another row can't be decrypted there. */
export function encryptionContextOf(id: string): string {
  return `webhook:${id}`;
}

/** Returns the encryption context of a webhook's URL. */
export function urlContextOf(id: string): string {
  return `webhook-url:${id}`;
}

/** Returns whether a stored URL is still readable, because an earlier version wrote it. */
export function isReadableUrl(url: string): boolean {
  return /^https?:/i.test(url);
}

/** Decrypts the URL of a row. @throws Error if the key differs or the ciphertext was modified */
export function decryptUrl(encryption: Encryption, { id, url }: Pick<WebhookRow, "id" | "url">): string {
  return isReadableUrl(url) ? url : encryption.decryptOften(url, urlContextOf(id));
}
