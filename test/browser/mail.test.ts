import { useChromium } from "../harness/browser/chromium.ts";
import { fill, press } from "../harness/browser/page-actions.ts";
import { COLOR_RULES, isReadable, look, openSignedIn, violationsOf } from "../harness/browser/readable.ts";
import { htmlOf, linkIn, startMailServer, textOf } from "../harness/mail-server.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";

const mailServer = await startMailServer();
const service = await startTestService({
  SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
  SMTP_FROM: "linkgate <noreply@links.example>",
});

const { SCREENSHOTS } = process.env;
// Those on landmarks and headings concern pages.
const EMAIL_RULES = [...COLOR_RULES, "document-title", "html-has-lang", "link-name"];
const ACCOUNT = "/dashboard/account";
const ADDRESS = "ada@mail.example";
const { organizations } = service.storage;
const owner = await service.createUser([], "ada.lovelace");
const { organization } = await organizations.create("Northwind Coffee", "free", OPERATOR, owner.id);

const inChromium = useChromium();

/** Waits for an email to an address whose text contains this. */
const mailTo = (address: string, text: RegExp) =>
  mailServer.next((mail) => mail.to.includes(address) && text.test(textOf(mail)));

inChromium("the pages that set an email address are accessible and fit", async (t, browser) => {
  const { page } = await openSignedIn(browser, service.url, owner);
  await look(t, page, "email-none", ACCOUNT);
  await fill(page, { email: ADDRESS });
  await press(page, /email address$/);
  const link = linkIn(await mailTo(ADDRESS, /Confirm the email/));
  await look(t, page, "email-confirm", link);
  await press(page, "Confirm email address");
  await page.locator("[role=status]").waitFor();
  await isReadable(t, page, "email-confirmed");
  await look(t, page, "email-link-used", link);
});

inChromium("the pages that reset a password by email are accessible and fit", async (t, browser) => {
  const { page } = await openSignedIn(browser, service.url);
  await look(t, page, "forgot", "/auth/forgot-password");
  await fill(page, { username: owner.username });
  await press(page, "Send reset link");
  await page.getByText("Check your email").waitFor();
  await isReadable(t, page, "forgot-sent");
  await page.goto(linkIn(await mailTo(ADDRESS, /Choose a new password/)));
  owner.password = "an entirely new password";
  await fill(page, { password: owner.password });
  await press(page, "Save password");
  await page.locator("#password").waitFor({ state: "detached" });
  await isReadable(t, page, "forgot-done");
  await mailTo(ADDRESS, /Your password was reset/);
});

inChromium("the sign-in of an emailed invitation is accessible and fits", async (t, browser) => {
  const { page } = await openSignedIn(browser, service.url, owner);
  await page.goto(`/dashboard/organizations/${organization.id}/members`);
  await fill(page, { email: "guest@mail.example" });
  await press(page, "Create invitation link");
  const link = linkIn(await mailTo("guest@mail.example", /Accept the invitation/));
  const { page: visitor } = await openSignedIn(browser, service.url);
  await visitor.goto(link);
  await visitor.getByRole("link", { name: "Sign in" }).click();
  await visitor.waitForURL(/login/);
  await isReadable(t, visitor, "invite-visitor");
});

inChromium("the HTML of every received email is legible and fits a phone", async (t, browser) => {
  const { page } = await openSignedIn(browser, service.url);
  await page.setViewportSize({ width: 360, height: 900 });
  t.true(mailServer.received.length >= 4);
  for (const [index, mail] of mailServer.received.entries()) {
    await page.setContent(htmlOf(mail));
    t.deepEqual(await violationsOf(page, EMAIL_RULES), []);
    t.true((await page.evaluate<number>("document.documentElement.scrollWidth")) <= 360);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/mail-${index}.360.light.png` });
  }
});
