import { existsSync } from "node:fs";
import test, { type ExecutionContext } from "ava";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { closeAfterTests } from "../closing.ts";
import { skip } from "../skip.ts";

const EXECUTABLE = "/usr/bin/chromium";
const ARGUMENTS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/**
 * Returns a function that adds browser tests, or skips them visibly if Chromium isn't installed. The tests of a file
 * share one browser and run serially, to leave CPU time for other test files. Their pages are closed at the end of each
 * test, unless the tests share them.
 */
export function useChromium({ sharesPages = false } = {}) {
  let browser: Promise<Browser> | undefined;
  closeAfterTests(async () => (await browser)?.close());
  return function inChromium(
    title: string,
    run: (t: ExecutionContext, browser: Browser) => Promise<void>,
  ): void {
    if (!existsSync(EXECUTABLE)) return void skip(title, `${EXECUTABLE} is not installed`);
    test.serial(title, async (t) => {
      browser ??= chromium.launch({ executablePath: EXECUTABLE, args: ARGUMENTS });
      await run(t, await browser);
      for (const context of sharesPages ? [] : (await browser).contexts()) await context.close();
    });
  };
}

/** Opens a page in a new browser context, and collects its errors and warnings. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // The browser also logs the 4xx status of a rejected form.
    const isRejection = /the server responded with a status of 4\d\d/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isRejection) complaints.push(message.text());
  });
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText;
    // Navigating away aborts pending requests.
    if (reason !== "net::ERR_ABORTED") complaints.push(`${request.url()}: ${reason}`);
  });
  return { page, complaints };
}

// Without what screen readers skip, such as the initial of an organization.
const FOCUSED_NAME = `(() => {
  const focused = document.activeElement;
  const named = (focused?.labels?.[0] ?? focused)?.cloneNode(true);
  for (const hidden of named?.querySelectorAll("[aria-hidden]") ?? []) hidden.remove();
  return named?.textContent ?? "";
})()`;

/** Presses Tab until an element with the text or label has the focus. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 30; presses++) {
    const focused = await page.evaluate<string>(FOCUSED_NAME);
    if (focused.trim() === name) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not reach "${name}" at ${page.url()}`);
}
