import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Storage } from "../../adapters/index.ts";
import { WEBHOOK_EVENTS } from "../../resources/events/delivered-events.ts";
import { newWebhookSecret, signatureHeaders } from "../../resources/webhooks/signature.ts";
import type { SeededOrganization } from "./seed.ts";

export type ReceivedEvent = { type: string; timestamp: string; data: Record<string, unknown> };

/** Receives the events of an organization as an app would: by a webhook, on loopback. Returns what ends it. */
export async function receiveEvents(
  { webhooks }: Storage,
  { id: organizationId, owner }: SeededOrganization,
  onEvent: (event: ReceivedEvent) => void,
): Promise<() => void> {
  const secret = newWebhookSecret();
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray().catch(() => undefined);
    // The client disconnected before the end of the request.
    if (!chunks) return void response.destroy();
    const body = Buffer.concat(chunks).toString();
    const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signatures } = request.headers;
    const signed = signatureHeaders(String(id), Number(at) * 1000, body, [secret])["webhook-signature"];
    // Standard Webhooks 1.0.0: while a new secret is introduced, there are several.
    if (!String(signatures).split(" ").includes(String(signed))) return void response.writeHead(401).end();
    response.writeHead(204).end();
    const event = { id, ...JSON.parse(body) };
    if (event.data.verification !== true) onEvent(event);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await webhooks.create(organizationId, owner, { url, events: [...WEBHOOK_EVENTS], enabled: true }, secret);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
