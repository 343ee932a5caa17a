import test from "ava";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { startReceiver } from "../../../harness/receiver.ts";
import { startTestService } from "../../../harness/service.ts";
import {
  type NewWebhookBody,
  until,
  type WebhookBody,
  waitUntilVerified,
} from "../../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => Promise.all([service.close(), receiver.close()]));

test("the reason for disabling a webhook automatically is on its page, in the list and in the audit log", async (t) => {
  const { base, owner } = await createTeam(service);
  const { api } = owner;
  receiver.respond("/gone", (response) => response.writeHead(410).end());
  const url = receiver.url("/gone");
  const { body: webhook } = await api.send<NewWebhookBody>("POST", `${base}/webhooks`, {
    json: { url, events: ["webhook.test"] },
  });
  const path = `${base}/webhooks/${webhook.id}`;
  await waitUntilVerified(api, path);
  await api.send("POST", `${path}/test`);
  await until(async () => !(await api.get<WebhookBody>(path)).body.enabled || undefined);

  const { browser } = await browserOf(service, owner);
  const open = async (address: string) => (await browser.open(service.url + address)).text;
  t.regex(
    await open(path),
    /This webhook was disabled automatically: The endpoint responded with 410 Gone\./,
  );
  t.regex(await open(`${base}/webhooks`), /Disabled<.*The endpoint responded with 410 Gone/s);
  t.regex(await open(`${base}/audit`), /disabled webhook http\S+…: The endpoint responded with 410 Gone\./);

  await api.send("PATCH", path, { json: { enabled: true } });
  t.notRegex(await open(path), /was disabled automatically/, "enabling clears the reason");
});
