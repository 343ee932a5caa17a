import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { type HTMLElement, parse } from "node-html-parser";
import { PROBLEM_CODES } from "../../../resources/http/problem-codes.ts";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { ANSWERS } from "../../harness/documentation.ts";
import { ROOT } from "../../harness/program.ts";
import { postForm } from "../../harness/service.ts";

const { service, app, token } = await shareApi();
const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");
const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ route, method, ...operation })),
);

async function open(address: string): Promise<HTMLElement> {
  const response = await fetch(service.url + address);
  if (response.status !== 200) throw new Error(`${address}: ${response.status}`);
  return parse(await response.text(), { blockTextElements: { script: true } });
}

function textsOf(html: HTMLElement, selector: string): string[] {
  return html.querySelectorAll(selector).map(({ text }) => text);
}

const fieldsOf = (html: HTMLElement): string[] => textsOf(html, ".definitions td:first-child code");

async function statusOfRepeated({ url, headers }: Response): Promise<number> {
  const tag = headers.get("etag") as string;
  return (await fetch(url, { headers: { "if-none-match": tag, "accept-encoding": "br" } })).status;
}

for (const address of ["/docs", "/docs/webhooks", "/docs/api/create-link", "/docs/errors/slug_taken"])
  test(`${address} is public and cacheable`, async (t) => {
    const response = await fetch(service.url + address);
    const text = await response.text();
    t.is(response.status, 200);
    t.is(response.headers.get("content-type"), "text/html; charset=utf-8");
    t.is(response.headers.get("cache-control"), "public, max-age=300");
    t.is(response.headers.get("vary"), "Accept, Cookie, Accept-Encoding");
    t.false(response.headers.has("set-cookie"));
    t.is(await statusOfRepeated(response), 304);
    const headers = { "accept-encoding": "identity" };
    const head = await fetch(service.url + address, { method: "HEAD", headers });
    t.is(head.status, 200);
    t.is(head.headers.get("content-length"), String(Buffer.byteLength(text)));
  });

test("other addresses are 404, a trailing slash redirects, and an image has its type", async (t) => {
  const outside = ["/docs/../package.json", "/docs/%2e%2e/package.json"];
  for (const other of ["/docs/x", "/Docs", "/docs/x.md", ...outside])
    t.is((await fetch(service.url + other)).status, 404, other);
  const slashed = await fetch(`${service.url}/docs/webhooks/?x=1`, { redirect: "manual" });
  t.is(slashed.status, 308);
  t.is(slashed.headers.get("location"), "/docs/webhooks?x=1");
  const image = await fetch(`${service.url}/docs/images/analytics-light.webp`);
  t.is(image.headers.get("content-type"), "image/webp");
  t.deepEqual(Buffer.from(await image.bytes()), readFileSync(`${ROOT}docs/images/analytics-light.webp`));
});

test("every operation is documented with its request, scopes, fields and responses, and every object", async (t) => {
  const all = new Set<string>();
  for (const address of ["/docs/errors", "/docs/api/events"])
    for (const name of fieldsOf(await open(address))) all.add(name);
  for (const operation of operations) {
    const { operationId, route, method, summary, security, parameters, requestBody, responses } = operation;
    const name = operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const html = await open(`/docs/api/${name}`);
    t.is(html.querySelector("h1")?.text, summary);
    const shown = html.querySelector("main")?.text ?? "";
    t.true(shown.includes(`${method.toUpperCase()} ${route}`), operationId);
    for (const { oauth2 = [] } of security) for (const scope of oauth2) t.true(shown.includes(scope), scope);
    const names = fieldsOf(html);
    const fields = [requestBody, ...Object.values(responses)].flatMap(propertiesOf);
    for (const name of [...parameters.map(({ name }) => name), ...fields])
      t.true(names.includes(name), `${operationId}: ${name}`);
    for (const name of names) all.add(name);
    const statuses = Object.keys(responses);
    for (const status of statuses.filter((one) => Number(one) < 400))
      t.truthy(html.querySelector(`#response-${status}`), `${operationId}: ${status}`);
    const errors = textsOf(html, ".prose table:not(.definitions) tbody tr td:first-child");
    const expected = statuses.filter((one) => Number(one) >= 400);
    t.deepEqual(errors, expected, operationId);
  }
  for (const [name, { properties = {} }] of Object.entries(document.components.schemas))
    for (const field of Object.keys(properties)) t.true(all.has(field), `${name}: ${field}`);
});

function propertiesOf(body: { content?: Record<string, { schema: object }> } | undefined): string[] {
  const { $ref = "" } = (body?.content?.["application/json"]?.schema ?? {}) as { $ref?: string };
  return Object.keys(document.components.schemas[$ref.split("/").at(-1) as string]?.properties ?? {});
}

test("every error code is documented at its type, and that of the API with its status", async (t) => {
  const codes = new Set<string>([...Object.keys(PROBLEM_CODES), ...thrownCodes()]);
  for (const { responses } of operations)
    for (const { content = {} } of Object.values(responses)) {
      const { allOf = [] } = (content["application/problem+json"]?.schema ?? {}) as {
        allOf?: { properties?: { code: { enum: string[] } } }[];
      };
      for (const { properties } of allOf) for (const code of properties?.code.enum ?? []) codes.add(code);
    }
  t.true(codes.size > 50);
  for (const code of codes) {
    const html = await open(`/docs/errors/${code}`);
    t.is(html.querySelector("h1")?.text, code);
    t.is(JSON.parse(html.querySelector("pre")?.text ?? "").type, `${service.url}/docs/errors/${code}`);
  }
  const links = (await open("/docs/errors/slug_taken")).querySelectorAll(".prose ul a").join();
  for (const verb of ["create", "update", "upsert"]) t.true(links.includes(`"/docs/api/${verb}-link"`), verb);
  for (const [code, { status, next }] of Object.entries(PROBLEM_CODES)) {
    const shown = (await open(`/docs/errors/${code}`)).querySelector(".prose")?.text ?? "";
    t.true(shown.includes(`Status ${status}, API and MCP.`), code);
    t.true(shown.includes(next.replaceAll("`", "").slice(0, 20)), code);
  }
});

// RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1, RFC 7009 §2.2.1, RFC 7591
// §3.2.2, RFC 8707 §2, RFC 9126 §2.3, RFC 9396 §5, RFC 9449 §5 and §7.1, OpenID Connect Core §3.1.2.6; and the codes of
// problems with which the API refuses a caller.
const ERRORS = `
access_denied consent_required insufficient_scope interaction_required invalid_client
invalid_client_metadata invalid_dpop_proof invalid_grant invalid_redirect_uri invalid_request
invalid_request_object invalid_request_uri invalid_scope invalid_target invalid_token login_required
missing_token organization_suspended origin_not_allowed plan_required quota_exceeded rate_limited
request_not_supported request_uri_not_supported server_error slow_down temporarily_unavailable
unauthorized_client unsupported_grant_type unsupported_response_mode unsupported_response_type
unsupported_token_type use_dpop_nonce
`
  .trim()
  .split(/\s/);

test("every error code that the metrics of OAuth count is documented", async (t) => {
  for (const code of ERRORS) t.is((await open(`/docs/errors/${code}`)).querySelector("h1")?.text, code);
  const example = JSON.parse((await open("/docs/errors/invalid_scope")).querySelector("pre")?.text ?? "");
  t.like(example, { error: "invalid_scope", error_uri: `${service.url}/docs/errors/invalid_scope` });
});

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

test("an error response of the API, and of OAuth, links to its code", async (t) => {
  const { body } = await apiAt(service.url, token).send("POST", "/v1/links", { json: { url: "ftp://x" } });
  t.is(body.type, `${service.url}/docs/errors/invalid_url`);
  t.is((await fetch(body.type)).status, 200);
  const { clientId: client_id, clientSecret: client_secret } = app;
  for (const [error, fields] of Object.entries({
    invalid_client: { grant_type: "client_credentials", client_secret: "lgs_wrong" },
    unsupported_grant_type: { grant_type: "password" },
    invalid_scope: { grant_type: "client_credentials", scope: "everything" },
    invalid_grant: { grant_type: "refresh_token", refresh_token: "lgr_unknown" },
  })) {
    const response = await postForm(`${service.url}/oauth/token`, { client_id, client_secret, ...fields });
    t.like(await response.json(), { error, error_uri: `${service.url}/docs/errors/${error}` });
  }
});

async function search(query: string): Promise<{ status: number; text: string; results: string[] }> {
  const response = await fetch(`${service.url}/docs/search?${new URLSearchParams({ q: query })}`);
  const text = await response.text();
  const links = parse(text).querySelectorAll(".found a");
  return { status: response.status, text, results: links.map((link) => link.getAttribute("href") ?? "") };
}

test("each question is answered by the first result", async (t) => {
  for (const [question, answer] of Object.entries(ANSWERS)) {
    const { results } = await search(question);
    t.regex(results[0] ?? "", answer, question);
  }
});

test("any text can be searched for: nothing found is said, and markup is escaped", async (t) => {
  const { text, results } = await search("xyzzyplugh");
  t.deepEqual(results, []);
  t.regex(text, /No page matches/);
  t.notRegex((await search('"><script>alert(1)</script>')).text, /<script>/);
  for (const query of ["", "?q=", "?q=a&q=b", `?q=${"x ".repeat(3000)}`])
    t.is((await fetch(`${service.url}/docs/search${query}`)).status, 200);
});

test("the index is cacheable, and small when compressed", async (t) => {
  const response = await fetch(`${service.url}/docs/search.json`, { headers: { "accept-encoding": "br" } });
  t.is(response.headers.get("cache-control"), "public, max-age=300");
  t.is(response.headers.get("content-encoding"), "br");
  t.is(await statusOfRepeated(response), 304);
});
