import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { Webhook } from "standardwebhooks";
import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/events/delivered-events.ts";
import { startApp } from "./clients/app-server.ts";

export type Received = { method: string; headers: Record<string, string>; text: string; body: MessageBody };

export type MessageBody = { type: string; timestamp: string; data: Record<string, unknown> };

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

/**
 * A webhook receiver on loopback; every path is an endpoint. It accepts the test event that verifies an endpoint, and leaves
 * it out of the requests received.
 */
export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

const DEADLINE_MS = 30_000;
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
