import { execFile } from "node:child_process";
import { promisify } from "node:util";
import test from "ava";
import { parse } from "node-html-parser";
import type { DomainView } from "../../../resources/domains/schema.ts";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, startReceiver } from "../../harness/webhooks.ts";

export const stage = "long";

const run = promisify(execFile);
const receiver = await startReceiver();
const records = new Map<string, string>();
const service = await startTestService(
  { WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host },
  {},
  { lingerMs: 0, resolveTxt: async (name) => [[records.get(name) ?? ""]] },
);
const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");

/** Returns the examples of a page by the titles of their tabs, as a user copies them. */
async function examplesOf(operationId: string): Promise<Record<string, string>> {
  const address = operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const text = await (await fetch(`${service.url}/docs/api/${address}`)).text();
  const html = parse(text, { blockTextElements: {} });
  const titles = html.querySelectorAll(".switch label").map(({ text }) => text);
  const codes = html.querySelectorAll(".examples code").map(({ text }) => text);
  return Object.fromEntries(["curl", ...titles.slice(1)].map((title, index) => [title, codes[index] ?? ""]));
}

/** How an example runs so that it fails if its request does. */
const PROGRAMS: Record<string, (code: string) => [program: string, ...args: string[]]> = {
  curl: (code) => ["sh", "-c", code.replace("curl ", "curl -sS --fail-with-body ")],
  // The package of the client has to be built first.
  TypeScript: (code) => [
    process.execPath,
    "--input-type=module-typescript",
    "-e",
    code.replace("@linkgate/client", `${ROOT}client/src/index.ts`),
  ],
};

for (const [path, operations] of Object.entries(document.paths))
  for (const { operationId, security } of Object.values(operations))
    for (const [language, program] of Object.entries(PROGRAMS)) {
      // The client has the operations that need a token.
      if (language === "TypeScript" && security.length === 0) continue;
      test(`the ${language} example of ${operationId} succeeds`, async (t) => {
        const token = await service.token(await service.createOrganization());
        const api = apiAt(service.url, token);
        let code = (await examplesOf(operationId))[language] ?? "";
        // The ids on the page are examples; no resources have them.
        if (path.startsWith("/v1/links/by-external-id/"))
          await api.createLink({ external_id: "spring-sale" });
        if (path.startsWith("/v1/links/{id}")) code = code.replace(/lnk_\w+/, (await api.createLink()).id);
        if (path.startsWith("/v1/domains/{id}")) {
          const json = { host: `${operationId}-${language}.example.com` };
          const { body: domain } = await api.send<DomainView>("POST", "/v1/domains", { json });
          records.set(domain.dns.name, domain.dns.value);
          code = code.replace(/dom_\w+/, domain.id);
        }
        if (path.startsWith("/v1/webhooks/{id}")) {
          const webhook = await createWebhook(api, receiver.url("/"), ["webhook.test"]);
          const { body: sent } = await api.send<{ id: string }>("POST", `/v1/webhooks/${webhook.id}/test`);
          code = code.replace(/whk_\w+/, webhook.id).replace(/evt_\w+/, sent.id);
        }
        const [file, ...args] = program(code);
        await t.notThrowsAsync(run(file, args, { env: { ...process.env, TOKEN: token } }));
        t.true(code.includes(service.url));
      });
    }
