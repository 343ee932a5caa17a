import type { IncomingMessage, ServerResponse } from "node:http";
import type Koa from "koa";
import type { Context } from "koa";

export type FastContext = Context & { response: { send(): void } };

type FastContextClass = new (req: IncomingMessage, res: ServerResponse, route: string) => FastContext;
type HeaderValue = string | string[];

const JSON_TYPE = "application/json; charset=utf-8";

/** Collects the headers of a response: Koa passes each to Node as it is set, which checks and copies it. */
export function fastContextOf(app: Koa): FastContextClass {
  class Response extends withPrototype(app.response) {
    res: ServerResponse;
    #status: number | undefined;
    #body: unknown;
    // Names and values in turn.
    readonly #headers: HeaderValue[] = [];

    constructor(res: ServerResponse) {
      super();
      this.res = res;
    }

    get status(): number {
      return this.#status ?? 404;
    }

    set status(status: number) {
      this.#status = status;
    }

    get body(): unknown {
      return this.#body;
    }

    set body(body: unknown) {
      this.#body = body;
      this.#status ??= 200;
      if (typeof body !== "string" && !this.has("Content-Type")) this.set("Content-Type", JSON_TYPE);
    }

    get(name: string): HeaderValue | undefined {
      return this.#headers[this.#indexOf(name) + 1];
    }

    has(name: string): boolean {
      return this.#indexOf(name) >= 0;
    }

    set(field: string | Record<string, HeaderValue>, value?: HeaderValue): void {
      if (typeof field !== "string") {
        for (const name of Object.keys(field)) this.set(name, field[name]);
        return;
      }
      const sent = Array.isArray(value) ? value : String(value);
      const index = this.#indexOf(field);
      if (index < 0) this.#headers.push(field, sent);
      else this.#headers.splice(index, 2, field, sent);
    }

    remove(name: string): void {
      const index = this.#indexOf(name);
      if (index >= 0) this.#headers.splice(index, 2);
    }

    vary(field: string): void {
      const fields = this.get("Vary");
      this.set("Vary", fields ? `${fields}, ${field}` : field);
    }

    send(): void {
      const text = typeof this.#body === "string" ? this.#body : JSON.stringify(this.#body);
      this.set("Content-Length", String(Buffer.byteLength(text)));
      this.res.writeHead(this.status, this.#headers).end(text);
    }

    #indexOf(name: string): number {
      const { length } = this.#headers;
      for (let index = 0; index < length; index += 2) {
        if (isSameName(this.#headers[index] as string, name)) return index;
      }
      return -2;
    }
  }

  class Request extends withPrototype(app.request) {
    app = app;
    req: IncomingMessage;
    originalUrl: string;
    ctx: object;

    constructor(req: IncomingMessage, ctx: object) {
      super();
      this.req = req;
      this.originalUrl = req.url as string;
      this.ctx = ctx;
    }
  }

  return class extends withPrototype(app.context) {
    app = app;
    req: IncomingMessage;
    res: ServerResponse;
    path: string;
    state = {};
    request: Request;
    response: Response;
    _matchedRoute: string;

    constructor(req: IncomingMessage, res: ServerResponse, route: string) {
      super();
      this.req = req;
      this.res = res;
      this.path = req.url as string;
      this.request = new Request(req, this);
      this.response = new Response(res);
      this._matchedRoute = route;
    }
  } as unknown as FastContextClass;
}

/** Most names differ in length or in the first letter. */
function isSameName(one: string, other: string): boolean {
  if (one === other) return true;
  const mayBe = one.length === other.length && one.charCodeAt(0) % 32 === other.charCodeAt(0) % 32;
  return mayBe && one.toLowerCase() === other.toLowerCase();
}

function withPrototype(prototype: object): new () => object {
  function Base() {}
  Base.prototype = prototype;
  return Base as unknown as new () => object;
}
