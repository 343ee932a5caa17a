import { OPERATOR } from "../../resources/events/types.ts";
import { limitsOf } from "../../resources/plans.ts";
import { newWebhookSecret } from "../../resources/webhooks/signature.ts";
import { useChromium } from "../harness/browser/chromium.ts";
import { CLAUDE } from "../harness/browser/gallery.ts";
import { fill, press, waitForError } from "../harness/browser/page-actions.ts";
import { isReadable, look, openSignedIn } from "../harness/browser/readable.ts";
import { authorizeUrl, REDIRECT_URI } from "../harness/clients/authorization-request.ts";
import { authorizeUrlOf } from "../harness/clients/document-client.ts";
import { startServiceWithDatabase } from "../harness/database/service.ts";

const { service, knex } = await startServiceWithDatabase();
const { storage } = service;
const owner = await service.createUser([], "ada.lovelace");
const member = await service.createUser([], "grace.hopper");
const { organization } = await storage.organizations.create("Northwind Coffee", "growth", OPERATOR, owner.id);
const { id } = organization;
await storage.organizations.addMember(id, member.id, "member", OPERATOR);
const app = await service.createOrganization("Postcard Studio");
await storage.clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
const inChromium = useChromium();

const path = `/dashboard/organizations/${id}`;

inChromium("the pages of an app that needs approval are accessible and fit", async (t, browser) => {
  const { page } = await openSignedIn(browser, service.url, owner);
  const { page: other } = await openSignedIn(browser, service.url, member);
  for (const memberApps of ["any", "none", "approved"] as const) {
    await storage.organizationSettings.change(id, { memberApps }, OPERATOR);
    await look(t, page, `app-policy-${memberApps}`, `${path}/settings`);
    await look(t, other, `app-policy-${memberApps}-member`, `${path}/settings`);
    await look(t, other, `consent-${memberApps}`, authorizeUrl(service, app));
  }
  const approval = await other.locator("code.long").textContent();
  await fill(page, { client_id: "unknown" });
  await press(page, "Review app");
  await waitForError(page);
  await isReadable(t, page, "approve-unknown");
  await look(t, page, "approve", approval ?? "");
  await press(page, "Approve app");
  await page.locator("[role=status]").waitFor();
  await isReadable(t, page, "approved");
  await look(t, other, "approved-member", `${path}/settings`);
  await storage.organizationSettings.change(id, { allowedClients: "none" }, OPERATOR);
  await look(t, page, "app-policy-none-accepted", `${path}/settings`);
  await look(t, other, "consent-kind", authorizeUrlOf(service, CLAUDE));
});

inChromium("the pages of quotas that are nearly or fully used are accessible and fit", async (t, browser) => {
  const { deliveries_per_day } = limitsOf("growth");
  const webhook = { url: "https://example.com/hook", events: ["link.created" as const], enabled: true };
  await storage.webhooks.create(id, OPERATOR, webhook, newWebhookSecret());
  const day = Math.floor(Date.now() / 86_400_000);
  const today = { organization_id: id, day, deliveries: deliveries_per_day - 1 };
  await knex("delivery_usage").insert(today).onConflict("organization_id").merge();
  const { page } = await openSignedIn(browser, service.url, owner);
  await look(t, page, "webhooks-near", `${path}/webhooks`);
  await knex("delivery_usage").update({ deliveries: deliveries_per_day });
  await look(t, page, "webhooks-full", `${path}/webhooks`);
  for (const [name, links] of Object.entries({ near: 990_000, full: 1_000_000 })) {
    const usage = { links, link_bytes: links * 900 };
    await knex("organization_usage").where({ organization_id: id }).update(usage);
    await look(t, page, `plan-${name}`, `${path}/plan`);
  }
  await page.goto(`${path}/links/new`);
  await fill(page, { url: "https://example.com/" });
  await press(page, "Create link");
  await waitForError(page);
  await isReadable(t, page, "link-new-full");
});

inChromium(
  "a phone's navigation shows the current section, and fades where it continues",
  async (t, browser) => {
    const { page } = await openSignedIn(browser, service.url, owner, {
      viewport: { width: 390, height: 844 },
    });
    await page.goto(`${path}/webhooks`);
    const { x = -1, width = 0 } = (await page.locator(".sections [aria-current]").boundingBox()) ?? {};
    t.true(x > 0 && x + width < 390, `${x} to ${x + width}`);
    const fade = (side: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector(".sections ul"), "::${side}").position`);
    t.deepEqual(await Promise.all(["before", "after"].map(fade)), ["sticky", "sticky"]);
  },
);

inChromium("the items of a menu look the same", async (t, browser) => {
  const { page } = await openSignedIn(browser, service.url, owner);
  await page.goto(`${path}/members`);
  const looks = await page.evaluate<string[]>(`[...document.querySelectorAll("td .sheet :is(a, button)")]
    .map((item) => { const { fontSize, paddingInline } = getComputedStyle(item); return fontSize + paddingInline; })`);
  t.true(looks.length > 3);
  t.is(new Set(looks).size, 1, looks.join());
});
