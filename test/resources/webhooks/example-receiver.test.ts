import { readFileSync } from "node:fs";
import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { freePort } from "../../harness/port.ts";
import { Program, ROOT, stopPrograms } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, until, waitForDelivery } from "../../harness/webhooks.ts";

const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => {
  stopPrograms();
  return service.close();
});

test("the documented receiver accepts our deliveries and rejects forged ones", async (t) => {
  const [, code = ""] = /```js\n(.*?)```/s.exec(readFileSync(`${ROOT}docs/webhooks.md`, "utf8")) ?? [];
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/hook`;
  const webhook = await createWebhook(api, url, ["link.created"]);
  const receiver = new Program(process.execPath, ["--input-type=module", "--eval", code], {
    settings: { PORT: String(port), WEBHOOK_SECRET: webhook.secret },
  });
  const send = (headers: Record<string, string>) =>
    fetch(url, { method: "POST", body: "{}", headers }).catch(() => undefined);
  await until(() => send({}));

  const { slug } = await api.createLink({ title: "schön" });
  const { id } = await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  await receiver.says(new RegExp(`^${id} link\\.created`, "m"));
  await receiver.says(new RegExp(`slug: '${slug}'`));
  const timestamp = String(Math.floor(Date.now() / 1000));
  for (const forged of [
    {},
    { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": "v1,AAAA" },
  ])
    t.is((await send(forged as Record<string, string>))?.status, 401);
  await receiver.stop();
});
