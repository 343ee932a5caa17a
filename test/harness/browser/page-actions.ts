import type { Page } from "playwright-core";

/** Clicks the first button with the name. */
export function press(page: Page, name: string | RegExp): Promise<void> {
  return page.getByRole("button", { name }).first().click();
}

/** Fills in the fields with the given names. */
export async function fill(page: Page, fields: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(fields)) await page.locator(`[name=${name}]`).fill(value);
}

/** Waits for the error of a rejected form. */
export function waitForError(page: Page): Promise<void> {
  return page.locator("[role=alert]").waitFor();
}

/** Submits the form that creates a secret, and waits for the page that shows it. */
export async function showSecret(page: Page): Promise<void> {
  await press(page, /secret$/);
  await page.locator(".copyable").first().waitFor();
}

/** Returns a function that opens a path, then performs an action there. */
export function openThen(path: string, act: (page: Page) => Promise<unknown>) {
  return async (page: Page): Promise<void> => {
    await page.goto(path);
    await act(page);
  };
}
