import test from "ava";
import { SIGNING_ALGORITHMS } from "../../server/assertions/verify-jwt.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { read } from "../harness/clients/oauth.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();

const PATHS = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
const metadata = async (path = PATHS[0]) => read(fetch(service.url + path));

test("the metadata is JSON and names the exact issuer", async (t) => {
  const { status, headers, body } = await metadata();
  t.is(status, 200);
  t.regex(headers.get("content-type") ?? "", /^application\/json/);
  t.is(body.issuer, service.url);
  t.deepEqual((await metadata(PATHS[1])).body, body, "also at the other address");
});

for (const path of PATHS)
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

test("the metadata has neither empty lists nor members without a value", async (t) => {
  for (const [name, value] of Object.entries((await metadata()).body)) {
    t.true(value !== null && value !== "", name);
    if (Array.isArray(value)) t.true(value.length > 0, name);
  }
});

test("the 404 of an unknown document can be read from every origin, and is not cached", async (t) => {
  for (const path of ["/.well-known/nothing", "/.well-known/oauth-protected-resource/nothing"]) {
    const response = await fetch(service.url + path, { headers: { origin: "https://app.example.com" } });
    t.is(response.status, 404);
    t.is(response.headers.get("access-control-allow-origin"), "*");
    t.notRegex(response.headers.get("cache-control") ?? "", /public|max-age/);
    t.is((await fetch(service.url + path, { method: "OPTIONS" })).status, 204);
  }
});

const WITH_NONE = ["client_secret_basic", "client_secret_post", "none", "private_key_jwt"];
const METHODS = "endpoint_auth_methods_supported";
const ALGORITHMS = "endpoint_auth_signing_alg_values_supported";
const LISTED: Record<string, unknown> = {
  code_challenge_methods_supported: ["S256"],
  response_types_supported: ["code"],
  response_modes_supported: ["query"],
  grant_types_supported: [
    "authorization_code",
    "refresh_token",
    "client_credentials",
    "urn:ietf:params:oauth:grant-type:device_code",
    "urn:ietf:params:oauth:grant-type:jwt-bearer",
  ],
  authorization_response_iss_parameter_supported: true,
  [`token_${METHODS}`]: WITH_NONE,
  [`revocation_${METHODS}`]: WITH_NONE,
  [`introspection_${METHODS}`]: ["client_secret_basic", "client_secret_post", "private_key_jwt"],
  [`token_${ALGORITHMS}`]: ["RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519"],
  [`revocation_${ALGORITHMS}`]: [...SIGNING_ALGORITHMS],
  [`introspection_${ALGORITHMS}`]: [...SIGNING_ALGORITHMS],
  scopes_supported:
    "openid offline_access links:read links:write domains:read domains:write webhooks:read webhooks:write".split(
      " ",
    ),
  protected_resources: [service.url, `${service.url}/v1`, `${service.url}/mcp`, `${service.url}/mcp/read`],
};

for (const [name, value] of Object.entries(LISTED))
  test(`the metadata lists exactly what is supported as ${name}`, async (t) => {
    t.deepEqual((await metadata()).body[name], value);
  });

test("only a host of the MCP server's own has copies of the metadata, also at the MCP server's path", async (t) => {
  const elsewhere = await startTestService({ MCP_URL: "http://localhost:1/agents" });
  t.teardown(() => elsewhere.close());
  const at = (host: string, path: string) =>
    sendRaw(elsewhere.url, path, { method: "GET", headers: ["host", host] });
  const own = new URL(elsewhere.url).host;
  for (const path of PATHS) {
    const { text } = await at(own, path);
    for (const end of ["", "/agents"]) t.is((await at("localhost:1", path + end)).text, text, path + end);
    t.is((await at(own, `${path}/agents`)).status, 404);
    t.is((await at("localhost:1", `${path}/mcp`)).status, 404);
    for (const other of [`${path}/mcp`, `${path}/mcp/read`, `/mcp${path}`])
      t.is((await fetch(service.url + other)).status, 404, other);
  }
});

test("every advertised endpoint exists, and no other endpoint is advertised", async (t) => {
  const { body } = await metadata();
  const gets = ["authorization_endpoint", "jwks_uri", "userinfo_endpoint"];
  const posts = "token revocation introspection pushed_authorization_request device_authorization"
    .split(" ")
    .map((name) => `${name}_endpoint`);
  for (const name of gets) t.not((await fetch(String(body[name]))).status, 404, name);
  for (const name of posts) t.not((await fetch(String(body[name]), { method: "POST" })).status, 404, name);
  const advertised = Object.keys(body).filter((name) => /_(endpoint|jwks_uri)$|^jwks_uri$/.test(name));
  t.deepEqual(advertised.sort(), [...gets, ...posts].sort());
});

test("forwarded host headers are ignored", async (t) => {
  const { app } = await createApp(service);
  for (const path of [...PATHS, authorizeUrl(service, app).replace(service.url, "")]) {
    const { status, headers, text } = await sendRaw(service.url, path, {
      headers: ["x-forwarded-host", "evil.test", "x-forwarded-proto", "https", "forwarded", "host=evil.test"],
    });
    t.true(status === 200 || status === 303, String(status));
    t.notRegex(JSON.stringify(headers) + text, /evil\.test|https:\/\/localhost/);
  }
});
