import { STATUS_CODES } from "node:http";
import type { ExecutionContext } from "ava";
import type { z } from "zod";
import type { ProblemBody } from "../../../resources/http/problem.ts";
import type { linkPageSchema, linkSchema } from "../../../resources/links/schema.ts";
import type { Plan } from "../../../resources/plans.ts";
import type { TestService } from "../service.ts";
import { contractOf, MANAGEMENT } from "./contract.ts";

export type LinkBody = z.output<typeof linkSchema>;
export type PageBody = z.output<typeof linkPageSchema>;

/** A response that was read to its end. `body` is the parsed JSON; undefined for other content. */
export type Reply<Body> = { status: number; headers: Headers; text: string; body: Body };

/** The content of a request: `json` is serialized, `body` is sent unchanged. */
export type SendOptions = { json?: unknown; body?: RequestInit["body"]; headers?: Record<string, string> };

/** The clicks of other programs are a bot's. */
export const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/** Sends requests as one caller. `Body` is the type of the expected response body. */
export type Api = {
  send<Body = ProblemBody>(method: string, path: string, options?: SendOptions): Promise<Reply<Body>>;
  get<Body = LinkBody>(path: string, headers?: Record<string, string>): Promise<Reply<Body>>;
  /** Creates a link. @throws Error for any other response */
  createLink(fields?: Record<string, unknown>): Promise<LinkBody>;
};

/**
 * Returns a client of the API at a URL, with a token or without authentication. It checks every response against the
 * OpenAPI document of the service.
 */
export function apiAt(url: string, token?: string): Api {
  async function send<Body>(method: string, path: string, { json, body, headers = {} }: SendOptions = {}) {
    const address = new URL(url + path);
    const reply = await read<Body>(
      await fetch(address, {
        method,
        headers: {
          "user-agent": BROWSER,
          ...(token && { authorization: `Bearer ${token}` }),
          ...(json !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        body: json === undefined ? (body ?? null) : JSON.stringify(json),
        redirect: "manual",
      }),
    );
    // Forms have the addresses of the management API, and no description.
    const isForm = headers["content-type"] === "application/x-www-form-urlencoded";
    // Segments such as ".." are resolved before a request is sent.
    const sent = address.pathname + address.search;
    if (sent.startsWith("/v1/")) (await contractOf(url)).check(method, sent, reply);
    else if (!isForm && !reply.headers.get("content-type")?.startsWith("text/")) {
      const management = await contractOf(url, MANAGEMENT);
      if (management.describes(method, sent)) management.check(method, sent, reply);
    }
    return reply;
  }
  return {
    send,
    get: (path, headers = {}) => send("GET", path, { headers }),
    async createLink(fields = {}) {
      const { status, body, text } = await send<LinkBody>("POST", "/v1/links", {
        json: { url: "https://example.com/", ...fields },
      });
      if (status !== 201) throw new Error(`no link was created: ${status} ${text}`);
      return body;
    },
  };
}

export async function newApi(
  service: Pick<TestService, "url" | "createOrganization" | "token">,
  plan?: Plan,
) {
  return apiAt(service.url, await service.token(await service.createOrganization(undefined, plan)));
}

export async function read<Body = ProblemBody>(response: Response): Promise<Reply<Body>> {
  const text = await response.text();
  const isJson = /^application\/([\w-]+\+)?json\b/.test(response.headers.get("content-type") ?? "");
  const body = (isJson && text ? JSON.parse(text) : undefined) as Body;
  return { status: response.status, headers: response.headers, text, body };
}

/** Asserts that a response is a complete RFC 9457 problem with this status and code, and no other fields. */
export function isProblem(
  t: ExecutionContext,
  { status, headers, text, body }: Reply<unknown>,
  expected: { status: number; code: string; fields?: string[] },
): void {
  t.is(status, expected.status, text.slice(0, 300));
  t.is(headers.get("content-type"), "application/problem+json");
  // Only MCP adds `next`. The OpenAPI document has no such field, so the contract rejects it in REST responses.
  const { type, detail, errors, next, ...rest } = body as ProblemBody & { next?: string };
  t.deepEqual(rest, {
    status: expected.status,
    code: expected.code,
    title: STATUS_CODES[expected.status],
    request_id: headers.get("x-request-id"),
  });
  t.true(URL.canParse(type) && type.endsWith(`/docs/errors/${expected.code}`), type);
  for (const words of [detail, next ?? "none"]) t.true(words.length > 0);
  t.deepEqual(errors?.map(({ field }) => field).sort(), expected.fields?.toSorted());
  for (const { message } of errors ?? []) t.true(message.length > 0);
}

export function isMissing(t: ExecutionContext, reply: Reply<unknown>): void {
  isProblem(t, reply, { status: 404, code: "not_found" });
}

export function isInvalid(t: ExecutionContext, reply: Reply<unknown>, field: string): void {
  isProblem(t, reply, { status: 422, code: `invalid_${field}`, fields: [field] });
}
