import test from "ava";
import type { Page } from "playwright-core";
import { openPage, useChromium } from "../../harness/browser/chromium.ts";
import { prepareForm, SECRET_FORMS, type SecretForm } from "../../harness/clients/secret-forms.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

export const stage = "browser";

const service = await startTestService();
test.after.always(() => service.close());
const inChromium = useChromium();

const heading = (page: Page) => page.locator("h1").textContent();

async function signIn(page: Page, { username, password }: TestUser) {
  await page.goto(`${service.url}/auth/login`);
  await page.locator("#username").fill(username);
  await page.locator("#password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL(/\/dashboard/);
}

/** Fills in the form and returns its button, ready to be clicked. */
async function fillIn(page: Page, { fields = {} }: SecretForm, text: string) {
  for (const [name, value] of Object.entries(fields)) await page.locator(`[name=${name}]`).fill(value);
  const button = page.locator("button", { hasText: text });
  const menu = page.locator("details").filter({ has: button });
  if ((await menu.count()) > 0) await menu.locator("summary").click();
  return button;
}

async function hasSecret(page: Page, { secret }: SecretForm) {
  return secret.test(await page.content());
}

for (const javaScriptEnabled of [true, false]) {
  for (const form of SECRET_FORMS) {
    const how = javaScriptEnabled ? "with JavaScript" : "without JavaScript";
    inChromium(
      `${how}, reloading and going back after ${form.name} creates nothing and shows no secret`,
      async (t, browser) => {
        const { page, complaints } = await openPage(browser, { javaScriptEnabled });
        const { owner, page: start, button, created } = await prepareForm(service, form);
        await signIn(page, owner);
        await page.goto(start);
        const before = await created();
        await (await fillIn(page, form, button)).click();
        await page.locator(".copyable").first().waitFor();
        t.true(await hasSecret(page, form));
        const after = await created();
        t.is(after.filter((id) => !before.includes(id)).length, 1);

        const isAlreadyShown = async (step: string) => {
          t.regex((await heading(page)) ?? "", /already shown/, step);
          t.false(await hasSecret(page, form), step);
        };
        const shown = page.url();
        await page.reload();
        await isAlreadyShown("reloaded");
        await page.reload();
        await isAlreadyShown("reloaded again");
        await page.getByRole("link", { name: form.next, exact: true }).click();
        t.false(await hasSecret(page, form));
        await page.goBack();
        t.is(page.url(), shown);
        await isAlreadyShown("back");
        await page.goBack();
        t.is(page.url(), start, "one step back is the form, not its submission");
        await page.goForward();
        await isAlreadyShown("forward");
        t.deepEqual(await created(), after);
        t.deepEqual(complaints, []);
        await page.context().close();
      },
    );
  }
}

for (const form of SECRET_FORMS) {
  inChromium(`a double click on the button of ${form.name} submits once`, async (t, browser) => {
    const { page, complaints } = await openPage(browser);
    const { owner, page: start, button, created } = await prepareForm(service, form);
    await signIn(page, owner);
    await page.goto(start);
    const before = await created();
    await (await fillIn(page, form, button)).dblclick();
    await page.locator(".copyable").first().waitFor();
    const after = await created();
    t.is(after.filter((id) => !before.includes(id)).length, 1);
    t.deepEqual(complaints, []);
    await page.context().close();
  });
}

inChromium("a secret page restored from the back/forward cache shows no secret", async (t, browser) => {
  const { page } = await openPage(browser);
  const form = SECRET_FORMS[0] as SecretForm;
  const { owner, page: start, button } = await prepareForm(service, form);
  await signIn(page, owner);
  await page.goto(start);
  await (await fillIn(page, form, button)).click();
  await page.locator(".copyable").first().waitFor();
  // Headless Chromium has no such cache: the test dispatches its event instead.
  await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
  await page.getByText("already shown").waitFor();
  t.false(await hasSecret(page, form));
  await page.context().close();
});
