import type { z } from "zod";
import type { Database } from "../../adapters/database/index.ts";
import { limitsOf } from "../../resources/plans.ts";
import type {
  deliveryDetailsSchema,
  deliveryPageSchema,
  deliverySchema,
  webhookPageSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from "../../resources/webhooks/schema.ts";
import type { LeaseLimits } from "../../resources/webhooks/types.ts";
import type { Api } from "./clients/api.ts";
import { acceptsVerification, isVerification } from "./receiver.ts";

export type WebhookBody = z.output<typeof webhookSchema>;
export type NewWebhookBody = z.output<typeof webhookWithSecretSchema>;
export type WebhookPage = z.output<typeof webhookPageSchema>;
export type DeliveryBody = z.output<typeof deliverySchema>;
export type DeliveryDetailsBody = z.output<typeof deliveryDetailsSchema>;
export type DeliveryPage = z.output<typeof deliveryPageSchema>;

const DEADLINE_MS = 30_000;
const POLL_MS = 20;

/** Creates a webhook; throws if that fails. Waits until it is verified if a receiver of this process accepts that. */
export async function createWebhook(api: Api, url: string, events: string[] = ["link.created"]) {
  const { status, body, text } = await api.send<NewWebhookBody>("POST", "/v1/webhooks", {
    json: { url, events },
  });
  if (status !== 201) throw new Error(`webhook not created: ${status} ${text}`);
  if (!acceptsVerification(url)) return body;
  await waitUntilVerified(api, `/v1/webhooks/${body.id}`);
  return { ...body, verified: true };
}

export async function waitUntilVerified(api: Api, path: string): Promise<void> {
  await until(async () => (await api.get<WebhookBody>(path)).body.verified || undefined);
}

/** Marks webhooks as verified and deletes their deliveries, where nothing delivers test events. */
export async function markVerified({ knex }: Pick<Database, "knex">, ids: string[]): Promise<void> {
  await knex("webhooks")
    .whereIn("id", ids)
    .update({ verification_event_id: null, verification_expires_at: null });
  await knex("deliveries").whereIn("webhook_id", ids).delete();
}

const MANY = { max: 100, perWebhook: 100, perHost: 100, perOrganization: 100 };
/** What a process may lease if nothing is in flight: more than a test has. */
export const LEASE_LIMITS: LeaseLimits = {
  ...MANY,
  failing: MANY,
  inFlight: new Map(),
  slow: new Set(),
  limitsOf,
};

let count = 0;

/** Returns a public URL that no other call returns. An organization has at most one webhook per URL. */
export function uniqueUrl(): string {
  return `https://example.com/${++count}`;
}

/** Returns a URL as the audit log shows it. */
export function redacted(url: string): string {
  return `${new URL(url).origin}/…`;
}

/** Lists the deliveries of a webhook, newest first, without the test event that verified it. */
export async function deliveriesOf(api: Api, webhook: { id: string }): Promise<DeliveryBody[]> {
  const all = await allDeliveriesOf(api, webhook);
  return all.filter(({ request, status }) => !isVerification(request) || status !== "succeeded");
}

export async function allDeliveriesOf(api: Api, { id }: { id: string }): Promise<DeliveryBody[]> {
  return (await api.get<DeliveryPage>(`/v1/webhooks/${id}/deliveries?limit=100`)).body.data;
}

export function waitForDelivery(
  api: Api,
  webhook: { id: string },
  matches: (delivery: DeliveryBody) => boolean,
): Promise<DeliveryBody> {
  return until(async () => {
    const [newest] = await deliveriesOf(api, webhook);
    return newest && matches(newest) ? newest : undefined;
  });
}

export async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error("timed out while polling");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
