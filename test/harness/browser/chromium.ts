import { existsSync } from "node:fs";
import test, { type ExecutionContext } from "ava";
import { type Browser, chromium, type Page } from "playwright-core";
import { skip } from "./skip.ts";

const EXECUTABLE = "/usr/bin/chromium";
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * Adds tests that drive the browser, which is there while the file runs; where this machine has none, the run says so.
 * One after the other: they share the processor with everything else.
 */
export function useChromium() {
  let browser: Promise<Browser> | undefined;
  test.after.always(async () => (await browser)?.close());
  return function inChromium(
    title: string,
    run: (t: ExecutionContext, browser: Browser) => Promise<void>,
  ): void {
    if (!existsSync(EXECUTABLE)) return void skip(title, `this machine has no ${EXECUTABLE}`);
    test.serial(title, async (t) => {
      browser ??= chromium.launch({ executablePath: EXECUTABLE, args: ARGUMENTS });
      await run(t, await browser);
    });
  };
}

/** A page in a profile of its own, and what the browser complained about in it. */
export async function openPage(
  browser: Browser,
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // A refused form has a status of 400, which the browser notes as well.
    const isRefusal = /the server responded with a status of 4\d\d/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isRefusal) complaints.push(message.text());
  });
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText;
    // Whoever goes on to another page waits for nothing of this one.
    if (reason !== "net::ERR_ABORTED") complaints.push(`${request.url()}: ${reason}`);
  });
  return { page, complaints };
}

/** Goes on with the Tab key until an element with that text or label has the focus. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 30; presses++) {
    const focused = await page.evaluate<string>(
      "document.activeElement?.labels?.[0]?.textContent ?? document.activeElement?.textContent ?? ''",
    );
    if (focused.trim() === name) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the Tab key does not reach "${name}" at ${page.url()}`);
}
