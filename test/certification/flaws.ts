import { createHash } from "node:crypto";
import { parse } from "node:querystring";
import type { Context, Middleware, Next } from "koa";
import type { Provider } from "oidc-provider";
import { CLIENT, type Flaw } from "./example-server.ts";

const CREDENTIALS = `Basic ${Buffer.from(`${CLIENT.client_id}:${CLIENT.client_secret}`).toString("base64")}`;

/** Changes the parameters of a form before oidc-provider reads it. */
function withForm(path: string, change: (form: URLSearchParams, ctx: Context) => void): Middleware {
  return async function changeForm(ctx, next) {
    if (ctx.path !== path || ctx.method !== "POST") return next();
    const chunks: Buffer[] = [];
    for await (const chunk of ctx.req) chunks.push(chunk as Buffer);
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    change(form, ctx);
    Object.assign(ctx.request, { body: parse(form.toString()) });
    return next();
  };
}

function withQuery(path: string, change: (query: URLSearchParams) => void): Middleware {
  return (ctx, next) => {
    if (ctx.path === path) {
      const query = new URLSearchParams(ctx.querystring);
      change(query);
      ctx.querystring = query.toString();
    }
    return next();
  };
}

/** Changes the response to requests of a path. */
function afterwards(path: string | RegExp, change: (ctx: Context) => void): Middleware {
  return async (ctx, next) => {
    await next();
    if (typeof path === "string" ? ctx.path === path : path.test(ctx.path)) change(ctx);
  };
}

/** Responds to a request as to the first one with the same key. */
function repeating(path: string, keyOf: (form: URLSearchParams) => string | null): Middleware {
  const answers = new Map<string, { status: number; body: unknown }>();
  let key: string | null = null;
  const read = withForm(path, (form) => {
    key = keyOf(form);
  });
  return async (ctx: Context, next: Next) => {
    key = null;
    await read(ctx, async () => {
      const answer = key ? answers.get(key) : undefined;
      const own = key;
      if (answer) Object.assign(ctx, answer);
      else await next();
      if (own && ctx.status === 200) answers.set(own, { status: 200, body: ctx.body });
    });
  };
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("base64url");

function onPrototype(provider: Provider, model: "Client", changes: object): void {
  Object.assign(provider[model].prototype, changes);
}

/** An error instead of what oidc-provider does on the reuse of a code or refresh token: nothing. */
function ignoringReuse(parameter: string): Middleware {
  const used = new Set<string>();
  let value: string | null = null;
  const read = withForm("/token", (form) => {
    value = form.get(parameter);
  });
  return (ctx, next) => {
    value = null;
    return read(ctx, async () => {
      const own = value;
      if (own && used.has(own)) Object.assign(ctx, { status: 400, body: { error: "invalid_grant" } });
      else await next();
      if (own && ctx.status === 200) used.add(own);
    });
  };
}

/** Each is the example server with one defect. */
export const FLAWS: Flaw[] = [
  {
    what: "the code challenge method plain is accepted",
    found: "pkce-plain",
    middleware: withQuery("/auth", (query) => {
      if (query.get("code_challenge_method") !== "plain") return;
      query.set("code_challenge", sha256(String(query.get("code_challenge"))));
      query.set("code_challenge_method", "S256");
    }),
  },
  {
    what: "PKCE is optional",
    found: "pkce-required",
    configure: (configuration) => {
      configuration.pkce = { required: () => false };
    },
  },
  {
    what: "the code verifier is not checked",
    found: "pkce-wrong-verifier",
    change: ({ AuthorizationCode }) => {
      Object.defineProperty(AuthorizationCode.prototype, "codeChallenge", {
        get: () => undefined,
        set: () => {},
      });
    },
    middleware: withForm("/token", (form) => form.delete("code_verifier")),
  },
  {
    what: "a code is redeemed twice",
    found: "code-once",
    middleware: repeating("/token", (form) => form.get("code")),
  },
  {
    what: "the reuse of a code goes unnoticed",
    found: "code-reuse-revokes",
    middleware: ignoringReuse("code"),
  },
  {
    what: "the reuse of a refresh token goes unnoticed",
    found: "refresh-reuse",
    middleware: ignoringReuse("refresh_token"),
  },
  {
    what: "redirect URIs are compared by their beginning",
    found: "redirect-prefix",
    change: (provider) =>
      onPrototype(provider, "Client", {
        redirectUriAllowed: (uri: string) => /^http:\/\/127\.0\.0\.1(:\d+)?\/callback/.test(uri),
      }),
  },
  {
    what: "redirect URIs are compared by their host",
    found: "redirect-path",
    change: (provider) =>
      onPrototype(provider, "Client", {
        redirectUriAllowed: (uri: string) => URL.parse(uri)?.hostname === "127.0.0.1",
      }),
  },
  {
    what: "any redirect URI is accepted",
    found: "redirect-host",
    change: (provider) => onPrototype(provider, "Client", { redirectUriAllowed: () => true }),
  },
  {
    what: "the response doesn't name the issuer",
    found: "code-iss",
    middleware: afterwards(/^\/auth/, (ctx) => {
      const location = String(ctx.response.get("location"));
      if (location.includes("/callback")) ctx.set("location", location.replace(/[?&]iss=[^&]*/, ""));
    }),
  },
  {
    what: "the state is not returned",
    found: "code-state",
    middleware: withQuery("/auth", (query) => query.delete("state")),
  },
  {
    what: "a code is redeemed by another client",
    found: "code-other-client",
    middleware: withForm("/token", (form, ctx) => {
      if (form.get("grant_type") === "authorization_code") ctx.req.headers.authorization = CREDENTIALS;
    }),
  },
  {
    what: "a refresh token works for another client",
    found: "refresh-other-client",
    middleware: withForm("/token", (form, ctx) => {
      if (form.get("grant_type") === "refresh_token") ctx.req.headers.authorization = CREDENTIALS;
    }),
  },
  {
    what: "unsigned client assertions are accepted",
    found: "client-assertion-none",
    middleware: withForm("/token", (form, ctx) => {
      const [header = ""] = String(form.get("client_assertion") ?? "").split(".");
      if (!header || JSON.parse(Buffer.from(header, "base64url").toString()).alg !== "none") return;
      for (const name of ["client_assertion", "client_assertion_type", "client_id"]) form.delete(name);
      ctx.req.headers.authorization = CREDENTIALS;
    }),
  },
  {
    what: "a confidential client needs no secret",
    found: "client-no-secret",
    middleware: withForm("/token", (form, ctx) => {
      if (ctx.get("authorization") || form.get("client_secret") || !form.get("client_id")) return;
      form.delete("client_id");
      ctx.req.headers.authorization = CREDENTIALS;
    }),
  },
  {
    what: "a secret in the URL is accepted",
    found: "client-secret-in-url",
    middleware: withForm("/token", (form, ctx) => {
      for (const [name, value] of new URLSearchParams(ctx.querystring)) form.set(name, value);
    }),
  },
  {
    what: "a wrong secret gets 400",
    found: "client-wrong-secret",
    middleware: afterwards("/token", (ctx) => {
      if (ctx.status === 401) ctx.status = 400;
    }),
  },
  {
    what: "token responses may be cached",
    found: "token-no-store",
    middleware: afterwards("/token", (ctx) => ctx.remove("cache-control")),
  },
  {
    what: "the token endpoint allows credentials of any origin",
    found: "cors-token",
    middleware: afterwards("/token", (ctx) => {
      ctx.set("access-control-allow-origin", ctx.get("origin"));
      ctx.set("access-control-allow-credentials", "true");
    }),
  },
  {
    what: "the authorization pages can be framed",
    found: "authorization-frames",
    middleware: afterwards(/./, (ctx) => ctx.remove("x-frame-options")),
  },
  {
    what: "clients may introspect the tokens of others",
    found: "introspection-other-client",
    configure: ({ features }) => {
      if (features?.introspection) features.introspection.allowedPolicy = () => true;
    },
  },
  {
    what: "introspection needs no authentication",
    found: "introspection-authentication",
    middleware: withForm("/token/introspection", (_form, ctx) => {
      ctx.req.headers.authorization ??= CREDENTIALS;
    }),
  },
  {
    what: "clients may revoke the tokens of others",
    found: "revocation-other-client",
    configure: ({ features }) => {
      if (features?.revocation) features.revocation.allowedPolicy = () => true;
    },
  },
  {
    what: "a revocation counts a second late",
    found: "revocation-latency",
    resource: { cacheMs: 1000 },
  },
  {
    what: "an unknown token can't be revoked",
    found: "revocation-unknown",
    middleware: async (ctx, next) => {
      await next();
      if (ctx.path === "/token/revocation" && ctx.status === 200) ctx.status = 404;
    },
  },
  {
    what: "the resource accepts a token in the URL",
    found: "resource-query",
    resource: { acceptsQuery: true },
  },
  {
    what: "the resource sends no challenge",
    found: "resource-no-token",
    resource: { hasNoChallenge: true },
  },
  {
    what: "bound tokens work without a proof",
    found: "dpop-as-bearer",
    resource: { ignores: ["proof"] },
  },
  {
    what: "the resource accepts a proof of any key",
    found: "dpop-other-key",
    resource: { ignores: ["key"] },
  },
  {
    what: "the resource accepts a proof for another URL",
    found: "dpop-resource-htu",
    resource: { ignores: ["htu"] },
  },
  {
    what: "the resource accepts a proof for another token",
    found: "dpop-resource-ath",
    resource: { ignores: ["ath"] },
  },
  {
    what: "the resource accepts old proofs",
    found: "dpop-resource-old",
    resource: { ignores: ["iat"] },
  },
  {
    what: "the resource accepts a proof twice",
    found: "dpop-replay-resource",
    resource: { ignores: ["jti"] },
  },
  {
    what: "a pushed request is accepted without authentication",
    found: "par-authentication",
    middleware: withForm("/request", (_form, ctx) => {
      ctx.req.headers.authorization ??= CREDENTIALS;
    }),
  },
  {
    what: "the JWK Set has private keys",
    found: "jwks-public",
    middleware: afterwards("/jwks", (ctx) => {
      const { keys } = ctx.body as { keys: object[] };
      ctx.body = { keys: keys.map((key) => ({ ...key, d: "private" })) };
    }),
  },
  {
    what: "the metadata has another issuer",
    found: "metadata-issuer",
    middleware: afterwards(/^\/\.well-known/, (ctx) => {
      Object.assign(ctx.body as object, { issuer: "https://other.example" });
    }),
  },
];
