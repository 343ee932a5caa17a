import type { Plan } from "../../resources/plans.ts";
import type { SendDefaults } from "../../resources/webhooks/send.ts";
import { type Api, apiAt, newApi } from "./clients/api.ts";
import { startServiceWithDatabase } from "./database/service.ts";
import { createWebhook, startReceiver } from "./webhooks.ts";

/** Starts a service that may deliver to a receiver of this process. */
export async function startWebhookService(
  settings: Record<string, string> = {},
  sendDefaults: SendDefaults = {},
) {
  const receiver = await startReceiver();
  const { service, knex } = await startServiceWithDatabase(
    { WEBHOOK_ALLOW_HOSTS: "127.0.0.1", ...settings },
    sendDefaults,
  );

  function respondWith(path: string, status: number, headers: Record<string, string> = {}): void {
    receiver.respond(path, (response) => response.writeHead(status, headers).end());
  }

  /** Delays the responses of a path until the returned function is called. */
  function hold(path: string, status = 204): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    receiver.respond(path, (response) => void promise.then(() => response.writeHead(status).end()));
    return resolve;
  }

  let webhooks = 0;

  async function subscribe(events = ["link.created"]) {
    const path = `/webhook-${++webhooks}`;
    const organization = await service.createOrganization();
    const api = apiAt(service.url, await service.token(organization));
    const webhook = await createWebhook(api, receiver.url(path), events);
    return { organization, api, webhook, path, address: `/v1/webhooks/${webhook.id}` };
  }

  /** Waits until an event of another organization is delivered, so everything that was due before is. */
  async function passQueue(): Promise<void> {
    const { api, path } = await subscribe();
    await api.createLink();
    await receiver.waitFor(path, 1);
  }

  async function createRefused(api: Api, url: string) {
    const { pathname, search } = new URL(url);
    receiver.exposeVerification(pathname + search);
    respondWith(pathname + search, 500);
    return createWebhook(api, url);
  }

  return {
    service,
    knex,
    receiver,
    passQueue,
    createRefused,
    respondWith,
    hold,
    subscribe,
    newApi: (plan?: Plan) => newApi(service, plan),
  };
}
