import { TestBrowser } from "../../harness/clients/test-browser.ts";

/** The fields of the sign-in page, and the buttons that continue, the first that a page has. */
export type User = { fields: Record<string, string>; buttons: string[] };

const MAX_PAGES = 4;

/** What the user's browser does while the checks run: it opens each request, signs in, and allows access. */
export async function useBrowser(address: string, issuer: string, { fields, buttons }: User): Promise<void> {
  const { origin } = new URL(address);
  const browser = new TestBrowser(new URL(issuer).origin);
  let next = `${origin}/next`;
  for (;;) {
    const response = await fetch(next, { redirect: "manual" }).catch(() => undefined);
    const location = response?.headers.get("location");
    // The last response is a page.
    if (!location) return;
    next = new URL(location, origin).href;
    if (next.startsWith(`${origin}/`)) continue;
    let page = await browser.open(next);
    for (
      let pages = 0;
      pages < MAX_PAGES && page.status === 200 && !page.url.startsWith(`${origin}/`);
      pages++
    ) {
      const names = page.html.querySelectorAll("button").map(({ text }) => text.trim());
      const button = buttons.find((name) => names.includes(name));
      if (!button) break;
      const isSignIn = page.html.querySelector("input[type=password]") !== null;
      page = await browser.press(page, button, isSignIn ? fields : {});
    }
    next = page.url.startsWith(`${origin}/`) ? page.url : `${origin}/none`;
  }
}
