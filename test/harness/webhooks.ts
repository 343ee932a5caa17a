import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { Webhook } from "standardwebhooks";
import type { z } from "zod";
import type { Database } from "../../adapters/database/index.ts";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/events/delivered-events.ts";
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
import { startApp } from "./clients/app-server.ts";

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
export const uniqueUrl = (): string => `https://example.com/${++count}`;

/** Returns a URL as the audit log shows it. */
export const redacted = (url: string): string => `${new URL(url).origin}/…`;

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

export type Received = { method: string; headers: Record<string, string>; text: string; body: MessageBody };

export type MessageBody = { type: string; timestamp: string; data: Record<string, unknown> };

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

/**
 * A webhook receiver on loopback; every path is an endpoint. It accepts the test event that verifies an endpoint, and leaves
 * it out of the requests received.
 */
export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

// Returns whether a receiver of this process accepts the test event that verifies a URL, by origin.
const accepting = new Map<string, (path: string) => boolean>();

/** Returns whether a receiver of this process accepts the test event that verifies a URL. */
export function acceptsVerification(url: string): boolean {
  const { origin, pathname, search } = new URL(url);
  return accepting.get(origin)?.(pathname + search) ?? false;
}

/** Starts a receiver. */
export async function startReceiver() {
  const log = new Map<string, Received[]>();
  const handlers = new Map<string, Handler>();
  const exposed = new Set<string>();
  const arrivals = new EventEmitter().setMaxListeners(0);
  const received = (path: string) => log.get(path) ?? [];

  const { url: origin, close } = await startApp(async (request, response) => {
    const path = request.url ?? "";
    const text = Buffer.concat(await request.toArray()).toString();
    const { method = "", headers } = request;
    const body: MessageBody = JSON.parse(text);
    if (isVerification(body) && !exposed.has(path)) return void response.writeHead(200).end();
    log.set(path, [...received(path), { method, headers: headers as Record<string, string>, text, body }]);
    const handle = handlers.get(path) ?? ((response) => response.writeHead(204).end());
    handle(response, request);
    arrivals.emit("request");
  });
  accepting.set(origin, (path) => !exposed.has(path));

  return {
    url: (path: string) => origin + path,
    /** Sets how a path responds from now on; the default is 204. */
    respond: (path: string, handler: Handler) => void handlers.set(path, handler),
    /** Treats the test events that verify these paths like other requests. */
    exposeVerification(...paths: string[]) {
      for (const path of paths) exposed.add(path);
    },
    received,
    async waitFor(path: string, count: number): Promise<Received[]> {
      const signal = AbortSignal.timeout(DEADLINE_MS);
      while (received(path).length < count)
        await once(arrivals, "request", { signal }).catch(() => {
          throw new Error(`${received(path).length} of ${count} requests received on ${path}`);
        });
      return received(path);
    },
    async close() {
      accepting.delete(origin);
      await close();
    },
  };
}

/** Returns whether a body is the test event that verifies an endpoint. */
export function isVerification({ data }: Pick<MessageBody, "data">): boolean {
  return data?.verification === true;
}

/**
 * Verifies the signature of a request with the standard library, and its body against the documented schema.
 * @throws WebhookVerificationError for an invalid signature, Error for a body that doesn't match
 */
export function verify({ text, headers }: Received, secret: string): MessageBody {
  const message = new Webhook(secret).verify(text, headers) as MessageBody;
  const schema = WEBHOOK_EVENT_SCHEMAS.find(({ event }) => event === message.type)?.body;
  if (!isDeepStrictEqual(schema?.parse(message), message))
    throw new Error(`the body does not match its schema: ${text}`);
  return message;
}
