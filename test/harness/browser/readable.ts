import { mkdir } from "node:fs/promises";
import type { ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { IS_THOROUGH } from "../rounds.ts";
import { COLOR_RULES, violationsOf } from "./axe.ts";
import { openPage } from "./chromium.ts";
import { fill, press } from "./page-actions.ts";

/** The folder for screenshots of every page, at each width and in each color scheme; none are taken without it. */
const { SCREENSHOTS } = process.env;
// Each width and each scheme once; all four in a thorough run, and for screenshots.
const LOOKS: [width: number, colorScheme: "light" | "dark"][] = [
  [1440, "light"],
  [360, "dark"],
];
if (IS_THOROUGH || SCREENSHOTS) LOOKS.push([1440, "dark"], [360, "light"]);
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
  for (const [width, colorScheme] of LOOKS) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    const rules = colorScheme === "dark" ? COLOR_RULES : undefined;
    t.deepEqual(await violationsOf(page, rules), [], `${width} px, ${colorScheme}`);
    const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    t.true(overflow <= 0, `${overflow} px too wide at ${width} px`);
    if (!SCREENSHOTS) continue;
    const height = await page.evaluate<number>("document.documentElement.scrollHeight");
    const file = `${SCREENSHOTS}/${name}.${width}.${colorScheme}.png`;
    await page.screenshot({ path: file, fullPage: height < SCREENSHOT_MAX_HEIGHT });
  }
}
