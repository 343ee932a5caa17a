import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import test from "ava";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { discover } from "../../harness/clients/authorization.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({ ALLOWED_ORIGINS: "https://app.example.com" });
const anonymous = apiAt(service.url);
const reply = await anonymous.get<OpenApiDocument>("/v1/openapi.json");

const { body: document } = reply;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
);

function valuesOf(name: string, node: unknown = document): unknown[] {
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) => [
    ...(key === name ? [value] : []),
    ...valuesOf(name, value),
  ]);
}

test("the document is valid OpenAPI 3.1, and every reference resolves", async (t) => {
  t.regex(document.openapi, /^3\.1\.\d+$/);
  const validator = new Validator({ strict: false });
  const { valid, errors } = await validator.validate(structuredClone(document) as never);
  t.true(valid, JSON.stringify(errors, null, 2));
  t.notThrows(() => validator.resolveRefs());
});

test("every component is used", (t) => {
  const references = new Set(valuesOf("$ref"));
  for (const kind of ["schemas", "headers"] as const)
    for (const name of Object.keys(document.components[kind]))
      t.true(references.has(`#/components/${kind}/${name}`), name);
});

test("every operation has a unique id, a summary, and described responses", (t) => {
  t.true(operations.length >= 15);
  const names = operations.map(({ operationId }) => operationId);
  t.is(new Set(names).size, names.length);
  for (const { operationId, summary, responses, parameters } of operations) {
    t.regex(operationId, /^[a-z]+[A-Za-z]+$/);
    t.truthy(summary);
    for (const [status, response] of Object.entries(responses)) t.truthy(response.description, status);
    for (const { name, description } of parameters) t.truthy(description, `${operationId}: ${name}`);
  }
});

test("every path parameter is declared", (t) => {
  for (const { path, operationId, parameters } of operations) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name as string, true]);
    const declared = parameters.filter(({ in: place }) => place === "path");
    const found = declared.map(({ name, required }) => [name, required]);
    t.deepEqual(found, inPath, operationId);
  }
});

test("every example matches its schema", async (t) => {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const { default: formats } = await import("ajv-formats");
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addSchema(document, "document");
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    const validate = ajv.compile({ $ref: `document#/components/schemas/${name}` });
    const { examples = [] } = schema as { examples?: unknown[] };
    t.true(examples.length > 0, `${name} has no example`);
    for (const example of examples) t.true(validate(example), `${name}: ${ajv.errorsText(validate.errors)}`);
  }
});

test("responses allow additional fields, and requests do not", (t) => {
  const sent = new Set<string>(
    operations.flatMap(({ requestBody }) => (requestBody ? (valuesOf("$ref", requestBody) as string[]) : [])),
  );
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    const isSent = sent.has(`#/components/schemas/${name}`);
    if (isSent) t.is(schema.additionalProperties, false, name);
    else t.not(schema.additionalProperties, false, name);
  }
});

test("every webhook event is described with its payload", (t) => {
  type Property = { const?: string; items?: { enum: string[] } };
  const propertiesOf = (name: string) =>
    document.components.schemas[name]?.properties as Record<string, Property>;
  t.deepEqual(Object.keys(document.webhooks), propertiesOf("NewWebhook").events?.items?.enum);
  for (const [event, { post }] of Object.entries(document.webhooks)) {
    const [reference] = valuesOf("$ref", post) as string[];
    t.is(propertiesOf(reference?.split("/").at(-1) ?? "").type?.const, event);
  }
});

type Flow = { tokenUrl: string; authorizationUrl?: string; scopes: Record<string, string> };

test("the URLs of the security scheme are those of the authorization server", async (t) => {
  const { oauth2 } = document.components.securitySchemes as { oauth2: { flows: Record<string, Flow> } };
  const app = await service.createOrganization();
  const metadata = (await discover(service, app)).serverMetadata();
  for (const { tokenUrl, authorizationUrl, scopes } of Object.values(oauth2.flows)) {
    t.is(tokenUrl, metadata.token_endpoint as string);
    if (authorizationUrl) t.is(authorizationUrl, metadata.authorization_endpoint as string);
    for (const [scope, meaning] of Object.entries(scopes)) {
      t.true(metadata.scopes_supported?.includes(scope));
      t.truthy(meaning);
    }
    for (const { security } of operations)
      for (const { oauth2: needed = [] } of security) t.true(needed.every((scope) => scope in scopes));
  }
  t.truthy(oauth2.flows.clientCredentials);
});

test("the document is public: no token, any origin, cacheable", async (t) => {
  t.is(reply.headers.get("content-type"), "application/json; charset=utf-8");
  t.is(reply.headers.get("cache-control"), "public, max-age=300");
  for (const origin of ["https://app.example.com", "https://anyone.example", "null"]) {
    const { status, headers } = await anonymous.get("/v1/openapi.json", { origin });
    t.is(status, 200);
    t.is(headers.get("access-control-allow-origin"), "*", origin);
    t.false(headers.has("access-control-allow-credentials"));
  }
  t.is((await apiAt(service.url, "lga_unknown").get("/v1/openapi.json")).status, 200);
  t.deepEqual(document.paths["/v1/openapi.json"]?.get?.security, []);
});

test("/openapi.json leads to the document, from pages of any origin", async (t) => {
  const { status, headers } = await anonymous.get("/openapi.json");
  t.is(status, 308);
  t.is(headers.get("location"), "/v1/openapi.json");
  t.is(headers.get("access-control-allow-origin"), "*");
});

test("URLs in requests have the format uri", (t) => {
  const formatOf = (schema: string, field: string) => {
    const properties = document.components.schemas[schema]?.properties as Record<string, JsonSchema>;
    const { format, anyOf } = properties[field] ?? {};
    return format ?? (anyOf?.[0] as JsonSchema | undefined)?.format;
  };
  for (const schema of ["NewLink", "LinkChanges"])
    for (const field of ["url", "fallback_url"]) t.is(formatOf(schema, field), "uri", `${schema} ${field}`);
});

test("PATCH accepts a merge patch, and says that it replaces the metadata otherwise", (t) => {
  const { requestBody, description } = document.paths["/v1/links/{id}"]?.patch ?? {};
  t.deepEqual(Object.keys(requestBody?.content ?? {}), ["application/json", "application/merge-patch+json"]);
  t.regex(description ?? "", /`metadata` are replaced as a whole/);
});

test("routes are registered only by the declarations that the document is built from", (t) => {
  const folder = path.join(ROOT, "resources");
  const ROUTE = /\brouter\.(get|post|put|patch|del|delete|all|use|register)\(/i;
  const files = globSync("**/*.ts", { cwd: folder });
  const routing = files.filter((file) => ROUTE.test(readFileSync(path.join(folder, file), "utf8")));
  t.deepEqual(routing, ["openapi/operation.ts"]);
});
