import { createHash } from "node:crypto";
import { parse } from "node:querystring";
import type { Context, Middleware } from "koa";
import type { Provider } from "oidc-provider";
import { CLIENT, type Flaw } from "./example-server.ts";

const CREDENTIALS = `Basic ${Buffer.from(`${CLIENT.client_id}:${CLIENT.client_secret}`).toString("base64")}`;

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

/** Lets requests authenticate as the client whose form is so. */
const asClient = (path: string, applies: (form: URLSearchParams) => boolean) =>
  withForm(path, (form, ctx) => {
    if (applies(form)) ctx.req.headers.authorization = CREDENTIALS;
  });

const withCredentials = (path: string) =>
  withForm(path, (_form, ctx) => {
    ctx.req.headers.authorization ??= CREDENTIALS;
  });

function afterwards(path: string | RegExp, change: (ctx: Context) => void): Middleware {
  return async (ctx, next) => {
    await next();
    if (typeof path === "string" ? ctx.path === path : path.test(ctx.path)) change(ctx);
  };
}

type Answer = { status: number; body: unknown };

/** Responds to a code or refresh token that was used before as `again` says, which gets the first response. */
function onReuse(parameter: string, again: (first: Answer) => Answer): Middleware {
  const answers = new Map<string, Answer>();
  let value: string | null = null;
  const read = withForm("/token", (form) => {
    value = form.get(parameter);
  });
  return (ctx, next) => {
    value = null;
    return read(ctx, async () => {
      const own = value;
      const first = own ? answers.get(own) : undefined;
      if (first) Object.assign(ctx, again(first));
      else await next();
      if (own && ctx.status === 200) answers.set(own, { status: 200, body: ctx.body });
    });
  };
}

// oidc-provider revokes the tokens then.
const unnoticed = () => ({ status: 400, body: { error: "invalid_grant" } });

const sha256 = (text: string) => createHash("sha256").update(text).digest("base64url");

const allowingRedirects = (redirectUriAllowed: (uri: string) => boolean) => (provider: Provider) =>
  void Object.assign(provider.Client.prototype, { redirectUriAllowed });

/** What is wrong with the example server, by the check that has to find it. */
const DEFECTS: Record<string, Omit<Flaw, "found">> = {
  "pkce-plain": {
    what: "the code challenge method plain is accepted",
    middleware: withQuery("/auth", (query) => {
      if (query.get("code_challenge_method") !== "plain") return;
      query.set("code_challenge", sha256(String(query.get("code_challenge"))));
      query.set("code_challenge_method", "S256");
    }),
  },
  "pkce-required": {
    what: "PKCE is optional",
    configure: (configuration) => {
      configuration.pkce = { required: () => false };
    },
  },
  "pkce-wrong-verifier": {
    what: "the code verifier is not checked",
    change: ({ AuthorizationCode }) => {
      Object.defineProperty(AuthorizationCode.prototype, "codeChallenge", {
        get: () => undefined,
        set: () => {},
      });
    },
    middleware: withForm("/token", (form) => form.delete("code_verifier")),
  },
  "code-once": { what: "a code is redeemed twice", middleware: onReuse("code", (first) => first) },
  "code-reuse-revokes": {
    what: "the reuse of a code goes unnoticed",
    middleware: onReuse("code", unnoticed),
  },
  "refresh-reuse": {
    what: "the reuse of a refresh token goes unnoticed",
    middleware: onReuse("refresh_token", unnoticed),
  },
  "redirect-prefix": {
    what: "redirect URIs are compared by their beginning",
    change: allowingRedirects((uri: string) => /^http:\/\/127\.0\.0\.1(:\d+)?\/callback/.test(uri)),
  },
  "redirect-path": {
    what: "redirect URIs are compared by their host",
    change: allowingRedirects((uri: string) => URL.parse(uri)?.hostname === "127.0.0.1"),
  },
  "redirect-host": { what: "any redirect URI is accepted", change: allowingRedirects(() => true) },
  "code-iss": {
    what: "the response doesn't name the issuer",
    middleware: afterwards(/^\/auth/, (ctx) => {
      const location = String(ctx.response.get("location"));
      if (location.includes("/callback")) ctx.set("location", location.replace(/[?&]iss=[^&]*/, ""));
    }),
  },
  "code-state": {
    what: "the state is not returned",
    middleware: withQuery("/auth", (query) => query.delete("state")),
  },
  "code-other-client": {
    what: "a code is redeemed by another client",
    middleware: asClient("/token", (form) => form.get("grant_type") === "authorization_code"),
  },
  "refresh-other-client": {
    what: "a refresh token works for another client",
    middleware: asClient("/token", (form) => form.get("grant_type") === "refresh_token"),
  },
  "client-assertion-none": {
    what: "unsigned client assertions are accepted",
    middleware: withForm("/token", (form, ctx) => {
      const [header = ""] = String(form.get("client_assertion") ?? "").split(".");
      if (!header || JSON.parse(Buffer.from(header, "base64url").toString()).alg !== "none") return;
      for (const name of ["client_assertion", "client_assertion_type", "client_id"]) form.delete(name);
      ctx.req.headers.authorization = CREDENTIALS;
    }),
  },
  "client-no-secret": {
    what: "a confidential client needs no secret",
    middleware: withForm("/token", (form, ctx) => {
      if (ctx.get("authorization") || form.get("client_secret") || !form.get("client_id")) return;
      form.delete("client_id");
      ctx.req.headers.authorization = CREDENTIALS;
    }),
  },
  "client-secret-in-url": {
    what: "a secret in the URL is accepted",
    middleware: withForm("/token", (form, ctx) => {
      for (const [name, value] of new URLSearchParams(ctx.querystring)) form.set(name, value);
    }),
  },
  "client-wrong-secret": {
    what: "a wrong secret gets 400",
    middleware: afterwards("/token", (ctx) => {
      if (ctx.status === 401) ctx.status = 400;
    }),
  },
  "token-no-store": {
    what: "token responses may be cached",
    middleware: afterwards("/token", (ctx) => ctx.remove("cache-control")),
  },
  "cors-token": {
    what: "the token endpoint allows credentials of any origin",
    middleware: afterwards("/token", (ctx) => {
      ctx.set("access-control-allow-origin", ctx.get("origin"));
      ctx.set("access-control-allow-credentials", "true");
    }),
  },
  "authorization-frames": {
    what: "the authorization pages can be framed",
    middleware: afterwards(/./, (ctx) => ctx.remove("x-frame-options")),
  },
  "introspection-other-client": {
    what: "clients may introspect the tokens of others",
    configure: ({ features }) => {
      if (features?.introspection) features.introspection.allowedPolicy = () => true;
    },
  },
  "introspection-authentication": {
    what: "introspection needs no authentication",
    middleware: withCredentials("/token/introspection"),
  },
  "revocation-other-client": {
    what: "clients may revoke the tokens of others",
    configure: ({ features }) => {
      if (features?.revocation) features.revocation.allowedPolicy = () => true;
    },
  },
  "revocation-unknown": {
    what: "an unknown token can't be revoked",
    middleware: async (ctx, next) => {
      await next();
      if (ctx.path === "/token/revocation" && ctx.status === 200) ctx.status = 404;
    },
  },
  "par-authentication": {
    what: "a pushed request is accepted without authentication",
    middleware: withCredentials("/request"),
  },
  "jwks-public": {
    what: "the JWK Set has private keys",
    middleware: afterwards("/jwks", (ctx) => {
      const { keys } = ctx.body as { keys: object[] };
      ctx.body = { keys: keys.map((key) => ({ ...key, d: "private" })) };
    }),
  },
  "metadata-issuer": {
    what: "the metadata has another issuer",
    middleware: afterwards(/^\/\.well-known/, (ctx) => {
      Object.assign(ctx.body as object, { issuer: "https://other.example" });
    }),
  },
  "revocation-latency": { what: "a revocation counts a second late", resource: { cacheMs: 1000 } },
  "resource-query": { what: "the resource accepts a token in the URL", resource: { acceptsQuery: true } },
  "resource-no-token": { what: "the resource sends no challenge", resource: { hasNoChallenge: true } },
  "dpop-as-bearer": { what: "bound tokens work without a proof", resource: { ignores: ["proof"] } },
  "dpop-other-key": { what: "the resource accepts a proof of any key", resource: { ignores: ["key"] } },
  "dpop-resource-htu": {
    what: "the resource accepts a proof for another URL",
    resource: { ignores: ["htu"] },
  },
  "dpop-resource-ath": {
    what: "the resource accepts a proof for another token",
    resource: { ignores: ["ath"] },
  },
  "dpop-resource-old": { what: "the resource accepts old proofs", resource: { ignores: ["iat"] } },
  "dpop-replay-resource": { what: "the resource accepts a proof twice", resource: { ignores: ["jti"] } },
};

/** Each is the example server with one defect. */
export const FLAWS: Flaw[] = Object.entries(DEFECTS).map(([found, flaw]) => ({ found, ...flaw }));
