import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { apiAt, isProblem } from "../../harness/api.ts";
import { contractOf } from "../../harness/contract.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const { document } = await contractOf(service.url);
test.after.always(() => service.close());

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** The methods at an address; `bulk` could be an id as well. */
function methodsOf(address: string): string[] {
  return Object.entries(document.paths)
    .filter(([template]) => new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(address))
    .flatMap(([, operations]) => Object.keys(operations).map((method) => method.toUpperCase()));
}

for (const template of Object.keys(document.paths)) {
  const address = template.replaceAll(/\{\w+\}/g, "unknown");
  const declared = methodsOf(address);
  const allowed = [...declared, ...(declared.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort();

  test(`${template} has the methods of the document and no others`, async (t) => {
    for (const method of METHODS) {
      const reply = await api.send(method, address);
      if (declared.includes(method)) {
        t.not(reply.status, 405, method);
        // Nothing is at an id that is unknown, but the operation is.
        if (reply.status === 404) t.not(reply.body.detail, "There is no such address.", method);
      } else {
        isProblem(t, reply, { status: 405, code: "method_not_allowed" });
        t.deepEqual(reply.headers.get("allow")?.split(", ").sort(), allowed);
      }
    }
    const { headers } = await api.send("OPTIONS", address);
    t.deepEqual(headers.get("allow")?.split(", ").sort(), allowed);
  });
}

test("no route is made but by the declaration that the document is written from", (t) => {
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
