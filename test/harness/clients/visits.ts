import type { ShownAccount } from "../../../server/operations/account.ts";
import { type Page, TestBrowser } from "./test-browser.ts";

type Site = { url: string };

/** Follows the link with this text in the content of a page. */
export function follow(
  browser: TestBrowser,
  { html, url, text: all }: Page,
  text: string,
  init: RequestInit = {},
): Promise<Page> {
  const link = html.querySelectorAll("main a").find((one) => one.text.trim() === text);
  if (!link) throw new Error(`no link "${text}" at ${url}:\n${all}`);
  return browser.open(new URL(link.attributes.href ?? "", url).href, init);
}

export async function accountIn({ url }: Site, browser: TestBrowser): Promise<ShownAccount | undefined> {
  const headers = { accept: "application/json" };
  const { status, text } = await browser.open(`${url}/dashboard/account`, { headers });
  return status === 200 ? JSON.parse(text) : undefined;
}

export async function isSignedIn(site: Site, browser: TestBrowser): Promise<boolean> {
  return (await accountIn(site, browser)) !== undefined;
}

export async function cookieOf({ url }: Site, browser: TestBrowser, name: string) {
  return (await browser.jar.getCookies(url)).find(({ key }) => key === name);
}

export async function thiefOf({ url }: Site, browser: TestBrowser): Promise<TestBrowser> {
  const thief = new TestBrowser(url);
  for (const { key, value } of await browser.jar.getCookies(url))
    await thief.jar.setCookie(`${key}=${value}; path=/`, url);
  return thief;
}
