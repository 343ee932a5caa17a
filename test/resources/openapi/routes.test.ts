import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { contractOf } from "../../harness/clients/contract.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const { document } = await contractOf(service.url);
test.after.always(() => service.close());

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Returns the documented methods of a path. `bulk` could also be an id. */
function methodsOf(requestPath: string): string[] {
  return Object.entries(document.paths)
    .filter(([template]) => new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(requestPath))
    .flatMap(([, operations]) => Object.keys(operations).map((method) => method.toUpperCase()));
}

for (const template of Object.keys(document.paths)) {
  const requestPath = template.replaceAll(/\{\w+\}/g, "unknown");
  const declared = methodsOf(requestPath);
  const allowed = [...declared, ...(declared.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort();

  test(`${template} supports exactly the documented methods`, async (t) => {
    for (const method of METHODS) {
      const reply = await api.send(method, requestPath);
      if (declared.includes(method)) {
        t.not(reply.status, 405, method);
        // A 404 may only be that of the unknown id.
        if (reply.status === 404) t.not(reply.body.detail, "URL not found.", method);
      } else {
        isProblem(t, reply, { status: 405, code: "method_not_allowed" });
        t.deepEqual(reply.headers.get("allow")?.split(", ").sort(), allowed);
      }
    }
    const { headers } = await api.send("OPTIONS", requestPath);
    t.deepEqual(headers.get("allow")?.split(", ").sort(), allowed);
  });
}

test("routes are registered only by the declarations that the document is built from", (t) => {
  const folder = path.join(ROOT, "resources");
  const routing = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => ({ file, source: readFileSync(path.join(folder, file), "utf8") }))
    .filter(({ source }) => /\brouter\.(get|post|put|patch|del|delete|all|use|register)\(/i.test(source));
  t.deepEqual(
    routing.map(({ file }) => file),
    ["openapi/operation.ts"],
  );
});
