import { execFile } from "node:child_process";
import { promisify } from "node:util";
import test from "ava";
import { parse } from "node-html-parser";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { waitUntilVerified } from "../../harness/webhooks.ts";

const run = promisify(execFile);
const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
const app = await service.createOrganization();
// By default, the parser treats preformatted elements as plain text.
const html = parse(await (await fetch(`${service.url}/docs`)).text(), {
  blockTextElements: { script: true },
});
const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");
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
