// One canary per seam: it runs oidc-provider without our changes, and fails if its behavior differs from what they assume.
// `node test/seams.ts next` runs them with the newest version.

import { readdirSync } from "node:fs";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { type AdapterPayload, type Configuration, errors, Provider } from "oidc-provider";
import { startApp } from "../harness/clients/app-server.ts";
import { ROOT } from "../harness/program.ts";

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
  const { url, close } = await startApp(provider.callback());
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
  return { url, provider, rows, calls, send, postToken, close };
}

type Started = Awaited<ReturnType<typeof start>>;

type Check = (t: ExecutionContext, op: Started) => Promise<void>;
const seams = new Set<string>();

function canary(seam: string, sentence: string, check: Check): void {
  seams.add(`${seam}.ts`);
  test(`${seam}: ${sentence}`, async (t) => {
    const op = await start();
    t.teardown(op.close);
    await check(t, op);
  });
}

async function issue({ provider }: Started, kind: "AuthorizationCode" | "RefreshToken"): Promise<string> {
  const client = await provider.Client.find("app");
  const grant = new provider.Grant({ accountId: "user", clientId: "app" });
  grant.addResourceScope(RESOURCE, "read write");
  const grantId = await grant.save();
  const granted = { accountId: "user", client, grantId, gty: "authorization_code" };
  const pkce = { codeChallenge: CHALLENGE, codeChallengeMethod: "S256" };
  const requested = { redirectUri: CLIENT.redirect_uris[0], scope: "write", resource: RESOURCE, ...pkce };
  const token = new provider[kind]({ ...granted, ...requested } as never);
  return token.save();
}

const CODE = {
  grant_type: "authorization_code",
  redirect_uri: "https://app.example/callback",
  code_verifier: VERIFIER,
};

canary("endpoint-steps", "the steps of each endpoint are the ones that ours run between", async (t) => {
  const endpoints = import("../../server/provider/endpoints.ts");
  await t.notThrowsAsync(endpoints, "an endpoint has other steps, or a private file has moved");
  t.is((await endpoints).TOKEN_STEPS.at(-1)?.name, "callTokenHandler", "another step is the last one");
});

canary("key-store", "the key store of a running provider can be initialized again", async (t, op) => {
  const { useKeys } = await import("../../server/provider/seams/key-store.ts");
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: "another", use: "sig", alg: "RS256" };
  useKeys(op.provider, { jwks: { keys: [key] }, cookies: ["another"] } as never);
  const [published, ...others] = (await op.send("/jwks")).body.keys;
  t.is(published.kid, "another");
  t.deepEqual(others, [], "the former keys are still published");
});

canary("proofs", "the functions for proofs verify one in the handler of another grant", async (t, op) => {
  const { readProof } = await import("../../server/provider/seams/proofs.ts");
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
  t.deepEqual((await post()).body, { bound: false }, "without a proof, one is found");
  t.is((await post({ dpop: "x" })).body.error, "invalid_dpop_proof", "an invalid proof isn't rejected");
  t.deepEqual((await post({ dpop })).body, { bound: true }, "a valid proof is rejected");
  t.is((await post({ dpop })).body.error, "invalid_grant", "a proof is accepted twice");
});

canary("proofs", "without the seam, two concurrent uses both count as the first", async (t, { provider }) => {
  const { ReplayDetection } = provider as unknown as {
    ReplayDetection: { unique(issuer: string, jti: string, exp: number): Promise<boolean> };
  };
  const exp = Date.now() / 1000 + 60;
  const both = await Promise.all([1, 2].map(() => ReplayDetection.unique("issuer", "jti", exp)));
  t.deepEqual(both, [true, true], "the seam is no longer needed: oidc-provider settles the race");
});

canary("clients", "requests find their client by Client.find, which compares the secret", async (t, op) => {
  const { Client } = op.provider;
  const ClientClass = Client as unknown as new (metadata: object) => InstanceType<typeof Client>;
  const other = new ClientClass({ ...CLIENT, client_id: "other" });
  const secrets: string[] = [];
  Object.assign(other, { compareClientSecret: async (secret: string) => secrets.push(secret) > 1 });
  Object.assign(Client, { find: async (id: string) => (id === "app" ? other : undefined) });
  const request = () => op.postToken({ grant_type: "client_credentials" });
  t.is((await request()).status, 401, "the method doesn't decide, or isn't awaited");
  t.is((await request()).status, 200, "Client.find isn't used");
  t.deepEqual(secrets, ["secret", "secret"]);
});

canary("stored-tokens", "models store fields of IN_PAYLOAD, and get an id when saved", async (t, op) => {
  const { generateTokenIds, storeFields } = await import("../../server/provider/seams/stored-tokens.ts");
  const { Grant } = op.provider;
  storeFields(op.provider);
  generateTokenIds(op.provider);
  const fields = { organizationId: "o" };
  const grant = Object.assign(new Grant({ accountId: "user", clientId: "app" }), fields);
  t.like(await Grant.find(await grant.save()), fields, "an extra field is lost");
  const { body } = await op.postToken({ grant_type: "client_credentials" });
  t.regex(body.access_token, /^lga_/, "the id isn't generated by generateTokenId");
});

canary("redemption", "a refresh compares scopes with the token's getter", async (t, op) => {
  const { coverImpliedScopes } = await import("../../server/provider/seams/redemption.ts");
  const refresh = async (scope: string) => {
    const refresh_token = await issue(op, "RefreshToken");
    return (await op.postToken({ grant_type: "refresh_token", refresh_token, scope })).body;
  };
  t.is((await refresh("write offline_access")).error, "invalid_scope", "the seam is no longer needed");
  coverImpliedScopes(op.provider);
  t.is((await refresh("write offline_access")).scope, "write", "the getter `scopes` doesn't decide");
});

canary("redemption", "a code is consumed before a token is stored", async (t, op) => {
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
});

canary("session-model", "the old id of a session ends before the new one", async (t, { provider, calls }) => {
  const session = new provider.Session();
  await session.save(60);
  session.resetIdentifier();
  t.truthy((session as unknown as { oldId: string }).oldId, "the former id is no longer `oldId`");
  calls.length = 0;
  await session.save(60);
  t.deepEqual(calls, ["Session.destroy", "Session.upsert"], "the seam isn't needed, or doesn't help");
  for (const method of ["authTime", "past"] as const)
    t.is(typeof session[method], "function", `${method} is gone`);
  const ended = await provider.Session.get({
    req: { headers: { cookie: "_session=x" } },
    res: {},
  } as never).catch(() => undefined);
  t.is(ended?.exp, undefined);
});

test("each seam has a canary, and there are at most seven", (t) => {
  const files = readdirSync(path.join(ROOT, "server/provider/seams"));
  t.deepEqual(files.toSorted(), [...seams].toSorted());
  t.true(files.length <= 7);
});
