import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { Webhook } from "standardwebhooks";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/webhooks/event-schemas.ts";

/** A received request. */
export type Received = { method: string; headers: Record<string, string>; text: string; body: MessageBody };

/** The body of every delivery. */
export type MessageBody = { type: string; timestamp: string; data: Record<string, unknown> };

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

/** A webhook receiver on loopback; every path is an endpoint. */
export type Receiver = {
  url(path: string): string;
  /** Sets how a path responds from now on; the default is 204. */
  respond(path: string, handler: Handler): void;
  /** Returns the requests received on a path so far. */
  received(path: string): Received[];
  /** Waits until a path has received a number of requests. */
  waitFor(path: string, count: number): Promise<Received[]>;
  close(): Promise<void>;
};

const DEADLINE_MS = 30_000;

/** Starts a receiver, which the caller must close. */
export async function startReceiver(): Promise<Receiver> {
  const log = new Map<string, Received[]>();
  const handlers = new Map<string, Handler>();
  const listeners = new Set<() => void>();
  const received = (path: string) => log.get(path) ?? [];

  const server = createServer(async (request, response) => {
    const path = request.url ?? "";
    const text = Buffer.concat(await request.toArray()).toString();
    const { method = "", headers } = request;
    log.set(path, [
      ...received(path),
      { method, headers: headers as Record<string, string>, text, body: JSON.parse(text) },
    ]);
    const handle = handlers.get(path) ?? ((response) => response.writeHead(204).end());
    handle(response, request);
    for (const listener of listeners) listener();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    respond: (path, handler) => void handlers.set(path, handler),
    received,
    waitFor: (path, count) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (received(path).length < count) return;
          clearTimeout(timer);
          listeners.delete(check);
          resolve(received(path));
        };
        const timer = setTimeout(() => {
          listeners.delete(check);
          reject(new Error(`${received(path).length} of ${count} requests received on ${path}`));
        }, DEADLINE_MS);
        listeners.add(check);
        check();
      }),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
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
