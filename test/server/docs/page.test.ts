import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { type HTMLElement, parse } from "node-html-parser";
import { PROBLEM_CODES } from "../../../resources/http/problem-codes.ts";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { connectMcp } from "../../harness/clients/mcp.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const token = await service.token(app);
const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");
const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ route, method, ...operation })),
);

test.after.always(() => service.close());

async function open(address: string): Promise<HTMLElement> {
  const response = await fetch(service.url + address);
  if (response.status !== 200) throw new Error(`${address}: ${response.status}`);
  return parse(await response.text(), { blockTextElements: { script: true } });
}

function addressOf(operationId: string): string {
  return `/docs/api/${operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function fieldsOf(html: HTMLElement | null | undefined): string[] {
  return html?.querySelectorAll(".definitions td:first-child code").map(({ text }) => text) ?? [];
}

for (const address of ["/docs", "/docs/webhooks", "/docs/api/create-link", "/docs/errors/slug_taken"]) {
  test(`${address} is public and cacheable`, async (t) => {
    const response = await fetch(service.url + address);
    const text = await response.text();
    t.is(response.status, 200);
    t.is(response.headers.get("content-type"), "text/html; charset=utf-8");
    t.is(response.headers.get("cache-control"), "public, max-age=300");
    t.is(response.headers.get("vary"), "Accept, Cookie, Accept-Encoding");
    t.false(response.headers.has("set-cookie"));
    const tag = response.headers.get("etag") as string;
    const again = await fetch(service.url + address, { headers: { "if-none-match": tag } });
    t.is(again.status, 304);
    const head = await fetch(service.url + address, {
      method: "HEAD",
      headers: { "accept-encoding": "identity" },
    });
    t.is(head.status, 200);
    t.is(head.headers.get("content-length"), String(Buffer.byteLength(text)));
  });
}

test("pages load nothing from other origins and have no inline script or style", async (t) => {
  const response = await fetch(`${service.url}/docs/api/create-link`);
  const text = await response.text();
  const html = parse(text);
  t.is(html.querySelectorAll("iframe, object, embed, style").length, 0);
  for (const element of html.querySelectorAll("link:not([rel=alternate]), img, script")) {
    t.regex(element.getAttribute("href") ?? element.getAttribute("src") ?? "", /^\/assets\//);
  }
  t.regex(response.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  t.notRegex(text, / (style|on\w+)="/);
});

for (const other of [
  "/docs/x",
  "/Docs",
  "/docs/x.md",
  "/docs/../package.json",
  "/docs/%2e%2e/package.json",
]) {
  test(`${other} returns 404`, async (t) => {
    t.is((await fetch(service.url + other)).status, 404);
  });
}

test("a trailing slash redirects to the page", async (t) => {
  const response = await fetch(`${service.url}/docs/webhooks/?x=1`, { redirect: "manual" });
  t.is(response.status, 308);
  t.is(response.headers.get("location"), "/docs/webhooks?x=1");
});

test("the image of a page has its type", async (t) => {
  const response = await fetch(`${service.url}/docs/images/dashboard.png`);
  t.is(response.headers.get("content-type"), "image/png");
  t.deepEqual(Buffer.from(await response.arrayBuffer()), readFileSync(`${ROOT}docs/images/dashboard.png`));
});

test("every operation is documented with its request, scopes, fields and responses", async (t) => {
  for (const operation of operations) {
    const { operationId, route, method, summary, security, parameters, requestBody, responses } = operation;
    const html = await open(addressOf(operationId));
    t.is(html.querySelector("h1")?.text, summary);
    const shown = html.querySelector("main")?.text ?? "";
    t.true(shown.includes(`${method.toUpperCase()} ${route}`), operationId);
    for (const { oauth2 = [] } of security) for (const scope of oauth2) t.true(shown.includes(scope), scope);
    const names = fieldsOf(html);
    for (const { name } of parameters) t.true(names.includes(name), `${operationId}: ${name}`);
    for (const name of propertiesOf(requestBody)) t.true(names.includes(name), `${operationId}: ${name}`);
    const statuses = Object.keys(responses);
    for (const status of statuses.filter((one) => Number(one) < 400))
      t.truthy(html.querySelector(`#response-${status}`), `${operationId}: ${status}`);
    const errors = html.querySelectorAll(".prose table:not(.definitions) tbody tr td:first-child");
    t.deepEqual(
      errors.map(({ text }) => text),
      statuses.filter((one) => Number(one) >= 400),
      operationId,
    );
  }
});

/** Returns the fields of a body whose schema the document names. */
function propertiesOf(body: { content?: Record<string, { schema: object }> } | undefined): string[] {
  const { $ref = "" } = (body?.content?.["application/json"]?.schema ?? {}) as { $ref?: string };
  return Object.keys(document.components.schemas[$ref.split("/").at(-1) as string]?.properties ?? {});
}

test("every object of the OpenAPI document is documented", async (t) => {
  const names = new Set(
    fieldsOf(await open("/docs/errors")).concat(fieldsOf(await open("/docs/api/events"))),
  );
  for (const { operationId, responses } of operations) {
    const own = fieldsOf(await open(addressOf(operationId)));
    for (const response of Object.values(responses))
      for (const field of propertiesOf(response)) t.true(own.includes(field), `${operationId}: ${field}`);
    for (const name of own) names.add(name);
  }
  for (const [name, { properties = {} }] of Object.entries(document.components.schemas))
    for (const field of Object.keys(properties)) t.true(names.has(field), `${name}: ${field}`);
});

test("every event is documented, with its body", async (t) => {
  const html = await open("/docs/api/events");
  const events = html.querySelectorAll("main h2").map(({ text }) => text);
  t.deepEqual(events, Object.keys(document.webhooks));
  const bodies = html.querySelectorAll("pre").map(({ text }) => JSON.parse(text));
  t.deepEqual(
    bodies.map(({ type }) => type),
    events,
  );
});

test("every MCP tool is documented", async (t) => {
  const client = await connectMcp(`${service.url}/mcp`, token);
  const { tools } = await client.listTools();
  t.true(tools.length > 10);
  const markdown = await (await fetch(`${service.url}/docs/api/mcp-tools.md`)).text();
  for (const { name, title = "?", inputSchema } of tools) {
    const [section = ""] = markdown.split(`\n## ${name}\n`)[1]?.split("\n## ") ?? [];
    t.true(section.includes(title), name);
    for (const field of Object.keys(inputSchema.properties ?? {}))
      t.true(section.includes(`\n| \`${field}\``), `${name}: ${field}`);
  }
  await client.close();
});

test("every error code is documented at its type", async (t) => {
  const codes = new Set<string>(Object.keys(PROBLEM_CODES));
  for (const { responses } of operations)
    for (const { content = {} } of Object.values(responses)) {
      const { allOf = [] } = (content["application/problem+json"]?.schema ?? {}) as {
        allOf?: { properties?: { code: { enum: string[] } } }[];
      };
      for (const { properties } of allOf) for (const code of properties?.code.enum ?? []) codes.add(code);
    }
  for (const code of thrownCodes()) codes.add(code);
  t.true(codes.size > 50);
  for (const code of codes) {
    const html = await open(`/docs/errors/${code}`);
    t.is(html.querySelector("h1")?.text, code);
    t.is(JSON.parse(html.querySelector("pre")?.text ?? "").type, `${service.url}/docs/errors/${code}`);
  }
});

test("every error code of the API is documented with its status", async (t) => {
  for (const [code, { status, next }] of Object.entries(PROBLEM_CODES)) {
    const shown = (await open(`/docs/errors/${code}`)).querySelector(".prose")?.text ?? "";
    t.true(shown.includes(`Status ${status}, API and MCP.`), code);
    t.true(shown.includes(next.replaceAll("`", "").slice(0, 20)), code);
  }
});

test("the page of an error code lists the operations that return it", async (t) => {
  const links = (await open("/docs/errors/slug_taken")).querySelectorAll(".prose ul a");
  t.deepEqual(
    links.map((link) => link.getAttribute("href")),
    ["/docs/api/create-link", "/docs/api/update-link", "/docs/api/upsert-link"],
  );
});

// RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1, RFC 7009 §2.2.1, RFC 7591
// §3.2.2, RFC 8707 §2, RFC 9126 §2.3, RFC 9396 §5, RFC 9449 §5 and §7.1, OpenID Connect Core §3.1.2.6; and the codes of
// problems with which the API refuses a caller.
const ERRORS = [
  "access_denied",
  "consent_required",
  "insufficient_scope",
  "interaction_required",
  "invalid_client",
  "invalid_client_metadata",
  "invalid_dpop_proof",
  "invalid_grant",
  "invalid_redirect_uri",
  "invalid_request",
  "invalid_request_object",
  "invalid_request_uri",
  "invalid_scope",
  "invalid_target",
  "invalid_token",
  "login_required",
  "missing_token",
  "organization_suspended",
  "origin_not_allowed",
  "plan_required",
  "quota_exceeded",
  "rate_limited",
  "request_not_supported",
  "request_uri_not_supported",
  "server_error",
  "slow_down",
  "temporarily_unavailable",
  "unauthorized_client",
  "unsupported_grant_type",
  "unsupported_response_mode",
  "unsupported_response_type",
  "unsupported_token_type",
  "use_dpop_nonce",
];

test("every error code that the metrics of OAuth count is documented", async (t) => {
  for (const code of ERRORS) t.is((await open(`/docs/errors/${code}`)).querySelector("h1")?.text, code);
});

test("the page of an OAuth error code has an example with its error_uri", async (t) => {
  const { error, error_uri } = JSON.parse(
    (await open("/docs/errors/invalid_scope")).querySelector("pre")?.text ?? "",
  );
  t.deepEqual([error, error_uri], ["invalid_scope", `${service.url}/docs/errors/invalid_scope`]);
});

/** Returns every error code that the source throws. */
function thrownCodes(): string[] {
  return ["resources", "server"].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.startsWith("cli"))
      .flatMap((file) => [
        ...readFileSync(path.join(ROOT, folder, file), "utf8").matchAll(
          /(?:new Problem|super)\(\s*(?:\d{3}|[\w.]*status),\s*"(\w+)"/g,
        ),
      ])
      .map(([, code]) => code as string),
  );
}

test("an error response links to its code", async (t) => {
  const { body } = await apiAt(service.url, token).send("POST", "/v1/links", { json: { url: "ftp://x" } });
  t.is(body.type, `${service.url}/docs/errors/invalid_url`);
  t.is((await fetch(body.type)).status, 200);
});

for (const [error, fields] of Object.entries({
  invalid_client: { grant_type: "client_credentials", client_secret: "lgs_wrong" },
  unsupported_grant_type: { grant_type: "password" },
  invalid_scope: { grant_type: "client_credentials", scope: "everything" },
  invalid_grant: { grant_type: "refresh_token", refresh_token: "lgr_unknown" },
})) {
  test(`${error} links to its code`, async (t) => {
    const credentials = { client_id: app.clientId, client_secret: app.clientSecret };
    const response = await fetch(`${service.url}/oauth/token`, {
      method: "POST",
      body: new URLSearchParams({ ...credentials, ...fields }),
    });
    const body = (await response.json()) as { error: string; error_uri: string };
    t.is(body.error, error);
    t.is(body.error_uri, `${service.url}/docs/errors/${error}`);
    t.is((await fetch(body.error_uri)).status, 200);
  });
}
