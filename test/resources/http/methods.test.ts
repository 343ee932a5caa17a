import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const { id, slug } = await api.createLink();

test.after.always(() => service.close());

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "LOCK"];
const routes: [path: string, allowed: string[]][] = [
  ["/v1/links", ["GET", "HEAD", "POST", "OPTIONS"]],
  [`/v1/links/${id}`, ["GET", "HEAD", "PATCH", "DELETE", "OPTIONS"]],
  ["/v1/organization", ["GET", "HEAD", "OPTIONS"]],
];

for (const [path, allowed] of routes) {
  const template = path.replace(id, "{id}");
  for (const method of METHODS.filter((name) => !allowed.includes(name))) {
    for (const [who, headers] of [
      ["with a token", ["authorization", `Bearer ${token}`]],
      ["without a token", []],
    ] as const) {
      test(`${method} ${template} ${who} is rejected with 405 and the allowed methods`, async (t) => {
        const reply = await sendRaw(service.url, path, {
          method,
          headers: ["x-probe", "echo me", ...headers],
        });
        t.is(reply.status, 405);
        t.deepEqual(reply.headers.allow?.split(", ").sort(), [...allowed].sort());
        t.is(JSON.parse(reply.text).code, "method_not_allowed");
        t.false(reply.text.includes("echo me"));
      });
    }
  }

  test(`OPTIONS ${template} lists the methods and does nothing`, async (t) => {
    const { status, headers, text } = await api.send("OPTIONS", path);
    t.is(status, 204);
    t.deepEqual(headers.get("allow")?.split(", ").sort(), [...allowed].sort());
    const types = "application/merge-patch+json, application/json";
    t.is(headers.get("accept-patch"), allowed.includes("PATCH") ? types : null);
    t.is(text, "");
    t.is((await api.get(`/v1/links/${id}`)).status, 200);
  });
}

for (const header of ["x-http-method-override", "x-http-method", "x-method-override"]) {
  test(`${header} does not change the method`, async (t) => {
    const other = await api.createLink();
    await api.send("GET", `/v1/links/${other.id}?_method=DELETE`, { headers: { [header]: "DELETE" } });
    await api.send("POST", `/v1/links/${other.id}?_method=DELETE`, { headers: { [header]: "DELETE" } });
    t.is((await api.get(`/v1/links/${other.id}`)).status, 200);
  });
}

const unknown = [
  "/v1",
  "/v1/",
  "/v1/links/",
  "/v1//links",
  "/v1/Links",
  "/v1/link",
  "/v1/links/x/y",
  "/v1/%6cinks/x/y",
  "/v1/.env",
  "/v1/links%2f",
  "/v1/links/%zz/x",
];
for (const path of unknown) {
  test(`${path} is not found, with or without a token`, async (t) => {
    for (const method of ["GET", "POST", "DELETE"]) {
      for (const headers of [[], ["authorization", `Bearer ${token}`]]) {
        const reply = await sendRaw(service.url, path, { method, headers });
        t.is(reply.status, 404, method);
        t.is(reply.headers["content-type"], "application/problem+json");
        t.is(JSON.parse(reply.text).code, "not_found");
      }
    }
  });
}

const oddIds = [
  "%00",
  "%zz",
  "%ff",
  "%ED%A0%80",
  "x".repeat(5000),
  "..%2forganization",
  "lnk_%25",
  "'%20or%201=1--",
  `${id}%20`,
  `${id}%00`,
];
for (const odd of oddIds) {
  test(`/v1/links/${odd.replace(id, "{id}").slice(0, 30)} is not found`, async (t) => {
    for (const method of ["GET", "DELETE"]) {
      const reply = await sendRaw(service.url, `/v1/links/${odd}`, {
        method,
        headers: ["authorization", `Bearer ${token}`],
      });
      t.is(reply.status, 404, `${method} ${reply.text}`);
      t.is(JSON.parse(reply.text).code, "not_found");
    }
  });
}

test("ids are case-sensitive", async (t) => {
  isMissing(t, await api.get(`/v1/links/${id.toLowerCase()}`));
});

for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
  test(`${method} on a short link is rejected with 405, and not counted`, async (t) => {
    const reply = await sendRaw(service.url, `/${slug}`, { method });
    t.is(reply.status, 405);
    t.is(reply.headers.allow, "GET, HEAD, OPTIONS");
    t.is(reply.headers.location, undefined);
    t.is((await api.get(`/v1/links/${id}`)).body.clicks, 0);
  });
}

for (const path of ["/", "/v1/links", "/mcp", "/oauth/token", "/{slug}", "/healthz", "/readyz"]) {
  test(`TRACE ${path} is rejected and echoes nothing`, async (t) => {
    const reply = await sendRaw(service.url, path.replace("{slug}", slug), {
      method: "TRACE",
      headers: ["authorization", `Bearer ${token}`, "cookie", "secret=1"],
    });
    t.true(reply.status >= 400 && reply.status < 500, `${reply.status}`);
    t.false(reply.text.includes(token) || reply.text.includes("secret=1"));
  });
}

test("404 and 405 responses of the API are complete problems", async (t) => {
  isProblem(t, await api.send("PUT", "/v1/links"), { status: 405, code: "method_not_allowed" });
  isMissing(t, await api.get("/v1/nothing"));
});
