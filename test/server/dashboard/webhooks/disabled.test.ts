import test from "ava";
import { browserOf, createTeam } from "../../harness/dashboard.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { type NewWebhookBody, until, type WebhookBody } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => Promise.all([service.close(), receiver.close()]));

test("a webhook that the service disables says why on its page, in the list and in the audit log", async (t) => {
  const { base, owner } = await createTeam(service);
  const { api } = owner;
  receiver.answer("/gone", (response) => response.writeHead(410).end());
  const url = receiver.url("/gone");
  const { body: webhook } = await api.send<NewWebhookBody>("POST", `${base}/webhooks`, {
    json: { url, events: ["webhook.test"] },
  });
  const path = `${base}/webhooks/${webhook.id}`;
  await api.send("POST", `${path}/test`);
  await until(async () => !(await api.get<WebhookBody>(path)).body.enabled || undefined);

  const { person } = await browserOf(service, owner);
  const open = async (address: string) => (await person.open(service.url + address)).text;
  t.regex(await open(path), /The service disabled this webhook: The receiver answered 410 Gone\./);
  t.regex(await open(`${base}/webhooks`), /Disabled<.*The receiver answered 410 Gone/s);
  t.regex(
    await open(`${base}/audit`),
    /switched the webhook http\S+gone off: The receiver answered 410 Gone\./,
  );

  await api.send("PATCH", path, { json: { enabled: true } });
  t.notRegex(await open(path), /disabled this webhook/, "who enables it has seen it");
});
