import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, needs } from "./expect.ts";
import { describeRequest, describeResponse } from "./redaction.ts";
import type { Credentials, Target } from "./target.ts";

/** A request and its response as text, without credentials. */
export type Exchange = { request: string; response: string };

export type Reply = {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed JSON object, empty for other content. */
  body: Record<string, unknown>;
};

export type Fields = Record<string, string | string[] | undefined>;

export type Options = {
  method?: string;
  headers?: Record<string, string>;
  /** Parameters of a form. */
  form?: Fields;
  body?: string;
};

export type Tokens = { access_token: string; refresh_token?: string; token_type: string; scope?: string };

export type Callback = URLSearchParams;

const MAX_ATTEMPTS = 5;
const MAX_WAIT_S = 30;

/** The requests of one check. */
export class Conversation {
  readonly target: Target;
  readonly exchanges: Exchange[] = [];

  constructor(target: Target) {
    this.target = target;
  }

  /** Sends a request without following redirects; repeats it if the server asks to wait. */
  async send(url: string, options: Options = {}): Promise<Reply> {
    const { form, method = form ? "POST" : "GET" } = options;
    const headers = {
      ...(form && { "content-type": "application/x-www-form-urlencoded" }),
      ...options.headers,
    };
    const body = form ? encode(form).toString() : options.body;
    for (let attempt = 1; ; attempt++) {
      const init: RequestInit = { method, headers, redirect: "manual", ...(body !== undefined && { body }) };
      const response = await fetch(url, init);
      const text = await response.text();
      const waitS = Number(response.headers.get("retry-after"));
      const mustWait =
        (response.status === 429 || response.status === 503) && waitS > 0 && waitS <= MAX_WAIT_S;
      if (mustWait && attempt < MAX_ATTEMPTS) {
        await sleep(waitS * 1000);
        continue;
      }
      this.exchanges.push({
        request: describeRequest(method, url, headers, body),
        response: describeResponse(response, text),
      });
      return { status: response.status, headers: response.headers, text, body: parse(text) };
    }
  }

  endpoint(name: string): string {
    return needs(this.target.metadata[`${name}_endpoint`], `no ${name}_endpoint`);
  }

  /** Requests a token; the client authenticates unless `fields` or `options` say otherwise. */
  async token(fields: Fields = {}, options: Options = {}, client = this.client): Promise<Reply> {
    const isAuthentic = client === this.target.client && !options.headers?.authorization;
    if (isAuthentic && !("grant_type" in fields)) this.needsClientCredentials();
    const form = {
      grant_type: "client_credentials",
      scope: this.target.scope,
      resource: this.target.audience,
      ...fields,
    };
    return this.send(this.endpoint("token"), {
      ...options,
      form,
      headers: { ...basic(client), ...options.headers },
    });
  }

  /** Throws NotApplicable unless the server lists the grant. */
  needsClientCredentials(): void {
    const grants = this.target.metadata.grant_types_supported;
    needs(grants?.includes("client_credentials"), "no client_credentials grant");
  }

  /** Returns a token of the client for itself. */
  async accessToken(client = this.client): Promise<string> {
    this.needsClientCredentials();
    const { status, body } = await this.token({}, {}, client);
    expect(status === 200 && typeof body.access_token === "string", "the client gets no token");
    return body.access_token;
  }

  introspect(token: string, fields: Fields = {}, client = this.client): Promise<Reply> {
    return this.send(this.endpoint("introspection"), { form: { token, ...fields }, headers: basic(client) });
  }

  revoke(token: string, fields: Fields = {}, client = this.client): Promise<Reply> {
    return this.send(this.endpoint("revocation"), { form: { token, ...fields }, headers: basic(client) });
  }

  /** Calls the protected resource. */
  call(token: string, options: Options & { scheme?: string } = {}): Promise<Reply> {
    const { scheme = "Bearer", ...others } = options;
    const headers = { authorization: `${scheme} ${token}`, ...options.headers };
    return this.send(this.resource, { ...others, headers });
  }

  get resource(): string {
    return needs(this.target.resource, "no resource is configured");
  }

  get client(): Credentials {
    return needs(this.target.client, "no client is configured");
  }

  get other(): Credentials {
    return needs(this.target.other, "no other client is configured");
  }

  /** Whether a token works: at introspection if there is one, else at the resource. */
  async isActive(token: string): Promise<boolean> {
    if (!this.target.metadata.introspection_endpoint) return (await this.call(token)).status < 400;
    const { status, body } = await this.introspect(token);
    expect(status === 200, `the response to introspection is ${status}`);
    return body.active === true;
  }

  /** Returns the parameters of a valid authorization request. */
  authorizationRequest(changes: Fields = {}) {
    const verifier = randomBytes(32).toString("base64url");
    const redirectUri = needs(this.target.redirectUri, "no redirect URI is configured");
    const fields: Fields = {
      response_type: "code",
      client_id: this.client.client_id,
      redirect_uri: redirectUri,
      scope: this.target.scope,
      resource: this.target.audience,
      state: randomBytes(16).toString("base64url"),
      code_challenge: challengeOf(verifier),
      code_challenge_method: "S256",
      ...changes,
    };
    return { fields, verifier, url: `${this.endpoint("authorization")}?${encode(fields)}` };
  }

  /** Sends an authorization request without a session of the user. */
  async open(changes: Fields = {}): Promise<Reply> {
    return this.send(this.authorizationRequest(changes).url);
  }

  /** Has the user's browser open an authorization request; undefined if it was not redirected back. */
  async authorize(changes: Fields = {}, url?: string) {
    const browser = needs(this.target.browser, "no redirect URI is configured");
    const request = this.authorizationRequest(changes);
    const callback = await browser.open(url ?? request.url);
    this.exchanges.push({
      request: describeRequest("GET", url ?? request.url, {}),
      response: callback
        ? describeRequest("GET", `${request.fields.redirect_uri}?${callback}`, {})
        : "no redirect",
    });
    return { ...request, callback };
  }

  /** Returns a code that the user allowed. */
  async code(changes: Fields = {}) {
    const { callback, ...request } = await this.authorize(changes);
    const code = callback?.get("code");
    expect(callback && code, "the authorization request returns no code");
    return { ...request, callback, code };
  }

  redeem(
    code: string,
    verifier: string | undefined,
    changes: Fields = {},
    options: Options = {},
    client?: Credentials,
  ) {
    const fields = {
      grant_type: "authorization_code",
      code,
      redirect_uri: this.target.redirectUri,
      code_verifier: verifier,
      scope: undefined,
      ...changes,
    };
    return this.token(fields, options, client);
  }

  /** Returns tokens that the user allowed. */
  async userTokens(changes: Fields = {}): Promise<Tokens> {
    const { code, verifier } = await this.code(changes);
    const { status, body } = await this.redeem(code, verifier);
    expect(status === 200, "the code is not redeemed");
    return body as Tokens;
  }

  refresh(token: string, fields: Fields = {}, options: Options = {}, client?: Credentials): Promise<Reply> {
    const form = { grant_type: "refresh_token", refresh_token: token, scope: undefined, ...fields };
    return this.token(form, options, client);
  }
}

export function basic({ client_id, client_secret }: Credentials): Record<string, string> {
  const encoded = [client_id, client_secret].map((part) => encodeURIComponent(part)).join(":");
  return { authorization: `Basic ${Buffer.from(encoded).toString("base64")}` };
}

export function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

export function encode(fields: Fields): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, values] of Object.entries(fields))
    for (const value of [values ?? []].flat()) form.append(name, value);
  return form;
}

function parse(text: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Throws Violation unless a reply is an error with one of these codes (RFC 6749 §5.2). */
export function expectError({ status, body }: Reply, ...codes: string[]): void {
  expect(status >= 400 && status < 500, `the response is ${status}`);
  expect(typeof body.error === "string", "the response has no error");
  expect(
    codes.length === 0 || codes.includes(body.error),
    `error is ${body.error}, not ${codes.join(" or ")}`,
  );
}
