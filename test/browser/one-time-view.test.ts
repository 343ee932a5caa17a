import type { Browser, Page } from "playwright-core";
import { useChromium } from "../harness/browser/chromium.ts";
import { fill } from "../harness/browser/page-actions.ts";
import { openSignedIn } from "../harness/browser/readable.ts";
import { prepareForm, SECRET_FORMS, type SecretForm } from "../harness/clients/secret-forms.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const inChromium = useChromium();

/** Opens a form as an owner in a new page, fills it in and returns its button, ready to be clicked. */
async function openForm(browser: Browser, form: SecretForm, { javaScriptEnabled = true } = {}) {
  const prepared = await prepareForm(service, form);
  const opened = await openSignedIn(browser, service.url, prepared.owner, { javaScriptEnabled });
  const { page } = opened;
  await page.goto(prepared.page);
  await fill(page, form.fields ?? {});
  const button = page.locator("button", { hasText: prepared.button });
  const menu = page.locator("details").filter({ has: button });
  if ((await menu.count()) > 0) await menu.locator("summary").click();
  return { ...opened, button, start: prepared.page, created: prepared.created };
}

const hasSecret = async (page: Page, { secret }: SecretForm) => secret.test(await page.content());

for (const form of SECRET_FORMS) {
  // Only the page of a secret and the button have scripts, which are the same for each form.
  for (const javaScriptEnabled of form === SECRET_FORMS[0] ? [true, false] : [true]) {
    const how = javaScriptEnabled ? "with JavaScript" : "without JavaScript";
    inChromium(
      `${how}, a double click, reloading and going back after ${form.name} create nothing more and show no secret`,
      async (t, browser) => {
        const opened = await openForm(browser, form, { javaScriptEnabled });
        const { page, complaints, button, start, created } = opened;
        const before = await created();
        await (javaScriptEnabled ? button.dblclick() : button.click());
        await page.locator(".copyable").first().waitFor();
        t.true(await hasSecret(page, form));
        const after = await created();
        t.is(after.filter((id) => !before.includes(id)).length, 1);

        const isAlreadyShown = async (step: string) => {
          t.regex((await page.textContent("h1")) ?? "", /already shown/, step);
          t.false(await hasSecret(page, form), step);
        };
        const shown = page.url();
        await page.reload();
        await isAlreadyShown("reloaded");
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
      },
    );
  }
}

inChromium("a secret page restored from the back/forward cache shows no secret", async (t, browser) => {
  const form = SECRET_FORMS[0] as SecretForm;
  const { page, button } = await openForm(browser, form);
  await button.click();
  await page.locator(".copyable").first().waitFor();
  // Headless Chromium has no such cache: the test dispatches its event instead.
  await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
  await page.getByText("already shown").waitFor();
  t.false(await hasSecret(page, form));
});
