import { once } from "node:events";
import { type Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

/** A request of the load; `expected` is the status of its successful response. */
export type LoadRequest = {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  expected: number;
};

/** A server; `certificate`, in PEM, is trusted. */
export type Target = { url: string; certificate?: string };

/** Requests that are sent at a fixed rate, whether or not earlier ones were answered. */
export type SteadyLoad = {
  /** Resolves when so many requests have been sent. */
  sent(count: number): Promise<void>;
  /** Stops, and resolves when all are answered. Returns how many were sent, and how each failed one ended. */
  stop(): Promise<{ sent: number; failures: string[] }>;
};

type LoadOptions = {
  perSecond: number;
  next: (index: number) => LoadRequest;
  /** The connections to use in turn: an agent, or `false` for a new connection. */
  agents: (Agent | false)[];
};

const TICK_MS = 5;

/** Sends a request and returns the text of its response. @throws Error with an unexpected status */
export async function sendRequest(
  { url, certificate }: Target,
  { method, path, headers = {}, body, expected }: LoadRequest,
  agent: Agent | false = false,
): Promise<string> {
  const { hostname, port, protocol, host } = new URL(url);
  const outgoing = (protocol === "https:" ? requestHttps : requestHttp)({
    ...{ method, path, hostname, port, agent },
    ...(certificate && { ca: certificate }),
    headers: { host, ...(body && { "content-length": String(Buffer.byteLength(body)) }), ...headers },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  // A body that is refused may be cut off after the response.
  outgoing.on("error", () => {});
  const text = (await response.toArray()).join("");
  if (response.statusCode !== expected) throw new Error(`${response.statusCode} ${text.slice(0, 200)}`);
  return text;
}

/** Starts to send requests to a server. */
export function startSteadyLoad(target: Target, { perSecond, next, agents }: LoadOptions): SteadyLoad {
  const open = new Set<Promise<void>>();
  const failures: string[] = [];
  const waiting = new Set<{ count: number; resolve: () => void }>();
  const started = performance.now();
  let sent = 0;

  async function exchange(request: LoadRequest, agent: Agent | false) {
    try {
      await sendRequest(target, request, agent);
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      failures.push(`${request.method} ${request.path}: ${code} ${message}`);
    }
  }

  function sendWhatIsDue() {
    const due = ((performance.now() - started) / 1000) * perSecond;
    for (; sent < due; sent++) {
      const agent = agents[sent % agents.length] as Agent | false;
      const one: Promise<void> = exchange(next(sent), agent).finally(() => open.delete(one));
      open.add(one);
    }
    for (const { count, resolve } of waiting) if (sent >= count) resolve();
  }

  const timer = setInterval(sendWhatIsDue, TICK_MS);
  return {
    async sent(count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const wait = { count, resolve };
      waiting.add(wait);
      await promise.finally(() => waiting.delete(wait));
    },

    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      return { sent, failures };
    },
  };
}
