import { Validator } from "@seriousme/openapi-schema-validator";
import test from "ava";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { apiAt, isProblem } from "../harness/clients/api.ts";
import { createTeam } from "../harness/clients/dashboard.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const team = await createTeam(service);
const anonymous = apiAt(service.url);
const { body: document, headers } = await anonymous.get<OpenApiDocument>("/dashboard/openapi.json");
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    path,
    method: method.toUpperCase(),
    ...operation,
  })),
);

test("the document of the management API is valid OpenAPI 3.1, and needs no sign-in", async (t) => {
  const validator = new Validator({ strict: false });
  const { valid, errors } = await validator.validate(structuredClone(document) as never);
  t.true(valid, JSON.stringify(errors, null, 2));
  t.notThrows(() => validator.resolveRefs());
  t.is(headers.get("access-control-allow-origin"), "*");
});

test("every operation has a unique id, a summary, and a description of each parameter", (t) => {
  const ids = operations.map(({ operationId }) => operationId);
  t.is(new Set(ids).size, ids.length);
  for (const { operationId, summary, tags, parameters } of operations) {
    t.regex(operationId, /^[a-z]+[A-Za-z]+$/);
    t.truthy(summary);
    t.truthy(document.tags && tags[0]);
    for (const { name, description } of parameters) t.truthy(description, `${operationId}: ${name}`);
  }
});

test("every operation requires a signed-in user, except those to sign in", async (t) => {
  for (const { path, method, security } of operations) {
    if (security.length === 0) t.true(path.startsWith("/auth/"), path);
    else {
      const options = method === "GET" ? {} : { json: {} };
      const reply = await anonymous.send(method, path.replaceAll(/\{\w+\}/g, "unknown"), options);
      isProblem(t, reply, { status: 401, code: "sign_in_required" });
    }
  }
});

test("a repeated POST with the same idempotency key gets the first response, but never a secret, and changes nothing", async (t) => {
  const { api } = team.owner;
  const send = (path: string, json: object) =>
    api.send("POST", `${team.base}/client/${path}`, { json, headers: { "idempotency-key": path } });
  const add = () => send("redirect-uris", { redirect_uri: "https://app.example.com/callback" });
  const first = await add();
  t.is(first.status, 200);
  const again = await add();
  t.is(again.headers.get("idempotency-replayed"), "true");
  t.deepEqual(again.body, first.body);
  const rotate = () => send("rotate", {});
  const secretsOf = async () =>
    (await api.get<{ secrets: object[] }>(`${team.base}/client`)).body.secrets.length;
  t.is((await rotate()).status, 200);
  const before = await secretsOf();
  isProblem(t, await rotate(), { status: 409, code: "secret_shown_once" });
  t.is(await secretsOf(), before);
});

test("what hasn't changed is answered with 304", async (t) => {
  const path = `${team.base}/client/endpoints`;
  const { headers } = await team.owner.api.get(path);
  const again = await team.owner.api.get(path, { "if-none-match": headers.get("etag") ?? "" });
  t.is(again.status, 304);
  t.is(again.text, "");
});
