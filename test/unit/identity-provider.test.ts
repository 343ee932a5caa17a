import type { RequestListener } from "node:http";
import test from "ava";
import { createIdentityProvider, ProviderUnavailable } from "../../server/auth/sso/identity-provider.ts";
import { readSettings } from "../../server/settings/config.ts";
import { startApp } from "../harness/clients/app-server.ts";
import type { MockProvider } from "../harness/providers/identity-provider.ts";
import { providerSettings, startMockProvider } from "../harness/providers/identity-provider.ts";

const CALLBACK = "https://links.example.com/auth/sso/callback";

function clientOf(issuer: string) {
  const provider = createIdentityProvider(readSettings(providerSettings(issuer)), CALLBACK, () => {});
  if (!provider) throw new Error("the settings name no identity provider");
  return provider;
}

async function startProvider(metadata: object = {}) {
  const mock = await startMockProvider();
  const change = ({ body }: { body: unknown }) => void Object.assign(body as object, metadata);
  mock.service.on("beforeWellKnownOpenIdConfiguration", change);
  return { mock, client: clientOf(mock.issuer) };
}

async function signIn(client: ReturnType<typeof clientOf>, mock: MockProvider) {
  const { url, secrets } = await client.begin();
  return client.finish(new URL(await mock.answer({ url })), secrets);
}

test("a provider of another issuer, or without asymmetric signatures, counts as unreachable", async (t) => {
  const unsigned = { id_token_signing_alg_values_supported: ["none", "HS256"] };
  for (const metadata of [{ issuer: "https://evil.example" }, unsigned]) {
    const { client } = await startProvider(metadata);
    await t.throwsAsync(client.begin(), { instanceOf: ProviderUnavailable });
    t.false(await client.isReachable());
  }
});

test("if the provider announces the iss parameter, a callback without it is rejected", async (t) => {
  const { client, mock } = await startProvider({ authorization_response_iss_parameter_supported: true });
  await t.throwsAsync(signIn(client, mock), { code: "OAUTH_INVALID_RESPONSE" });
  mock.service.on("beforeAuthorizeRedirect", ({ url }) => url.searchParams.set("iss", mock.issuer));
  t.is((await signIn(client, mock)).issuer, mock.issuer);
});

test("an auth_time in the future is refused, except for a small difference of clocks", async (t) => {
  const { client, mock } = await startProvider();
  const now = Math.floor(Date.now() / 1000);
  mock.say(({ payload }) => Object.assign(payload, { auth_time: now + 60 }));
  await t.throwsAsync(signIn(client, mock), { message: /in the future/ });
  mock.say(({ payload }) => Object.assign(payload, { auth_time: now + 20 }));
  t.is((await signIn(client, mock)).authenticatedAt, now + 20);
});

test("each request carries PKCE, a nonce, a state and the scopes, and asks again only for a recent sign-in", async (t) => {
  const { client } = await startProvider();
  const requests = [];
  for (let round = 0; round < 2; round++) {
    const query = new URL((await client.begin()).url).searchParams;
    const fixed = { redirect_uri: CALLBACK, code_challenge_method: "S256", scope: "openid profile email" };
    t.like(Object.fromEntries(query), fixed);
    t.deepEqual([query.get("prompt"), query.get("max_age")], [null, null]);
    requests.push(query);
  }
  for (const name of ["code_challenge", "nonce", "state"]) {
    const [one, other] = requests.map((query) => query.get(name) as string);
    t.regex(one ?? "", /^[\w-]{43}$/, name);
    t.not(one, other, `${name} is unique per sign-in`);
  }
  const again = new URL((await client.begin(600)).url).searchParams;
  t.deepEqual([again.get("prompt"), again.get("max_age")], ["login", "600"]);
});

/** Serves what answers like this, and returns a client of it. */
async function clientOfServer(answer: RequestListener) {
  const { url } = await startApp(answer);
  return clientOf(url);
}

test("sign-in pages wait once for a provider that hangs", async (t) => {
  const attempts = { begun: 0, ended: 0 };
  const client = await clientOfServer((_request, response) => {
    attempts.begun++;
    response.once("close", () => attempts.ended++);
  });
  // If each page waited for a second, the first attempt would have been given up.
  for (let pages = 0; pages < 10; pages++)
    t.true(await client.isReachable(), "until it responds, nothing says that it can't be reached");
  t.deepEqual(attempts, { begun: 1, ended: 0 });
});

test("a response without an end is given up before it fills the memory", async (t) => {
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024, " ");
  const client = await clientOfServer((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const send = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      sent += chunk.length;
    };
    response.on("drain", send);
    send();
  });
  await t.throwsAsync(client.begin(), { instanceOf: ProviderUnavailable });
  // Besides what was read, the kernel takes a few megabytes.
  t.true(sent < 32 * 1024 * 1024, `${sent} bytes`);
});
