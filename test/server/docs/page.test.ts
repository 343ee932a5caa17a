import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { parse } from "node-html-parser";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { PROBLEMS } from "../../../resources/problems.ts";
import { apiAt } from "../../harness/api.ts";
import { connectMcp } from "../../harness/mcp.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const token = await service.token(await service.createOrganization());
const answer = await fetch(`${service.url}/docs`);
const text = await answer.text();
const html = parse(text, { blockTextElements: { script: true } });
const ids = html.querySelectorAll("[id]").map((element) => element.id);
const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");
const operations = Object.entries(document.paths).flatMap(([address, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ address, method, ...operation })),
);
test.after.always(() => service.close());

test("the page is for everybody, and caches may keep it for a while", async (t) => {
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "text/html; charset=utf-8");
  t.is(answer.headers.get("cache-control"), "public, max-age=300");
  t.false(answer.headers.has("set-cookie"));
  const tag = answer.headers.get("etag") as string;
  const again = await fetch(`${service.url}/docs`, { headers: { "if-none-match": tag } });
  t.is(again.status, 304);
  const head = await fetch(`${service.url}/docs`, { method: "HEAD" });
  t.is(head.status, 200);
  t.is(head.headers.get("content-length"), String(Buffer.byteLength(text)));
});

test("the page loads nothing from elsewhere and runs no script", (t) => {
  t.is(html.querySelectorAll("script, iframe, object, embed, form").length, 0);
  for (const element of html.querySelectorAll("link, img")) {
    const address = element.getAttribute("href") ?? element.getAttribute("src") ?? "";
    t.regex(address, /^\/assets\//);
  }
  t.regex(answer.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  t.notRegex(text, / (style|on\w+)="/);
});

for (const other of ["/docs/x", "/Docs"]) {
  test(`${other} is not the page`, async (t) => {
    t.is((await fetch(service.url + other)).status, 404);
  });
}

test("every operation is there, with its call, its scopes, its fields and its answers", (t) => {
  for (const {
    operationId,
    address,
    method,
    summary,
    security,
    parameters,
    requestBody,
    responses,
  } of operations) {
    const section = html.querySelector(`#${operationId}`);
    t.is(section?.querySelector("h3")?.text, summary);
    t.is(section?.querySelector(".call")?.text, `${method.toUpperCase()} ${address}`);
    const shown = section?.text ?? "";
    for (const { oauth2 } of security) for (const scope of oauth2) t.true(shown.includes(scope), scope);
    const names = section?.querySelectorAll("td .name").map((name) => name.text) ?? [];
    for (const { name } of parameters) t.true(names.includes(name), `${operationId}: ${name}`);
    const { $ref = "" } = (requestBody?.content["application/json"]?.schema ?? {}) as { $ref?: string };
    const sent = document.components.schemas[$ref.split("/").at(-1) as string];
    for (const name of Object.keys(sent?.properties ?? {}))
      t.true(names.includes(name), `${operationId}: ${name}`);
    const statuses = section?.querySelectorAll(".answers dt").map((status) => status.text);
    t.deepEqual(statuses, Object.keys(responses), operationId);
    t.true(section?.querySelector("pre")?.text.includes("curl "));
  }
});

test("every object of the document is there", (t) => {
  for (const [name, { properties = {} }] of Object.entries(document.components.schemas)) {
    const names = html.querySelectorAll(`#${name} td .name`).map((field) => field.text);
    for (const field of Object.keys(properties)) t.true(names.includes(field), `${name}: ${field}`);
  }
});

test("every event is there, with a link to the body that receivers get", (t) => {
  const rows = html.querySelectorAll("#receiving tbody tr");
  t.deepEqual(
    rows.map((row) => row.querySelector("code")?.text),
    Object.keys(document.webhooks),
  );
  for (const row of rows) t.regex(row.querySelector("a")?.getAttribute("href") ?? "", /^#[A-Z]/);
});

test("every tool of MCP is there", async (t) => {
  const client = await connectMcp(`${service.url}/mcp`, token);
  const { tools } = await client.listTools();
  t.true(tools.length > 10);
  for (const { name, title = "?", inputSchema } of tools) {
    const section = html.querySelector(`#tool-${name}`);
    t.true(section?.text.includes(title), name);
    const names = section?.querySelectorAll("td .name").map((field) => field.text) ?? [];
    for (const field of Object.keys(inputSchema.properties ?? {}))
      t.true(names.includes(field), `${name}: ${field}`);
  }
  await client.close();
});

test("no id is there twice, and every link within the page leads somewhere", (t) => {
  t.is(new Set(ids).size, ids.length);
  const links = html
    .querySelectorAll('a[href^="#"]')
    .map((link) => link.getAttribute("href")?.slice(1) ?? "");
  t.true(links.length > 50);
  for (const link of links) t.true(ids.includes(link), link);
});

test("the type of every problem leads to its explanation", (t) => {
  const codes = new Set<string>(Object.keys(PROBLEMS));
  for (const { responses } of operations)
    for (const { content = {} } of Object.values(responses)) {
      const { allOf = [] } = (content["application/problem+json"]?.schema ?? {}) as {
        allOf?: { properties?: { code: { enum: string[] } } }[];
      };
      for (const { properties } of allOf) for (const code of properties?.code.enum ?? []) codes.add(code);
    }
  for (const code of thrownCodes()) codes.add(code);
  t.true(codes.size > 50);
  t.deepEqual(
    [...codes].filter((code) => !ids.includes(code)),
    [],
  );
});

/** Every code that the sources name where they refuse something. */
function thrownCodes(): string[] {
  return ["resources", "server"].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.startsWith("commands"))
      .flatMap((file) => [
        ...readFileSync(path.join(ROOT, folder, file), "utf8").matchAll(
          /(?:new Problem|super)\(\s*(?:\d{3}|[\w.]*status),\s*"(\w+)"/g,
        ),
      ])
      .map(([, code]) => code as string),
  );
}

test("what is said of the errors is what is answered", async (t) => {
  const { body } = await apiAt(service.url, token).send("POST", "/v1/links", { json: { url: "ftp://x" } });
  t.is(body.type, `${service.url}/docs#invalid_url`);
  t.true(ids.includes("invalid_url"));
});
