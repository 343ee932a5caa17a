// One canary per seam, and those of other files that rely on what isn't documented. It runs oidc-provider without our
// changes, and fails if its behavior differs from what they assume.
// `node test/seams.ts next` runs them with the newest version.

import { once } from "node:events";
import { readdirSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import Koa from "koa";
import compose from "koa-compose";
import {
  type AdapterPayload,
  type Configuration,
  errors,
  type KoaContextWithOIDC,
  Provider,
} from "oidc-provider";
import { ROOT } from "../../../harness/program.ts";

const ISSUER = "http://op.example";
const CLIENT = {
  client_id: "app",
  client_secret: "secret",
  grant_types: ["client_credentials", "authorization_code", "refresh_token"],
  redirect_uris: ["https://app.example/callback"],
  response_types: ["code"] as const,
};
const CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"; // RFC 7636 appendix B
const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const RESOURCE = "https://api.example";

const seams = new Set<string>();
/** Defines the canary of a seam. */
function canary(seam: string, sentence: string, check: (t: ExecutionContext) => Promise<void>): void {
  seams.add(`${seam}.ts`);
  test(`${seam}: ${sentence}`, check);
}

/** Starts a plain oidc-provider that stores everything in `rows`, and logs what it asks of its adapter. */
async function start(configuration: Configuration = {}) {
  const rows = new Map<string, AdapterPayload>();
  const calls: string[] = [];
  const call = (model: string, name: string) => void calls.push(`${model}.${name}`);
  const provider = new Provider(ISSUER, {
    clients: [{ ...CLIENT, response_types: ["code"] }],
    findAccount: async (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: async () => true,
    expiresWithSession: async () => false,
    adapter: (model) => ({
      async upsert(id, payload) {
        call(model, "upsert");
        rows.set(`${model}:${id}`, JSON.parse(JSON.stringify(payload)));
      },
      async find(id) {
        call(model, "find");
        return rows.get(`${model}:${id}`);
      },
      findByUid: async (uid) => [...rows.values()].find((row) => row.uid === uid),
      findByUserCode: async () => undefined,
      async consume(id) {
        call(model, "consume");
        Object.assign(rows.get(`${model}:${id}`) ?? {}, { consumed: 1 });
      },
      async destroy(id) {
        call(model, "destroy");
        rows.delete(`${model}:${id}`);
      },
      revokeByGrantId: async () => {},
    }),
    ...configuration,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => RESOURCE,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: "read write",
          audience: RESOURCE,
          accessTokenFormat: "opaque",
        }),
      },
      ...configuration.features,
    },
  });
  const server = http.createServer(provider.callback()).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const send = async (to: string, init: RequestInit = {}) => {
    const response = await fetch(url + to, init);
    return { status: response.status, body: JSON.parse((await response.text()) || "{}") };
  };
  const postToken = (fields: Record<string, string>, headers = {}) => {
    const authorization = `Basic ${btoa("app:secret")}`;
    return send("/token", {
      method: "POST",
      body: new URLSearchParams(fields),
      headers: { authorization, ...headers },
    });
  };
  return { url, provider, rows, calls, send, postToken, close: () => server.close() };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Stores a grant, and a code or refresh token of it. */
async function issue({ provider }: Started, kind: "AuthorizationCode" | "RefreshToken"): Promise<string> {
  const client = await provider.Client.find("app");
  const grant = new provider.Grant({ accountId: "user", clientId: "app" });
  grant.addResourceScope(RESOURCE, "read write");
  const grantId = await grant.save();
  const common = {
    accountId: "user",
    client,
    grantId,
    scope: "write",
    resource: RESOURCE,
    gty: "authorization_code",
  };
  const of = { redirectUri: CLIENT.redirect_uris[0], codeChallenge: CHALLENGE, codeChallengeMethod: "S256" };
  const token = new provider[kind]({ ...common, ...of } as never);
  return token.save();
}

const CODE = {
  grant_type: "authorization_code",
  redirect_uri: "https://app.example/callback",
  code_verifier: VERIFIER,
};

canary("endpoint-steps", "the steps of each endpoint are the ones that ours run between", async (t) => {
  const endpoints = import("../../../../server/provider/endpoints.ts");
  await t.notThrowsAsync(endpoints, "an endpoint has other steps, or a private file has moved");
  t.is(
    (await endpoints).TOKEN_STEPS.at(-1)?.name,
    "callTokenHandler",
    "the token endpoint ends with another step",
  );
});

canary("key-store", "the key store of a running provider can be initialized again", async (t) => {
  const { useKeys } = await import("../../../../server/provider/seams/key-store.ts");
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: "another", use: "sig", alg: "RS256" };
  const op = await start();
  t.teardown(op.close);
  useKeys(op.provider, { jwks: { keys: [key] }, cookies: ["another"] } as never);
  const { keys } = (await op.send("/jwks")).body;
  t.deepEqual(
    keys.map(({ kid }: { kid: string }) => kid),
    ["another"],
    "the former keys are still published",
  );
});

canary("proofs", "the functions for proofs verify one in the handler of another grant", async (t) => {
  const { readProof } = await import("../../../../server/provider/seams/proofs.ts");
  const op = await start();
  t.teardown(op.close);
  op.provider.registerGrantType("urn:other", async (ctx) => {
    ctx.body = { bound: Boolean(await readProof(op.provider, ctx)) };
  });
  const client = await op.provider.Client.find("app");
  Object.assign(client ?? {}, { grantTypes: ["urn:other"] });
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const dpop = await new SignJWT({ jti: "1", iat: Date.now() / 1000, htm: "POST", htu: `${op.url}/token` })
    .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk: await exportJWK(publicKey) })
    .sign(privateKey);
  const post = (headers = {}) => op.postToken({ grant_type: "urn:other" }, headers);
  t.deepEqual(
    (await post()).body,
    { bound: false },
    "a request without a proof is taken for one with a proof",
  );
  t.is((await post({ dpop: "x" })).body.error, "invalid_dpop_proof", "an invalid proof isn't rejected");
  t.deepEqual((await post({ dpop })).body, { bound: true }, "a valid proof is rejected");
  t.is((await post({ dpop })).body.error, "invalid_grant", "a proof is accepted twice");
});

canary("proofs", "without the seam, two concurrent uses both count as the first", async (t) => {
  const { provider, close } = await start();
  t.teardown(close);
  const { ReplayDetection } = provider as unknown as {
    ReplayDetection: { unique(issuer: string, jti: string, exp: number): Promise<boolean> };
  };
  const exp = Date.now() / 1000 + 60;
  const both = await Promise.all([1, 2].map(() => ReplayDetection.unique("issuer", "jti", exp)));
  t.deepEqual(both, [true, true], "the seam is no longer needed: oidc-provider settles the race");
});

canary(
  "clients",
  "requests find their client by the static method, and metadata makes a client",
  async (t) => {
    const op = await start();
    t.teardown(op.close);
    const { Client } = op.provider;
    const ClientClass = Client as unknown as new (metadata: object) => InstanceType<typeof Client>;
    const other = new ClientClass({ ...CLIENT, client_id: "other" });
    Object.assign(Client, { find: async (id: string) => (id === "app" ? other : undefined) });
    const seen = new Promise<KoaContextWithOIDC>((resolve) => op.provider.on("grant.success", resolve));
    t.is((await op.postToken({ grant_type: "client_credentials" })).status, 200, "Client.find isn't used");
    t.is((await seen).oidc.client?.clientId, "other");
  },
);

canary("clients", "the comparison of a secret is a method of the client, and awaited", async (t) => {
  const op = await start();
  t.teardown(op.close);
  const secrets: string[] = [];
  Object.assign(op.provider.Client.prototype, {
    async compareClientSecret(secret: string) {
      secrets.push(secret);
      return false;
    },
  });
  t.is((await op.postToken({ grant_type: "client_credentials" })).status, 401, "the method doesn't decide");
  t.deepEqual(secrets, ["secret"]);
});

canary("stored-tokens", "models store and restore the fields that IN_PAYLOAD lists", async (t) => {
  const { storeFields } = await import("../../../../server/provider/seams/stored-tokens.ts");
  const { provider, close } = await start();
  t.teardown(close);
  storeFields(provider);
  const grant = Object.assign(new provider.Grant({ accountId: "user", clientId: "app" }), {
    organizationId: "o",
  });
  const found = await provider.Grant.find(await grant.save());
  t.is((found as typeof grant | undefined)?.organizationId, "o", "an extra field is lost");
});

canary("stored-tokens", "a token gets its id when it is saved, and its client is known then", async (t) => {
  const { generateTokenIds } = await import("../../../../server/provider/seams/stored-tokens.ts");
  const op = await start();
  t.teardown(op.close);
  generateTokenIds(op.provider);
  const { body } = await op.postToken({ grant_type: "client_credentials" });
  t.regex(body.access_token, /^lga_/, "the id isn't generated by generateTokenId");
});

canary("redemption", "a refresh compares the requested scopes with the getter of the token", async (t) => {
  const { coverImpliedScopes } = await import("../../../../server/provider/seams/redemption.ts");
  const op = await start();
  t.teardown(op.close);
  const refresh = async (scope: string) => {
    const refresh_token = await issue(op, "RefreshToken");
    return (await op.postToken({ grant_type: "refresh_token", refresh_token, scope })).body;
  };
  t.is((await refresh("write offline_access")).error, "invalid_scope", "the seam is no longer needed");
  coverImpliedScopes(op.provider);
  t.is((await refresh("write offline_access")).scope, "write", "the getter `scopes` doesn't decide");
});

canary(
  "redemption",
  "a code is found, then its grant, then consumed, all before a token is stored",
  async (t) => {
    const op = await start();
    t.teardown(op.close);
    const code = await issue(op, "AuthorizationCode");
    op.calls.length = 0;
    const { prototype } = op.provider.AuthorizationCode as unknown as {
      prototype: { consume(): Promise<void> };
    };
    const { consume } = prototype;
    prototype.consume = async function refuse() {
      op.calls.push("consume");
      throw new errors.InvalidTarget();
    };
    t.is((await op.postToken({ ...CODE, code })).body.error, "invalid_target", "consume() can't refuse");
    t.deepEqual(op.calls, ["AuthorizationCode.find", "Grant.find", "consume"]);
    prototype.consume = consume;
    t.is((await op.postToken({ ...CODE, code })).status, 200, "a refusal uses the code up");
    t.is((await op.postToken({ ...CODE, code })).body.error, "invalid_grant", "a consumed code is accepted");
  },
);

canary("session-model", "a session with a new id is stored after the old one has ended", async (t) => {
  const { provider, calls, close } = await start();
  t.teardown(close);
  const session = new provider.Session();
  await session.save(60);
  session.resetIdentifier();
  t.is(
    (session as unknown as { oldId: string }).oldId.length > 0,
    true,
    "the former id is no longer `oldId`",
  );
  calls.length = 0;
  await session.save(60);
  t.deepEqual(
    calls,
    ["Session.destroy", "Session.upsert"],
    "the seam is no longer needed, or can't know the old id",
  );
  for (const method of ["authTime", "past"] as const)
    t.is(typeof session[method], "function", `${method} is gone`);
  const ended = await provider.Session.get({
    req: { headers: { cookie: "_session=x" } },
    res: {},
  } as never).catch(() => undefined);
  t.is(ended?.exp, undefined);
});

/** Defines the canary of a file outside of the seams that relies on what oidc-provider doesn't document. */
function canaryElsewhere(
  file: string,
  sentence: string,
  check: (t: ExecutionContext) => Promise<void>,
): void {
  test(`${file}: ${sentence}`, check);
}

const AUTHORIZE = `/auth?${new URLSearchParams({
  client_id: "app",
  response_type: "code",
  prompt: "none",
  redirect_uri: CLIENT.redirect_uris[0] as string,
})}`;

canaryElsewhere(
  "provider/untrusted-redirects",
  "a listener decides whether an error is sent to the client",
  async (t) => {
    const op = await start();
    t.teardown(op.close);
    const ask = async () => (await fetch(op.url + AUTHORIZE, { redirect: "manual" })).headers.get("location");
    t.regex((await ask()) ?? "", /^https:\/\/app\.example\/callback\?error=/);
    op.provider.on("authorization.error", (_ctx, error) => Object.assign(error, { allow_redirect: false }));
    t.is(await ask(), null, "allow_redirect isn't read after the event");
  },
);

canaryElsewhere(
  "authorization-server, provider/index, http/requests",
  "a provider runs in the contexts of another application",
  async (t) => {
    const { provider, close } = await start();
    const app = new Koa();
    Object.defineProperty(app.request, "protocol", { configurable: true, get: () => "https" });
    Object.defineProperty(app.request, "query", { configurable: true, get: () => ({ client_id: "other" }) });
    Object.assign(app.context, { ours: true });
    app.use(compose(provider.middleware));
    const server = app.listen(0, "127.0.0.1");
    t.teardown(() => {
      close();
      server.close();
    });
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const failed: [context: object, error: Error][] = [];
    provider.on("authorization.error", (ctx, error) => failed.push([ctx, error]));
    const metadata = await (await fetch(`${url}/.well-known/openid-configuration`)).json();
    t.regex(metadata.token_endpoint, /^https:/, "URLs don't follow the protocol of the request");
    await fetch(url + AUTHORIZE);
    const [[ctx, error] = []] = failed;
    t.is(error?.message, "invalid_client", "parameters aren't those of the request's query");
    t.true(ctx && "ours" in ctx, "contexts aren't those of the application");
  },
);

canaryElsewhere(
  "interactions/login-step",
  "an interaction without the id of a session continues in any session",
  async (t) => {
    const op = await start();
    t.teardown(op.close);
    const resume = async (uid: string) => {
      const [redirect_uri] = CLIENT.redirect_uris;
      const { Interaction } = op.provider as unknown as {
        Interaction: new (uid: string, payload: object) => { save(ttl: number): Promise<string> };
      };
      const interaction = new Interaction("request", {
        session: { accountId: "user", uid },
        params: { client_id: "app", response_type: "code", redirect_uri },
        result: { error: "access_denied" },
      });
      await interaction.save(60);
      const headers = { cookie: "_interaction_resume=request" };
      const { headers: sent } = await fetch(`${op.url}/auth/request`, { headers, redirect: "manual" });
      return sent.get("location");
    };
    t.is(await resume("of another session"), null, "the id isn't compared: it needn't be removed");
    t.regex((await resume("")) ?? "", /error=access_denied/, "the id is required");
  },
);

test("each seam has a canary, and there are at most seven", (t) => {
  const files = readdirSync(path.join(ROOT, "server/provider/seams"));
  t.deepEqual(files.toSorted(), [...seams].toSorted());
  t.true(files.length <= 7);
});
