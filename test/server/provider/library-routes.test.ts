import http from "node:http";
import type { AddressInfo } from "node:net";
import test from "ava";
import { Provider } from "oidc-provider";
import { basic, createApp, formOf, read, runCodeFlow } from "../../harness/clients/oauth.ts";
import { postForm, startTestService } from "../../harness/service.ts";

// A request of a browser takes the way with the CORS of oidc-provider.
const ORIGIN = "https://console.example.com";
const service = await startTestService({ ALLOWED_ORIGINS: ORIGIN });
const { app, user } = await createApp(service);
const { accessToken } = await runCodeFlow(service, app, user);

test.after.always(() => service.close());

const OWN = basic(app);
const HEADER = Buffer.from(JSON.stringify({ alg: "RS256" })).toString("base64url");
const JWT = `${HEADER}.e30.c2ln`;
const JWE = `${HEADER}.a.b.c.d`;
const REQUESTS: Record<string, [endpoint: string, headers: Record<string, string>, body: string]> = {
  "client credentials": ["token", OWN, "grant_type=client_credentials&scope=links:read"],
  "an unknown scope": ["token", OWN, "grant_type=client_credentials&scope=admin"],
  "an unknown grant type": ["token", OWN, "grant_type=password"],
  "no grant type": ["token", OWN, ""],
  "a repeated parameter": ["token", OWN, "grant_type=client_credentials&scope=links:read&scope=links:read"],
  "a wrong secret": [
    "token",
    basic({ ...app, clientSecret: "lgs_wrong" }),
    "grant_type=client_credentials&scope=links:read",
  ],
  "no client authentication": ["token", {}, "grant_type=client_credentials"],
  "an unknown code": ["token", OWN, "grant_type=authorization_code&code=x&redirect_uri=https://x.example"],
  "a body of another type": ["token", { ...OWN, "content-type": "text/plain" }, "grant_type=password"],
  "an HTML page as answer": ["token", { accept: "text/html" }, "grant_type=client_credentials"],
  "an active token": ["introspect", OWN, `token=${accessToken}`],
  "an unknown token": ["introspect", OWN, "token=lga_unknown"],
  "a JWT": ["introspect", OWN, `token=${JWT}`],
  "an encrypted JWT": ["introspect", OWN, `token=${JWE}`],
  "an opaque token with a dot": ["introspect", OWN, "token=lga_unknown.x"],
  "no token": ["introspect", OWN, ""],
  "introspection without authentication": ["introspect", {}, `token=${accessToken}`],
};

for (const [what, [endpoint, headers, body]] of Object.entries(REQUESTS)) {
  test(`a request with ${what} gets the same response without the library's router`, async (t) => {
    const send = (more: object) =>
      read(
        fetch(`${service.url}/oauth/${endpoint}`, {
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded", ...headers, ...more },
          body,
        }),
      );
    const direct = await send({});
    const routed = await send({ origin: ORIGIN });
    t.deepEqual(comparable(direct), comparable(routed));
  });
}

/** Returns what two responses to the same request have in common. */
function comparable({ status, headers, body, text }: Awaited<ReturnType<typeof read>>) {
  const others = [...headers].filter(
    ([name]) => !/^(date|x-request-id|vary|content-length|access-control-.*)$/.test(name),
  );
  const { access_token: token, iat, exp, ...rest } = body ?? {};
  const times = typeof iat === "number" ? Number(exp) - iat : undefined;
  return { status, others, rest, times, isToken: typeof token, isText: body === undefined && text };
}

test("Provider.ctx is the context of a request without the library's router", async (t) => {
  // Scopes of a refresh are read from there.
  const { refreshToken } = await runCodeFlow(service, app, user);
  const { status, body } = await read(
    fetch(`${service.url}/oauth/token`, {
      method: "POST",
      headers: OWN,
      body: formOf({ grant_type: "refresh_token", refresh_token: refreshToken, scope: "links:read" }),
    }),
  );
  t.deepEqual([status, body.scope], [200, "links:read"]);
});

test("the library still defines a property on each context, which is why its router is avoided", async (t) => {
  const provider = new Provider("https://issuer.example");
  const seen: unknown[] = [];
  provider.on("grant.error", (ctx) => seen.push(Object.getOwnPropertyDescriptor(ctx, "oidc")));
  const server = http.createServer(provider.callback()).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await fetch(`http://127.0.0.1:${port}/token`, { method: "POST", body: formOf({}) });
  server.close();
  t.is(typeof (seen[0] as PropertyDescriptor | undefined)?.get, "function");
});

const REQUEST = { grant_type: "client_credentials" };
const ask = (origin: string) => postForm(`${service.url}/oauth/token`, REQUEST, { ...basic(app), origin });

test("allowed origins and the service's own can call the token endpoint", async (t) => {
  for (const origin of [ORIGIN, service.url]) {
    const { status, headers } = await ask(origin);
    t.is(status, 200);
    t.is(headers.get("access-control-allow-origin"), origin);
    t.is(headers.get("access-control-allow-credentials"), null);
  }
});

for (const origin of [
  "https://evil.example",
  "null",
  `${ORIGIN}.evil.example`,
  ORIGIN.replace("https", "http"),
  `${ORIGIN}:8443`,
  "https://example.com",
]) {
  test(`scripts on ${origin} can't read the token endpoint's response`, async (t) => {
    const { status, headers } = await ask(origin);
    t.is(headers.get("access-control-allow-origin"), null);
    t.not(status, 200);
  });
}
