import type { IncomingMessage } from "node:http";
import type { DefaultState } from "koa";
import type { ApiContext } from "./api-context.ts";

/** The response of an operation: JSON, and the names and values of its headers in turn, in the order in which they are sent. */
export type PlainResponse = { status: number; headers: string[]; body: string };

const JSON_TYPE = "application/json; charset=utf-8";
const NO_QUERY = Object.freeze({});

/**
 * The context of a request without a query, and of its JSON response. Koa's own takes longer to create, and checks and
 * copies each header as it is set.
 */
export class PlainContext implements ApiContext {
  readonly req: IncomingMessage;
  readonly path: string;
  readonly ip: string;
  readonly query = NO_QUERY;
  readonly request: PlainRequest;
  state: DefaultState;
  status = 404;
  readonly #headers: Record<string, string> = {};
  #body: unknown;

  constructor(req: IncomingMessage, { requestId, ip }: { requestId: string; ip: string }) {
    this.req = req;
    this.path = req.url as string;
    this.ip = ip;
    this.request = new PlainRequest(req);
    this.state = { requestId } as DefaultState;
  }

  get method(): string {
    return this.req.method as string;
  }

  get response(): ApiContext["response"] {
    return { get: (name) => this.#headers[name] ?? "" };
  }

  get(name: string): string {
    return this.request.get(name);
  }

  set(field: string | Record<string, string | string[]>, value?: string | string[]): void {
    if (typeof field === "string") this.#headers[field] = String(value);
    else for (const name of Object.keys(field)) this.#headers[name] = String(field[name]);
  }

  get body(): unknown {
    return this.#body;
  }

  set body(body: unknown) {
    this.#body = body;
    this.#headers["Content-Type"] ??= JSON_TYPE;
  }

  get type(): string {
    return this.#headers["Content-Type"] ?? "";
  }

  set type(type: string) {
    this.#headers["Content-Type"] = type;
  }

  /** Returns the response that the operation has set. */
  toResponse(): PlainResponse {
    const body = JSON.stringify(this.#body);
    const headers: string[] = [];
    for (const name of Object.keys(this.#headers)) headers.push(name, this.#headers[name] as string);
    headers.push("Content-Length", String(Buffer.byteLength(body)));
    return { status: this.status, headers, body };
  }
}

class PlainRequest {
  body: ApiContext["request"]["body"];
  rawBody: ApiContext["request"]["rawBody"];
  readonly #req: IncomingMessage;

  constructor(req: IncomingMessage) {
    this.#req = req;
  }

  get(name: string): string {
    return String(this.#req.headers[name.toLowerCase()] ?? "");
  }
}
