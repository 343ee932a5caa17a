import { mkdir } from "node:fs/promises";
import type { ExecutionContext } from "ava";
import axe from "axe-core";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { IS_THOROUGH } from "../rounds.ts";
import { openPage } from "./chromium.ts";
import { signIn } from "./page-actions.ts";

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

type Results = {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
};

/** The rules that depend on colors. */
export const COLOR_RULES = ["color-contrast", "link-in-text-block"];

/** Returns the violations that axe-core finds on the page, by all rules or the given ones. */
export async function violationsOf(page: Page, rules?: string[]): Promise<string[]> {
  // Evaluated, because the pages' content security policy blocks added scripts.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate<Results>(`axe.run(${JSON.stringify({ runOnly: rules })})`);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary = "" }) => `${id}: ${help}\n  ${html}\n  ${failureSummary}`),
  );
}

/** Opens a page in a new browser context, signed in as the user if there is one, and collects its errors and warnings. */
export async function openSignedIn(
  browser: Browser,
  baseURL: string,
  user?: { username: string; password: string },
  options: BrowserContextOptions = {},
) {
  // Animations must have ended before the page is checked.
  const opened = await openPage(browser, { baseURL, reducedMotion: "reduce", ...options });
  const { page } = opened;
  if (!user) return opened;
  await page.goto("/auth/login");
  await signIn(page, user);
  await page.waitForURL(/\/dashboard/);
  return opened;
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

/** Opens an address, and checks that the page is readable. */
export async function look(t: ExecutionContext, page: Page, name: string, address: string): Promise<void> {
  await page.goto(address);
  await isReadable(t, page, name);
}
