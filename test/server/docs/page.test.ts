import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { parse } from "node-html-parser";
import { PROBLEM_CODES } from "../../../resources/http/problem-codes.ts";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { connectMcp } from "../../harness/clients/mcp.ts";
import { ROOT } from "../../harness/program.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { waitUntilVerified } from "../../harness/webhooks.ts";

const run = promisify(execFile);
const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
const app = await service.createOrganization();
const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");

const token = await service.token(await service.createOrganization());
const response = await fetch(`${service.url}/docs`);
const text = await response.text();

test.after.always(async () => {
  await service.close();
  await receiver.close();
});

/** Returns a code block as a user copies it. */
function listing(name: string): string {
  return html.querySelector(`[aria-label="${name}"]`)?.text ?? "";
}

/** Runs a script in a shell, and returns the status and body of its request. */
async function paste(script: string, env: Record<string, string>) {
  const { stdout } = await run("sh", ["-c", script.replace("curl ", 'curl -s -w "\\n%{http_code}" ')], {
    env: { ...process.env, ...env },
  });
  const [status = "", ...lines] = stdout.split("\n").reverse();
  return { status, body: lines.reverse().join("\n") };
}

test("the token example gets a token that the other examples can use", async (t) => {
  const script = `${listing("Get a token")}; echo "$TOKEN"`;
  const { stdout } = await run("sh", ["-c", script], {
    env: { ...process.env, CLIENT_ID: app.clientId, CLIENT_SECRET: app.clientSecret },
  });
  const api = apiAt(service.url, stdout.trim());
  t.is((await api.get("/v1/organization")).status, 200);
});

for (const [path, operations] of Object.entries(document.paths)) {
  for (const { summary, operationId, responses } of Object.values(operations)) {
    test(`the example of ${operationId} succeeds`, async (t) => {
      const own = await service.createOrganization();
      const token = await service.token(own);
      const api = apiAt(service.url, token);
      let script = listing(`Example: ${summary}`);
      t.regex(script, /^curl /);
      // The ids on the page are examples; no resources have them.
      if (path.startsWith("/v1/links/{id}")) {
        script = script.replace(/lnk_\w+/, (await api.createLink()).id);
      }
      if (path.startsWith("/v1/webhooks/{id}")) {
        const { body: webhook } = await api.send<{ id: string }>("POST", "/v1/webhooks", {
          json: { url: receiver.url("/"), events: ["webhook.test"] },
        });
        await waitUntilVerified(api, `/v1/webhooks/${webhook.id}`);
        const { body: delivery } = await api.send<{ id: string }>("POST", `/v1/webhooks/${webhook.id}/test`);
        script = script.replace(/whk_\w+/, webhook.id).replace(/evt_\w+/, delivery.id);
      }
      const { status, body } = await paste(script, { TOKEN: token });
      const [success] = Object.keys(responses).filter((one) => one.startsWith("2"));
      t.true(
        Object.keys(responses).includes(status) && status.startsWith("2"),
        `${success}: ${status} ${body}`,
      );
    });
  }
}

test("the pagination example returns the next page", async (t) => {
  const own = await service.createOrganization();
  const token = await service.token(own);
  const api = apiAt(service.url, token);
  await api.createLink();
  await api.createLink();
  const { body: page } = await api.get<{ next_cursor: string }>("/v1/links?limit=1");
  const { status } = await paste(listing("Next page"), { TOKEN: token, CURSOR: page.next_cursor });
  t.is(status, "200");
});

const html = parse(text, { blockTextElements: { script: true } });
const ids = html.querySelectorAll("[id]").map((element) => element.id);
const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ route, method, ...operation })),
);

test("the page is public and cacheable", async (t) => {
  t.is(response.status, 200);
  t.is(response.headers.get("content-type"), "text/html; charset=utf-8");
  t.is(response.headers.get("cache-control"), "public, max-age=300");
  t.false(response.headers.has("set-cookie"));
  const tag = response.headers.get("etag") as string;
  const again = await fetch(`${service.url}/docs`, { headers: { "if-none-match": tag } });
  t.is(again.status, 304);
  const head = await fetch(`${service.url}/docs`, {
    method: "HEAD",
    headers: { "accept-encoding": "identity" },
  });
  t.is(head.status, 200);
  t.is(head.headers.get("content-length"), String(Buffer.byteLength(text)));
});

test("the page loads nothing from other origins and runs no scripts", (t) => {
  t.is(html.querySelectorAll("script, iframe, object, embed, form").length, 0);
  for (const element of html.querySelectorAll("link, img")) {
    const url = element.getAttribute("href") ?? element.getAttribute("src") ?? "";
    t.regex(url, /^\/assets\//);
  }
  t.regex(response.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  t.notRegex(text, / (style|on\w+)="/);
});

for (const other of ["/docs/x", "/Docs"]) {
  test(`${other} returns 404`, async (t) => {
    t.is((await fetch(service.url + other)).status, 404);
  });
}

test("every operation is documented with its request, scopes, fields and responses", (t) => {
  for (const {
    operationId,
    route,
    method,
    summary,
    security,
    parameters,
    requestBody,
    responses,
  } of operations) {
    const section = html.querySelector(`#${operationId}`);
    t.is(section?.querySelector("h3")?.text, summary);
    t.is(section?.querySelector(".call")?.text, `${method.toUpperCase()} ${route}`);
    const shown = section?.text ?? "";
    for (const { oauth2 } of security) for (const scope of oauth2) t.true(shown.includes(scope), scope);
    const names = section?.querySelectorAll("td .name").map((name) => name.text) ?? [];
    for (const { name } of parameters) t.true(names.includes(name), `${operationId}: ${name}`);
    const { $ref = "" } = (requestBody?.content["application/json"]?.schema ?? {}) as { $ref?: string };
    const sent = document.components.schemas[$ref.split("/").at(-1) as string];
    for (const name of Object.keys(sent?.properties ?? {}))
      t.true(names.includes(name), `${operationId}: ${name}`);
    const statuses = section?.querySelectorAll(".responses dt").map((status) => status.text);
    t.deepEqual(statuses, Object.keys(responses), operationId);
    t.true(section?.querySelector("pre")?.text.includes("curl "));
  }
});

test("every object of the OpenAPI document is documented", (t) => {
  for (const [name, { properties = {} }] of Object.entries(document.components.schemas)) {
    const names = html.querySelectorAll(`#${name} td .name`).map((field) => field.text);
    for (const field of Object.keys(properties)) t.true(names.includes(field), `${name}: ${field}`);
  }
});

test("every event is documented, with a link to its body", (t) => {
  const rows = html.querySelectorAll("#receiving tbody tr");
  t.deepEqual(
    rows.map((row) => row.querySelector("code")?.text),
    Object.keys(document.webhooks),
  );
  for (const row of rows) t.regex(row.querySelector("a")?.getAttribute("href") ?? "", /^#[A-Z]/);
});

test("every MCP tool is documented", async (t) => {
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

test("ids are unique, and every link within the page has a target", (t) => {
  t.is(new Set(ids).size, ids.length);
  const links = html
    .querySelectorAll('a[href^="#"]')
    .map((link) => link.getAttribute("href")?.slice(1) ?? "");
  t.true(links.length > 50);
  for (const link of links) t.true(ids.includes(link), link);
});

test("every error code is documented at its type", (t) => {
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
  t.deepEqual(
    [...codes].filter((code) => !ids.includes(code)),
    [],
  );
});

test("every error code of the API is documented with its status", (t) => {
  for (const [code, { status }] of Object.entries(PROBLEM_CODES)) {
    const row = html.querySelector(`[id="${code}"]`)?.closest("tr");
    t.is(row?.querySelectorAll("td, th")[1]?.text.trim(), String(status), code);
  }
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
  t.is(body.type, `${service.url}/docs#invalid_url`);
  t.true(ids.includes("invalid_url"));
});
