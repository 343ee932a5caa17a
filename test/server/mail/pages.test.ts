import test from "ava";
import type { Page } from "playwright-core";
import { OPERATOR } from "../../../resources/events/types.ts";
import { COLOR_RULES, violationsOf } from "../../harness/browser/axe.ts";
import { useChromium } from "../../harness/browser/chromium.ts";
import { fill, press } from "../../harness/browser/page-actions.ts";
import { isReadable, openSignedIn } from "../../harness/browser/readable.ts";
import { htmlOf, linkIn, type ReceivedMail, startMailServer, textOf } from "../../harness/mail-server.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

export const stage = "browser";

const mailServer = await startMailServer();
const service = await startTestService({
  SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
  SMTP_FROM: "linkgate <noreply@links.example>",
});

const { SCREENSHOTS } = process.env;
// Those on landmarks and headings concern pages.
const EMAIL_RULES = [...COLOR_RULES, "document-title", "html-has-lang", "link-name"];
const ACCOUNT = "/dashboard/account";
const { organizations } = service.storage;
const owner = await service.createUser([], "ada.lovelace");
const guest = await service.createUser([], "grace.hopper");
const { organization } = await organizations.create("Northwind Coffee", "free", OPERATOR, owner.id);
const members = `/dashboard/organizations/${organization.id}/members`;

test.after.always(async () => {
  await service.close();
  await mailServer.close();
});
const inChromium = useChromium();

const isFor = (address: string, text: RegExp) => (mail: ReceivedMail) =>
  mail.to.includes(address) && text.test(textOf(mail));

/** Requests a confirmation for an address of the signed-in user. */
async function addAddress(page: Page, address: string): Promise<ReceivedMail> {
  await page.goto(ACCOUNT);
  await fill(page, { email: address });
  await press(page, /email address$/);
  await page.locator("[role=status]").waitFor();
  return mailServer.next(isFor(address, /Confirm the email/));
}

/** Invites the owner of an email address to the organization. */
async function invite(page: Page, address: string): Promise<ReceivedMail> {
  await page.goto(members);
  await fill(page, { email: address });
  await press(page, "Create invitation link");
  return mailServer.next(isFor(address, /Accept the invitation/));
}

inChromium(
  "the pages that set an email address are accessible and fit at every width",
  async (t, browser) => {
    const page = await openSignedIn(browser, service.url, owner);
    await page.goto(ACCOUNT);
    await isReadable(t, page, "email-none");
    const mail = await addAddress(page, "ada@mail.example");
    await isReadable(t, page, "email-sent");
    await page.goto(linkIn(mail));
    await isReadable(t, page, "email-confirm");
    await press(page, "Confirm email address");
    await page.locator("[role=status]").waitFor();
    await isReadable(t, page, "email-confirmed");
    await page.goto(linkIn(mail));
    await isReadable(t, page, "email-link-used");
    await addAddress(page, "ada.king@mail.example");
    await isReadable(t, page, "email-change-sent");
  },
);

inChromium("the pages that reset a password by email are accessible and fit", async (t, browser) => {
  await confirmAddress(guest, "grace@mail.example");
  const page = await openSignedIn(browser, service.url);
  await page.goto("/auth/login");
  await isReadable(t, page, "forgot-login");
  await page.getByRole("link", { name: /by email/ }).click();
  await page.waitForURL(/forgot-password/);
  await isReadable(t, page, "forgot");
  await fill(page, { username: guest.username });
  await press(page, "Send reset link");
  await page.getByText("Check your email").waitFor();
  await isReadable(t, page, "forgot-sent");
  await page.goto(linkIn(await mailServer.next(isFor("grace@mail.example", /Choose a new password/))));
  await isReadable(t, page, "forgot-reset");
  guest.password = "an entirely new password";
  await fill(page, { password: guest.password });
  await press(page, "Save password");
  await page.locator("#password").waitFor({ state: "detached" });
  await isReadable(t, page, "forgot-done");
  const mail = await mailServer.next(isFor("grace@mail.example", /Your password was reset/));
  t.false(textOf(mail).includes("that grace.hopper created"));
});

inChromium("the pages of an emailed invitation are accessible and fit", async (t, browser) => {
  const page = await openSignedIn(browser, service.url, owner);
  const link = linkIn(await invite(page, "guest@mail.example"));
  await isReadable(t, page, "invite-created");
  await page.goto(members);
  await isReadable(t, page, "invite-members");

  const visitor = await openSignedIn(browser, service.url);
  await visitor.goto(link);
  await isReadable(t, visitor, "invite-visitor");
  await visitor.getByRole("link", { name: "Create an account" }).click();
  await visitor.waitForURL(/register/);
  await isReadable(t, visitor, "invite-register");

  const other = await openSignedIn(browser, service.url, guest);
  await other.goto(link);
  await isReadable(t, other, "invite-other-account");
  await page.goto(link);
  t.true((await page.textContent("main"))?.includes("already a member"));
  await isReadable(t, page, "invite-own");
});

inChromium("the HTML of every received email is legible and fits a phone", async (t, browser) => {
  const page = await openSignedIn(browser, service.url);
  await page.setViewportSize({ width: 360, height: 900 });
  t.true(mailServer.received.length >= 6);
  for (const [index, mail] of mailServer.received.entries()) {
    await page.setContent(htmlOf(mail));
    t.deepEqual(await violationsOf(page, EMAIL_RULES), []);
    t.true((await page.evaluate<number>("document.documentElement.scrollWidth")) <= 360);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/mail-${index}.360.light.png` });
  }
});

/** Confirms an address of a user without a browser. */
async function confirmAddress(user: TestUser, address: string): Promise<void> {
  const actor = { id: user.id };
  await service.storage.emails.requestChange(address, actor);
  const { pathname } = new URL(linkIn(await mailServer.next(isFor(address, /Confirm the email/))));
  await service.storage.emails.confirm(pathname.split("/").at(-1) ?? "", actor);
}
