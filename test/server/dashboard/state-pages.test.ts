import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { useChromium } from "../../harness/browser/chromium.ts";
import { CLAUDE } from "../../harness/browser/gallery.ts";
import { fill, press, waitForError } from "../../harness/browser/page-actions.ts";
import { isReadable, openSignedIn } from "../../harness/browser/readable.ts";
import { authorizeUrlOf } from "../../harness/clients/document-client.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import { authorizeUrl } from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

export const stage = "browser";

const { database, url, encryptionKey, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: encryptionKey.toString("base64url"),
  RATE_LIMIT: "on",
});

const { storage } = service;
const owner = await service.createUser([], "ada.lovelace");
const member = await service.createUser([], "grace.hopper");
const { organization } = await storage.organizations.create("Northwind Coffee", "growth", OPERATOR, owner.id);
const { id } = organization;
await storage.organizations.addMember(id, member.id, "member", OPERATOR);
const app = await service.createOrganization("Postcard Studio");
await storage.clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
test.after.always(async () => {
  await service.close();
  await close();
});
const inChromium = useChromium();

const path = `/dashboard/organizations/${id}`;

inChromium(
  "the consent page is accessible and fits if the user's role limits the access",
  async (t, browser) => {
    const page = await openSignedIn(browser, service.url, member);
    await page.goto(authorizeUrl(service, app, { scope: "links:write webhooks:read webhooks:write" }));
    await isReadable(t, page, "consent-role");
    await page.goto(authorizeUrl(service, app, { scope: "webhooks:write" }));
    await isReadable(t, page, "consent-role-none");
  },
);

inChromium("the pages of an app that needs approval are accessible and fit", async (t, browser) => {
  const page = await openSignedIn(browser, service.url, owner);
  const other = await openSignedIn(browser, service.url, member);
  for (const memberApps of ["any", "none", "approved"] as const) {
    await storage.organizationSettings.change(id, { memberApps }, OPERATOR);
    await page.goto(`${path}/settings`);
    await isReadable(t, page, `app-policy-${memberApps}`);
    await other.goto(`${path}/settings`);
    await isReadable(t, other, `app-policy-${memberApps}-member`);
    await other.goto(authorizeUrl(service, app));
    await isReadable(t, other, `consent-${memberApps}`);
  }
  const approval = await other.locator("code.long").textContent();
  await fill(page, { client_id: "unknown" });
  await press(page, "Review app");
  await waitForError(page);
  await isReadable(t, page, "approve-unknown");
  await page.goto(approval ?? "");
  await isReadable(t, page, "approve");
  await press(page, "Approve app");
  await page.locator("[role=status]").waitFor();
  await isReadable(t, page, "approved");
  await other.goto(`${path}/settings`);
  await isReadable(t, other, "approved-member");
  await storage.organizationSettings.change(id, { allowedClients: "none" }, OPERATOR);
  await page.goto(`${path}/settings`);
  await isReadable(t, page, "app-policy-none-accepted");
  await other.goto(authorizeUrlOf(service, CLAUDE));
  await isReadable(t, other, "consent-kind");
});

inChromium("the sign-in page of a blocked username is accessible and fits", async (t, browser) => {
  const user = await service.createUser([id], "mary.jackson");
  const guess = async (times: number) => {
    for (let count = 0; count < times; count++) {
      advanceClock(16 * 60_000);
      await storage.signInFailures.attempt(user.username, user.id);
    }
  };
  await guess(20);
  const page = await openSignedIn(browser, service.url);
  const enter = async () => {
    await page.goto("/auth/login");
    await fill(page, { username: user.username, password: user.password });
    await press(page, "Sign in");
    await waitForError(page);
  };
  await enter();
  await isReadable(t, page, "sign-in-delayed");
  await guess(100);
  await enter();
  await isReadable(t, page, "sign-in-blocked");

  // An owner unlocks the account with a reset link.
  const owning = await openSignedIn(browser, service.url, owner);
  await owning.goto(`${path}/members`);
  await owning.locator("summary", { hasText: "Manage mary.jackson" }).click();
  await press(owning, "Create reset link for mary.jackson");
  const link = await owning.locator(".copyable code, .copyable input").first().textContent();
  await isReadable(t, owning, "sign-in-unblock");
  await page.goto(link ?? "");
  await fill(page, { password: "an entirely new password" });
  await press(page, "Save password");
  await page.locator("#password").waitFor({ state: "detached" });
  const signedIn = await openSignedIn(browser, service.url, {
    ...user,
    password: "an entirely new password",
  });
  await isReadable(t, signedIn, "sign-in-unblocked");
  await signedIn.goto("/dashboard/notices");
  await isReadable(t, signedIn, "sign-in-blocked-notice");
});

inChromium("the sign-in page of a disabled user is accessible and fits", async (t, browser) => {
  const user = await service.createUser([id], "dorothy.vaughan");
  const page = await openSignedIn(browser, service.url, user);
  await storage.disabledAccounts.disable(user.id, "Account taken over", OPERATOR);
  await page.goto("/dashboard");
  await isReadable(t, page, "disabled-session");
  await fill(page, { username: user.username, password: user.password });
  await press(page, "Sign in");
  await waitForError(page);
  await isReadable(t, page, "disabled-sign-in");
});

inChromium("the pages of quotas that are nearly or fully used are accessible and fit", async (t, browser) => {
  const { deliveries_per_day } = limitsOf("growth");
  await storage.webhooks.create(
    id,
    OPERATOR,
    { url: "https://example.com/hook", events: ["link.created"], enabled: true },
    `whsec_${Buffer.alloc(32).toString("base64")}`,
  );
  const day = Math.floor(Date.now() / 86_400_000);
  await database
    .knex("delivery_usage")
    .insert({ organization_id: id, day, deliveries: deliveries_per_day - 1 })
    .onConflict("organization_id")
    .merge();
  const page = await openSignedIn(browser, service.url, owner);
  await page.goto(`${path}/webhooks`);
  await isReadable(t, page, "webhooks-near");
  await database.knex("delivery_usage").update({ deliveries: deliveries_per_day });
  await page.goto(`${path}/webhooks`);
  await isReadable(t, page, "webhooks-full");
  for (const [name, links] of [
    ["near", 990_000],
    ["full", 1_000_000],
  ] as const) {
    await database
      .knex("organization_usage")
      .where({ organization_id: id })
      .update({ links, link_bytes: links * 900 });
    await page.goto(`${path}/plan`);
    await isReadable(t, page, `plan-${name}`);
  }
  await page.goto(`${path}/links/new`);
  await fill(page, { url: "https://example.com/" });
  await press(page, "Create link");
  await waitForError(page);
  await isReadable(t, page, "link-new-full");
});

inChromium("the pages of a suspended organization are accessible and fit", async (t, browser) => {
  const page = await openSignedIn(browser, service.url, owner);
  await storage.suspensions.suspend(id, "Reported for phishing", OPERATOR);
  for (const section of ["links", "webhooks", "client", "apps", "members", "plan", "connect", "settings"]) {
    await page.goto(`${path}/${section}`);
    await isReadable(t, page, `suspended-${section}`);
  }
  await page.goto(authorizeUrl(service, app));
  await isReadable(t, page, "suspended-consent");
});

inChromium("the page of an anonymous invalid request is accessible and fits", async (t, browser) => {
  const page = await openSignedIn(browser, service.url);
  await page.goto(authorizeUrl(service, app, { scope: "everything" }));
  await isReadable(t, page, "authorization-continue");
  await page.goto(`${service.url.replace("localhost", "127.0.0.1")}/dashboard`);
  await isReadable(t, page, "wrong-host");
});
