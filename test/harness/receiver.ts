import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { Webhook } from "standardwebhooks";
import { TOLD } from "../../resources/webhooks/payloads.ts";

/** One request, read to its end. */
export type Received = { method: string; headers: Record<string, string>; text: string; body: MessageBody };

/** What every delivery says. */
export type MessageBody = { type: string; timestamp: string; data: Record<string, unknown> };

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

/** A receiver of webhooks on loopback, with as many addresses as paths are thought of. */
export type Receiver = {
  url(path: string): string;
  /** Decides what a path answers from now on; 204 if nothing is decided. */
  answer(path: string, handler: Handler): void;
  /** What came to a path so far. */
  received(path: string): Received[];
  /** Resolves as soon as so much came to a path. */
  waitFor(path: string, count: number): Promise<Received[]>;
  close(): Promise<void>;
};

const DEADLINE_MS = 30_000;

/** Starts a receiver. The caller closes it. */
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
    const handle = handlers.get(path) ?? ((answer) => answer.writeHead(204).end());
    handle(response, request);
    for (const listener of listeners) listener();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    answer: (path, handler) => void handlers.set(path, handler),
    received,
    waitFor: (path, count) =>
      new Promise((resolve, reject) => {
        const give = () => {
          if (received(path).length < count) return;
          clearTimeout(timer);
          listeners.delete(give);
          resolve(received(path));
        };
        const timer = setTimeout(() => {
          listeners.delete(give);
          reject(new Error(`${received(path).length} of ${count} came to ${path}`));
        }, DEADLINE_MS);
        listeners.add(give);
        give();
      }),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/**
 * Verifies a request as the receivers of customers do, and holds it against what the document says of its event.
 * @throws WebhookVerificationError, and Error for what is not in the document
 */
export function verify({ text, headers }: Received, secret: string): MessageBody {
  const message = new Webhook(secret).verify(text, headers) as MessageBody;
  const schema = TOLD.find(({ event }) => event === message.type)?.body;
  if (!isDeepStrictEqual(schema?.parse(message), message)) throw new Error(`not as it is described: ${text}`);
  return message;
}
