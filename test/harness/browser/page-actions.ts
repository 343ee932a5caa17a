import type { Page } from "playwright-core";
import type { TestUser } from "../service.ts";

/** Clicks the first button with the name. */
export function press(page: Page, name: string | RegExp): Promise<void> {
  return page.getByRole("button", { name }).first().click();
}

/** Fills in the fields with the given names. */
export async function fill(page: Page, fields: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(fields))
    await page.locator(`[name=${name}]:not([type=hidden])`).fill(value);
}

/** Signs in on the sign-in page. */
export async function signIn(page: Page, { username, password }: Pick<TestUser, "username" | "password">) {
  await fill(page, { username, password });
  await press(page, "Sign in");
}

/** Waits for the error of a rejected form. */
export const waitForError = (page: Page): Promise<void> => page.locator("[role=alert]").waitFor();

/** Returns a function that opens a path, then performs an action there. */
export function openThen(path: string, act: (page: Page) => Promise<unknown>) {
  return async (page: Page): Promise<void> => {
    await page.goto(path);
    await act(page);
  };
}

/** Returns a function that opens a path, fills in a form and presses its button, and waits for an element of the response. */
export function submit(
  path: string,
  button: string | RegExp,
  fields: Record<string, string> = {},
  response = "[role=alert]",
) {
  return openThen(path, async (page) => {
    await fill(page, fields);
    await press(page, button);
    await page.locator(response).first().waitFor();
  });
}
