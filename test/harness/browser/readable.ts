import { mkdir } from "node:fs/promises";
import type { ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { COLOR_RULES, violationsOf } from "./axe.ts";
import { openPage } from "./chromium.ts";
import { fill, press } from "./page-actions.ts";

/** The folder for screenshots of every page, at each width and in each color scheme; none are taken without it. */
const { SCREENSHOTS } = process.env;
const WIDTHS = [1440, 360];
const SCHEMES = ["light", "dark"] as const;
// A full screenshot of a longer page takes minutes.
const SCREENSHOT_MAX_HEIGHT = 12_000;

/** Opens a page in a new browser context, signed in as the user if there is one. */
export async function openSignedIn(
  browser: Browser,
  baseURL: string,
  user?: { username: string; password: string },
): Promise<Page> {
  // Animations must have ended before the page is checked.
  const { page } = await openPage(browser, { baseURL, reducedMotion: "reduce" });
  if (!user) return page;
  const { username, password } = user;
  await page.goto("/auth/login");
  await fill(page, { username, password });
  await press(page, "Sign in");
  await page.waitForURL(/\/dashboard/);
  return page;
}

/** Checks that a page is accessible and fits at every width, in light and dark. */
export async function isReadable(t: ExecutionContext, page: Page, name: string): Promise<void> {
  if (SCREENSHOTS) await mkdir(SCREENSHOTS, { recursive: true });
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const fullPage =
      (await page.evaluate<number>("document.documentElement.scrollHeight")) < SCREENSHOT_MAX_HEIGHT;
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const rules = colorScheme === "dark" ? COLOR_RULES : undefined;
      t.deepEqual(await violationsOf(page, rules), [], `${width} px, ${colorScheme}`);
      if (SCREENSHOTS)
        await page.screenshot({ path: `${SCREENSHOTS}/${name}.${width}.${colorScheme}.png`, fullPage });
    }
    const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    t.true(overflow <= 0, `${overflow} px too wide at ${width} px`);
  }
}
