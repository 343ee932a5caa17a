import createFetchClient from "openapi-fetch";
import { type Credentials, createTokenSource } from "./access-token.ts";
import { OPERATIONS, type Operations } from "./api.ts";
import { type CallOptions, type Page, toPages } from "./calls.ts";
import { LinkgateError } from "./errors.ts";
import { fetchWithRetries } from "./retries.ts";

export type { Credentials } from "./access-token.ts";
export type * from "./api.ts";
export type { CallOptions, Pages } from "./calls.ts";
export { type ErrorCode, type FieldError, LinkgateError } from "./errors.ts";
export { verifyWebhook, WebhookVerificationError } from "./webhooks.ts";

export type ClientOptions = Credentials & {
  /** The URL of the server, such as `https://links.example`. */
  baseUrl: string;
  /** How often a request is retried after a temporary failure. The default is 3. */
  maxRetries?: number;
  /** Sends the requests; the default is the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
};

export interface Linkgate extends Operations {}

type Operation = (typeof OPERATIONS)[keyof Operations];
type Input = Record<string, unknown>;

/**
 * Creates a client with a method for each operation of the API. Each resolves to the body of the response, and rejects with
 * a `LinkgateError` if that is an error, with the error of `fetch` if there is no response, or with the reason of `signal`.
 *
 * @throws TypeError for an invalid `baseUrl`
 */
export function createClient(options: ClientOptions): Linkgate {
  const baseUrl = new URL(options.baseUrl).origin;
  const { maxRetries = 3, fetch = (request: Request) => globalThis.fetch(request) } = options;
  const tokens = createTokenSource(options, { baseUrl, maxRetries, fetch });

  async function send(request: Request): Promise<Response> {
    const sendWith = (token: string) =>
      fetchWithRetries(request.signal, maxRetries, () => {
        const attempt = request.clone();
        attempt.headers.set("Authorization", `Bearer ${token}`);
        return fetch(attempt);
      });
    const token = await tokens.get(request.signal);
    const response = await sendWith(token);
    if (response.status !== 401) return response;
    const other = await tokens.replace(token, request.signal);
    return other === token ? response : sendWith(other);
  }

  const client = createFetchClient<object>({ baseUrl, fetch: send });
  const request = client.request as (method: string, path: string, init: object) => Promise<Outcome>;

  async function call({ method, path, hasBody, hasKey }: Operation, input: Input, options: CallOptions) {
    const { idempotencyKey = crypto.randomUUID(), ifMatch, signal, onResponse } = options;
    const { ids, rest } = split(path, input);
    const { data, error, response } = await request(method, path, {
      params: { path: ids, ...(!hasBody && { query: rest }) },
      ...(hasBody && { body: rest }),
      headers: {
        ...(hasKey && { "Idempotency-Key": idempotencyKey }),
        ...(ifMatch !== undefined && { "If-Match": ifMatch }),
      },
      signal: signal ?? null,
    });
    onResponse?.(response);
    if (!response.ok) throw new LinkgateError(response, error);
    return data;
  }

  function list(operation: Operation, input: Input, options: CallOptions) {
    return toPages((cursor) => call(operation, { ...input, ...cursor }, options) as Promise<Page>);
  }

  const methods = Object.entries(OPERATIONS).map(([id, operation]) => {
    const run = operation.isList ? list : call;
    return [id, (input: Input = {}, options: CallOptions = {}) => run(operation, input, options)];
  });
  return Object.fromEntries(methods);
}

type Outcome = { data?: unknown; error?: unknown; response: Response };

/** Takes the parameters of a path from the input. @throws TypeError for one that is missing, or is another path */
function split(path: string, input: Input): { ids: Input; rest: Input } {
  const rest = { ...input };
  const ids: Input = {};
  for (const [, name = ""] of path.matchAll(/\{(\w+)\}/g)) {
    // URLs resolve dot segments even if they are percent-encoded.
    if (/^\.{0,2}$/.test(String(rest[name] ?? ""))) throw new TypeError(`${name} must be an ID`);
    ids[name] = rest[name];
    delete rest[name];
  }
  return { ids, rest };
}
