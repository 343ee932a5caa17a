import { setTimeout as sleep } from "node:timers/promises";
import type { ListEvents } from "../resources/webhooks/event-list.ts";

type EventPage = Awaited<ReturnType<ListEvents>>;
export type RemoteEvent = EventPage["data"][number];

type Options = {
  server: string;
  client: { id: string; secret: string };
  /** Event types; all if absent. */
  types?: string[] | undefined;
  /** A cursor of the list of events, or `latest`. */
  cursor: string;
  /** Ends the requests, which then reject. */
  signal: AbortSignal;
  /** Called before a failed request is sent again. */
  onRetry(reason: string, waitMs: number): void;
  /** Called after failed requests once one succeeds. */
  onRecovered(): void;
};

/** The server refused a request, and would refuse it again. `code` is that of its response. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

// Events are listed a second after they happened. Takes a twentieth of the requests that Growth includes.
const POLL_MS = 2000;
const REQUEST_MS = 30_000;
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;
// A token is replaced before it expires, despite slow requests.
const EARLY_MS = 60_000;
const SCOPE = "links:read webhooks:read";

/** Follows the events of an organization on a server, page by page, until `signal` is aborted. @throws Refused */
export async function* followEvents(options: Options): AsyncGenerator<EventPage, void, void> {
  const { server, signal, types = [] } = options;
  const request = createRequest(options);
  for (let { cursor } = options; ; ) {
    const url = new URL("/v1/events", server);
    for (const [name, value] of [["cursor", cursor], ...types.map((type) => ["type", type])])
      url.searchParams.append(name as string, value as string);
    const page = (await request(url)) as EventPage;
    yield page;
    cursor = page.resume_cursor;
    if (page.next_cursor === null) await sleep(POLL_MS, undefined, { signal });
  }
}

/** Creates the function that sends GET requests with a token, which it renews. */
function createRequest(options: Options) {
  let token: { value: string; expiresAt: number } | undefined;

  async function renewToken() {
    const { id, secret } = options.client;
    const credentials = { client_id: id, client_secret: secret, scope: SCOPE };
    const body = new URLSearchParams({ grant_type: "client_credentials", ...credentials });
    const response = await insist(options, new URL("/oauth/token", options.server), { method: "POST", body });
    const { access_token, expires_in } = (await readBody(response)) as TokenResponse;
    token = { value: access_token, expiresAt: Date.now() + expires_in * 1000 - EARLY_MS };
    return token;
  }

  return async function request(url: URL): Promise<unknown> {
    const current = token && token.expiresAt > Date.now() ? token : undefined;
    const send = async ({ value }: { value: string }) =>
      insist(options, url, { headers: { authorization: `Bearer ${value}` } });
    const response = await send(current ?? (await renewToken()));
    // The token was revoked. A new one tells whether the client was, too.
    return readBody(response.status === 401 && current ? await send(await renewToken()) : response);
  };
}

/** Sends a request until the server responds with anything but 429 and 5xx. Waits as long as the server asks. */
async function insist(
  { signal, onRetry, onRecovered }: Options,
  url: URL,
  init: RequestInit,
): Promise<Response> {
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]);
    const response = await fetch(url, { ...init, redirect: "manual", signal: limit }).catch(
      (error: Error) => error,
    );
    signal.throwIfAborted();
    if (response instanceof Response && response.status !== 429 && response.status < 500) {
      if (retryMs > FIRST_RETRY_MS) onRecovered();
      return response;
    }
    const [reason, askedS] =
      response instanceof Response
        ? [`${url.origin} responded with ${response.status}`, Number(response.headers.get("retry-after"))]
        : [`${url.origin} did not respond (${causeOf(response)})`, 0];
    const waitMs = askedS > 0 ? askedS * 1000 : retryMs;
    onRetry(reason, waitMs);
    await sleep(waitMs, undefined, { signal });
  }
}

function causeOf({ name, cause }: Error): string {
  return (cause as NodeJS.ErrnoException | undefined)?.code ?? name;
}

type TokenResponse = { access_token: string; expires_in: number };
type ErrorResponse = { error?: string; error_description?: string; code?: string; detail?: string };

async function readBody(response: Response): Promise<unknown> {
  const body = (await response.json().catch(() => ({}))) as ErrorResponse;
  if (response.ok) return body;
  // RFC 6749 §5.2 at the token endpoint, RFC 9457 at the API.
  const code = body.error ?? body.code ?? "unexpected_response";
  const message = body.error_description ?? body.detail;
  throw new Refused(code, message ?? `${response.url} responded with ${response.status}.`);
}
