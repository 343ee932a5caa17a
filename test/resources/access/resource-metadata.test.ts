import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());
const { url } = service;
const api = apiAt(url);
const WELL_KNOWN = "/.well-known/oauth-protected-resource";

const ALL = ["links:read", "links:write", "webhooks:read", "webhooks:write"];
const documents: [path: string, resource: string, scopes: string[]][] = [
  [WELL_KNOWN, url, ALL],
  [`${WELL_KNOWN}/v1`, `${url}/v1`, ALL],
  [`${WELL_KNOWN}/mcp`, `${url}/mcp`, ["links:read", "links:write"]],
  [`${WELL_KNOWN}/mcp/`, `${url}/mcp/`, ["links:read", "links:write"]],
];

for (const [path, resource, scopes] of documents) {
  test(`${path} describes the resource whose URL it is derived from`, async (t) => {
    const { status, headers, body } = await api.get<Record<string, unknown>>(path);
    t.is(status, 200);
    t.regex(headers.get("content-type") ?? "", /^application\/json\b/);
    t.is(body.resource, resource);
    const { origin, pathname } = new URL(body.resource as string);
    t.is(origin + WELL_KNOWN + (pathname === "/" ? "" : pathname), url + path);
    t.deepEqual(body.authorization_servers, [url]);
    t.deepEqual(body.bearer_methods_supported, ["header"]);
    t.is(typeof body.resource_name, "string");
  });

  test(`${path} lists the scopes of the resource, and not offline_access`, async (t) => {
    const { body } = await api.get<{ scopes_supported: string[] }>(path);
    t.deepEqual(body.scopes_supported, scopes);
  });

  test(`${path} names an authorization server whose metadata has the same issuer`, async (t) => {
    const { body } = await api.get<{ authorization_servers: string[] }>(path);
    for (const issuer of body.authorization_servers) {
      const server = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
      t.is((server as { issuer: string }).issuer, issuer);
    }
  });

  test(`${path} can be read by any browser application, without credentials`, async (t) => {
    const origin = "https://inspector.example.com";
    const { status, headers } = await api.get(path, { origin });
    t.is(status, 200);
    t.is(headers.get("access-control-allow-origin"), "*");
    t.false(headers.has("access-control-allow-credentials"));
    const preflight = await api.send("OPTIONS", path, {
      headers: {
        origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "mcp-protocol-version",
      },
    });
    t.is(preflight.status, 204);
    t.is(preflight.headers.get("access-control-allow-origin"), "*");
    t.is(preflight.headers.get("access-control-allow-headers"), "mcp-protocol-version");
    t.false(preflight.headers.has("access-control-allow-credentials"));
  });

  test(`${path} answers HEAD without a body, and rejects methods that make changes`, async (t) => {
    const head = await api.send("HEAD", path);
    t.is(head.status, 200);
    t.is(head.text, "");
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const { status } = await api.send(method, path);
      t.true(status === 404 || status === 405, `${method} ${status}`);
    }
  });
}

for (const path of [
  `${WELL_KNOWN}/`,
  `${WELL_KNOWN}/v1/`,
  `${WELL_KNOWN}/v1/links`,
  `${WELL_KNOWN}/V1`,
  `${WELL_KNOWN}/other`,
]) {
  test(`${path} is not found`, async (t) => {
    t.is((await api.get(path)).status, 404);
  });
}

for (const [path, resource] of [
  ["/v1/links", "/v1"],
  ["/v1/organization", "/v1"],
  ["/mcp", "/mcp"],
  ["/mcp/", "/mcp/"],
] as const) {
  test(`the challenge of ${path} names its resource's metadata`, async (t) => {
    const reply = path.startsWith("/mcp") ? await api.send("POST", path, { json: {} }) : await api.get(path);
    const metadataUrl = challengeOf(reply)?.resource_metadata ?? "";
    const body = (await (await fetch(metadataUrl)).json()) as { resource: string };
    t.is(body.resource, url + resource);
  });
}
