import test from "ava";
import { shareApi } from "../../harness/clients/authorization.ts";
import { contractOf } from "../../harness/clients/contract.ts";
import { sendRaw } from "../../harness/clients/raw.ts";

const { service, token, api } = await shareApi();
const { id } = await api.createLink();

const { document } = await contractOf(service.url);
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "LOCK"];
const PATCH_TYPES = "application/merge-patch+json, application/json";

/** Returns the documented methods of a path. `bulk` could also be an ID. */
function methodsOf(path: string): string[] {
  return Object.entries(document.paths)
    .filter(([template]) => new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path))
    .flatMap(([, operations]) => Object.keys(operations).map((method) => method.toUpperCase()));
}

test("each path supports exactly the documented methods, and refuses others with or without a token", async (t) => {
  for (const template of Object.keys(document.paths)) {
    const path = template.replaceAll(/\{\w+\}/g, "unknown");
    const declared = [...new Set(methodsOf(path))];
    const allowed = [...declared, ...(declared.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort();
    for (const method of METHODS) {
      if (allowed.includes(method)) {
        const reply = await api.send(method, path);
        t.not(reply.status, 405, `${method} ${template}`);
        // A 404 may only be that of the unknown ID.
        if (reply.status === 404 && method !== "HEAD") t.not(reply.body.detail, "URL not found.");
        continue;
      }
      for (const headers of [["authorization", `Bearer ${token}`], []]) {
        const sent = { method, headers: ["x-probe", "echo me", ...headers] };
        const refused = await sendRaw(service.url, path, sent);
        t.is(refused.status, 405, `${method} ${template}`);
        t.deepEqual(refused.headers.allow?.split(", ").sort(), allowed);
        if (method !== "HEAD") t.is(JSON.parse(refused.text).code, "method_not_allowed");
        t.false(refused.text.includes("echo me"));
      }
    }
    const { status, headers, text } = await api.send("OPTIONS", path);
    t.deepEqual([status, text], [204, ""]);
    t.deepEqual(headers.get("allow")?.split(", ").sort(), allowed);
    t.is(headers.get("accept-patch"), declared.includes("PATCH") ? PATCH_TYPES : null);
  }
});

test("no header or parameter changes the method, and OPTIONS changes nothing", async (t) => {
  for (const header of ["x-http-method-override", "x-http-method", "x-method-override"]) {
    for (const method of ["GET", "POST", "OPTIONS"])
      await api.send(method, `/v1/links/${id}?_method=DELETE`, { headers: { [header]: "DELETE" } });
    t.is((await api.get(`/v1/links/${id}`)).status, 200);
  }
});

const unknown = [
  ...["/v1", "/v1/", "/v1/links/", "/v1//links", "/v1/Links", "/v1/link", "/v1/links/x/y"],
  ...["/v1/%6cinks/x/y", "/v1/.env", "/v1/links%2f", "/v1/links/%zz/x"],
];
test("an unknown path is not found, with or without a token", async (t) => {
  for (const path of unknown)
    for (const method of ["GET", "POST", "DELETE"])
      for (const headers of [[], ["authorization", `Bearer ${token}`]]) {
        const reply = await sendRaw(service.url, path, { method, headers });
        t.is(reply.status, 404, `${method} ${path}`);
        t.is(reply.headers["content-type"], "application/problem+json");
        t.is(JSON.parse(reply.text).code, "not_found");
      }
});

const oddIds = [
  ...["%00", "%zz", "%ff", "%ED%A0%80", "x".repeat(5000), "..%2forganization", "lnk_%25"],
  ...["'%20or%201=1--", `${id}%20`, `${id}%00`, id.toLowerCase()],
];
test("an odd or misspelled ID is not found", async (t) => {
  for (const odd of oddIds)
    for (const method of ["GET", "DELETE"]) {
      const headers = ["authorization", `Bearer ${token}`];
      const reply = await sendRaw(service.url, `/v1/links/${odd}`, { method, headers });
      t.is(reply.status, 404, `${method} ${odd.slice(0, 30)}`);
      t.is(JSON.parse(reply.text).code, "not_found");
    }
});
