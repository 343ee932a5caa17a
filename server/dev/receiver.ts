import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { newWebhookSecret, signatureHeaders } from "../../resources/webhooks/signature.ts";

export type ReceivedEvent = { id: string; type: string; timestamp: string; data: Record<string, unknown> };

export type Receiver = { url: string; secret: string; close(): void };

/** Receives webhooks on loopback, as an app would. Those that verify the endpoint are accepted, but not passed on. */
export async function startReceiver(onEvent: (event: ReceivedEvent) => void): Promise<Receiver> {
  const secret = newWebhookSecret();
  async function receive(request: IncomingMessage, response: ServerResponse) {
    const body = Buffer.concat(await request.toArray()).toString();
    if (!isSigned(request, body, secret)) return void response.writeHead(401).end();
    response.writeHead(204).end();
    const event = { id: headerOf(request, "webhook-id"), ...JSON.parse(body) } as ReceivedEvent;
    if (event.data.verification !== true) onEvent(event);
  }
  const server = createServer((request, response) => {
    // The client disconnected before the end of the request.
    receive(request, response).catch(() => response.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    secret,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Standard Webhooks 1.0.0. While a new secret is introduced, there are several signatures. */
function isSigned(request: IncomingMessage, body: string, secret: string): boolean {
  const at = Number(headerOf(request, "webhook-timestamp")) * 1000;
  const signed = signatureHeaders(headerOf(request, "webhook-id"), at, body, [secret]);
  const given = headerOf(request, "webhook-signature").split(" ");
  return given.includes(signed["webhook-signature"] ?? "");
}

function headerOf(request: IncomingMessage, name: string): string {
  return String(request.headers[name] ?? "");
}
