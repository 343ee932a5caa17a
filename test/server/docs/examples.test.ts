import { execFile } from "node:child_process";
import { promisify } from "node:util";
import test from "ava";
import { parse } from "node-html-parser";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { PYTHON } from "../../harness/clients/python.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";
import { waitUntilVerified } from "../../harness/webhooks.ts";

export const stage = "long";

const run = promisify(execFile);
const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");

test.after.always(async () => {
  await service.close();
  await receiver.close();
});

/** Returns the examples of a page by the titles of their tabs, as a user copies them. */
async function examplesOf(operationId: string): Promise<Record<string, string>> {
  const address = operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const text = await (await fetch(`${service.url}/docs/api/${address}`)).text();
  const html = parse(text, { blockTextElements: {} });
  const [tabs] = html.querySelectorAll(".tabs");
  const titles = tabs?.querySelectorAll("label").map(({ text }) => text) ?? [];
  const codes = tabs?.querySelectorAll("code").map(({ text }) => text) ?? [];
  return Object.fromEntries(titles.map((title, index) => [title, codes[index] ?? ""]));
}

/** How an example runs so that it fails if its request does. */
const PROGRAMS: Record<string, ((code: string) => [program: string, ...args: string[]]) | undefined> = {
  curl: (code) => ["sh", "-c", code.replace("curl ", "curl -sS --fail-with-body ")],
  TypeScript: (code) => [
    process.execPath,
    "--input-type=module-typescript",
    "-e",
    `${code}\nif (!response.ok) throw new Error(String(response.status));`,
  ],
  Python:
    PYTHON === undefined
      ? undefined
      : (code) => [PYTHON as string, "-c", `${code}\nresponse.raise_for_status()`],
};

for (const [path, operations] of Object.entries(document.paths)) {
  for (const { operationId } of Object.values(operations)) {
    for (const [language, program] of Object.entries(PROGRAMS)) {
      const title = `the ${language} example of ${operationId} succeeds`;
      if (!program) {
        skip(title, "no Python with requests is installed");
        continue;
      }
      test(title, async (t) => {
        const token = await service.token(await service.createOrganization());
        const api = apiAt(service.url, token);
        let code = (await examplesOf(operationId))[language] ?? "";
        // The ids on the page are examples; no resources have them.
        if (path.startsWith("/v1/links/by-external-id/"))
          await api.createLink({ external_id: "spring-sale" });
        if (path.startsWith("/v1/links/{id}")) code = code.replace(/lnk_\w+/, (await api.createLink()).id);
        if (path.startsWith("/v1/webhooks/{id}")) {
          const { body: webhook } = await api.send<{ id: string }>("POST", "/v1/webhooks", {
            json: { url: receiver.url("/"), events: ["webhook.test"] },
          });
          await waitUntilVerified(api, `/v1/webhooks/${webhook.id}`);
          const { body: delivery } = await api.send<{ id: string }>(
            "POST",
            `/v1/webhooks/${webhook.id}/test`,
          );
          code = code.replace(/whk_\w+/, webhook.id).replace(/evt_\w+/, delivery.id);
        }
        const [file, ...args] = program(code);
        await t.notThrowsAsync(run(file, args, { env: { ...process.env, TOKEN: token } }));
        t.true(code.includes(service.url));
      });
    }
  }
}
