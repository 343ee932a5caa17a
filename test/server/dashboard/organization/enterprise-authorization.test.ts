import test from "ava";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startTokenIssuer } from "../../../harness/providers/token-issuer.ts";
import { startTestService } from "../../../harness/service.ts";

const idp = await startTokenIssuer();
const service = await startTestService(providerSettings(idp.issuer));
test.after.always(async () => {
  await service.close();
  await idp.stop();
});

const PATH = "/apps/enterprise-authorization";
const ON = { json: { enabled: true } };

test("an owner turns it on and off, and the apps page says so", async (t) => {
  const { base, owner } = await createTeam(service);
  const isOn = async () =>
    (await owner.api.send<{ enterprise_authorization: boolean }>("GET", `${base}/apps`)).body
      .enterprise_authorization;
  t.false(await isOn());
  t.is((await owner.api.send("PUT", base + PATH, ON)).status, 204);
  t.true(await isOn());
  t.is((await owner.api.send("PUT", base + PATH, { json: { enabled: false } })).status, 204);
  t.false(await isOn());
});

test("in a browser, one button turns it on and the same place turns it off", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const on = await browser.press(
    await browser.open(`${service.url}${base}/apps`),
    "Let Example ID authorize apps",
  );
  t.regex(on.html.text, /Enterprise-managed authorization is on\./);
  t.regex(on.html.text, /Example ID may authorize apps/);
  const off = await browser.press(on, "Turn off");
  t.regex(off.html.text, /Enterprise-managed authorization is off\./);
});

test("admins and members can't change it, and another value is rejected", async (t) => {
  const { base, owner, admin, member } = await createTeam(service);
  for (const { api } of [admin, member]) t.is((await api.send("PUT", base + PATH, ON)).status, 403);
  isProblem(t, await owner.api.send("PUT", base + PATH, { json: { enabled: "yes" } }), {
    status: 422,
    code: "invalid_enabled",
    fields: ["enabled"],
  });
});

test("a server without an identity provider refuses it", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  const { base, owner } = await createTeam(plain);
  isProblem(t, await owner.api.send("PUT", base + PATH, ON), { status: 409, code: "no_identity_provider" });
  const { browser } = await browserOf(plain, owner);
  t.notRegex((await browser.open(`${plain.url}${base}/apps`)).html.text, /Enterprise-managed/);
});
