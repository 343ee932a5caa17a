import test from "ava";
import { type Answer, authorizeUrl, createApp, read } from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const PATHS = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
const metadata = async (path = PATHS[0]) => read(fetch(service.url + path));

test("the metadata is JSON and names the exact issuer", async (t) => {
  const { status, headers, body } = await metadata();
  t.is(status, 200);
  t.regex(headers.get("content-type") ?? "", /^application\/json/);
  t.is(body.issuer, service.url);
});

test("both discovery documents are identical, and every URL has the issuer's origin", async (t) => {
  const [oauth, openid] = (await Promise.all(PATHS.map(metadata))) as [Answer, Answer];
  t.deepEqual(oauth.body, openid.body);
  const urls = Object.entries(oauth.body).filter(([name]) => /_(endpoint|uri)$/.test(name));
  t.true(urls.length >= 6);
  for (const [name, url] of urls) t.true(String(url).startsWith(`${service.url}/`), name);
});

for (const path of PATHS) {
  test(`${path} may be cached by anyone for an hour, and read from every origin`, async (t) => {
    const origin = "https://app.example.com";
    for (const headers of [{}, { origin }]) {
      const response = await fetch(service.url + path, { headers });
      t.is(response.headers.get("cache-control"), "public, max-age=3600");
      // The same for all origins, so shared caches can't return one origin's copy to another.
      t.is(response.headers.get("access-control-allow-origin"), "*");
      t.false(response.headers.has("access-control-allow-credentials"));
    }
    const preflight = await fetch(service.url + path, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "mcp-protocol-version",
      },
    });
    t.is(preflight.status, 204);
    t.is(preflight.headers.get("access-control-allow-origin"), "*");
    t.is(preflight.headers.get("access-control-allow-headers"), "mcp-protocol-version");
  });
}

test("the metadata has neither empty lists nor members without a value", async (t) => {
  for (const [name, value] of Object.entries((await metadata()).body)) {
    t.true(value !== null && value !== "", name);
    if (Array.isArray(value)) t.true(value.length > 0, name);
  }
});

for (const path of ["/.well-known/nothing", "/.well-known/oauth-protected-resource/nothing"]) {
  test(`the 404 of ${path} can be read from every origin, and is not cached`, async (t) => {
    const response = await fetch(service.url + path, { headers: { origin: "https://app.example.com" } });
    t.is(response.status, 404);
    t.is(response.headers.get("access-control-allow-origin"), "*");
    t.notRegex(response.headers.get("cache-control") ?? "", /public|max-age/);
    const preflight = await fetch(service.url + path, { method: "OPTIONS" });
    t.is(preflight.status, 204);
  });
}

test("S256 is the only code challenge method", async (t) => {
  t.deepEqual((await metadata()).body.code_challenge_methods_supported, ["S256"]);
});

test("code is the only response type, and the implicit and password grants are not supported", async (t) => {
  const { body } = await metadata();
  t.deepEqual(body.response_types_supported, ["code"]);
  t.deepEqual(body.response_modes_supported, ["query"]);
  t.deepEqual([...(body.grant_types_supported as string[])].sort(), [
    "authorization_code",
    "client_credentials",
    "refresh_token",
    "urn:ietf:params:oauth:grant-type:jwt-bearer",
  ]);
});

test("the metadata advertises the iss response parameter", async (t) => {
  t.true((await metadata()).body.authorization_response_iss_parameter_supported);
});

test("client authentication methods are listed for each endpoint", async (t) => {
  const { body } = await metadata();
  const authenticated = ["client_secret_basic", "client_secret_post", "private_key_jwt"];
  for (const [endpoint, methods] of Object.entries({
    token: [...authenticated, "none"],
    revocation: [...authenticated, "none"],
    introspection: authenticated,
  })) {
    const listed = body[`${endpoint}_endpoint_auth_methods_supported`] as string[];
    t.deepEqual(listed.toSorted(), methods.toSorted(), endpoint);
  }
});

test("each endpoint that accepts client assertions lists their algorithms, and never none", async (t) => {
  const { body } = await metadata();
  for (const endpoint of ["token", "revocation", "introspection"]) {
    t.true((body[`${endpoint}_endpoint_auth_methods_supported`] as string[]).includes("private_key_jwt"));
    const algorithms = body[`${endpoint}_endpoint_auth_signing_alg_values_supported`] as string[];
    t.deepEqual(algorithms, ["RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519"], endpoint);
  }
});

for (const document of ["oauth-authorization-server", "openid-configuration"]) {
  test(`${document} is also served with the path of the MCP server, to every origin`, async (t) => {
    const url = `${service.url}/.well-known/${document}`;
    const headers = { origin: "https://inspector.example" };
    const [root, mcp] = await Promise.all(["", "/mcp"].map((path) => read(fetch(url + path, { headers }))));
    t.is(mcp?.status, 200);
    t.deepEqual(mcp?.body, root?.body);
    t.is(mcp?.body.issuer, service.url);
    for (const name of ["access-control-allow-origin", "content-type"]) {
      t.is(mcp?.headers.get(name), root?.headers.get(name) ?? "");
    }
    t.is((await fetch(`${url}/other`)).status, 404);
  });
}

test("with MCP at another address, its path is the one that counts", async (t) => {
  const elsewhere = await startTestService({ MCP_URL: "http://localhost:1/agents/links" });
  t.teardown(() => elsewhere.close());
  const at = (path: string) => fetch(`${elsewhere.url}/.well-known/oauth-authorization-server${path}`);
  t.is((await at("/agents/links")).status, 200);
  t.is((await at("/mcp")).status, 404);
});

test("every advertised endpoint exists, and no other endpoint is advertised", async (t) => {
  const { body } = await metadata();
  const gets = ["authorization_endpoint", "jwks_uri", "userinfo_endpoint"];
  const posts = ["token", "revocation", "introspection", "pushed_authorization_request"].map(
    (name) => `${name}_endpoint`,
  );
  for (const name of gets) t.not((await fetch(String(body[name]))).status, 404, name);
  for (const name of posts) t.not((await fetch(String(body[name]), { method: "POST" })).status, 404, name);
  const advertised = Object.keys(body).filter((name) => /_(endpoint|jwks_uri)$|^jwks_uri$/.test(name));
  t.deepEqual(advertised.sort(), [...gets, ...posts].sort());
});

test("the scopes and the protected resources are listed", async (t) => {
  const { body } = await metadata();
  t.deepEqual(body.scopes_supported, [
    "openid",
    "offline_access",
    "links:read",
    "links:write",
    "webhooks:read",
    "webhooks:write",
  ]);
  t.deepEqual(body.protected_resources, [service.url, `${service.url}/v1`, `${service.url}/mcp`]);
});

test("the key set is public and contains no private key", async (t) => {
  const { body } = await read(fetch(`${service.url}/oauth/jwks`));
  const keys = body.keys as Record<string, string>[];
  t.deepEqual(
    keys.map(({ alg }) => alg),
    ["RS256", "ES256"],
  );
  for (const key of keys)
    for (const secret of ["d", "p", "q", "dp", "dq", "qi"]) t.false(secret in key, secret);
});

for (const path of [...PATHS, "/oauth/authorize"]) {
  test(`a foreign Host header is rejected at ${path}`, async (t) => {
    for (const host of ["evil.test", `evil.test:${new URL(service.url).port}`, "LOCALHOST.evil.test"]) {
      const { status, headers, text } = await sendRaw(service.url, path, { headers: ["host", host] });
      t.is(status, 421, host);
      t.notRegex(JSON.stringify(headers) + text, /evil\.test/i, host);
    }
  });

  test(`forwarded host headers are ignored at ${path}`, async (t) => {
    const { app } = await createApp(service);
    const url = new URL(path === "/oauth/authorize" ? authorizeUrl(service, app) : service.url + path);
    const { status, headers, text } = await sendRaw(service.url, url.pathname + url.search, {
      headers: ["x-forwarded-host", "evil.test", "x-forwarded-proto", "https", "forwarded", "host=evil.test"],
    });
    t.true(status === 200 || status === 303, String(status));
    t.notRegex(JSON.stringify(headers) + text, /evil\.test|https:\/\/localhost/);
  });
}
