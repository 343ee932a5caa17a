import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import type { Browser } from "playwright-core";
import { fill, press } from "../browser/page-actions.ts";
import type { TestService, TestUser } from "../service.ts";

/** Signs in and allows access, in a browser that the user has not used before, up to the page of the program. */
export async function allowInBrowser(
  browser: Browser,
  service: TestService,
  { username, password }: TestUser,
  url: string,
): Promise<void> {
  const page = await browser.newPage();
  try {
    await page.goto(url);
    await fill(page, { username, password });
    await press(page, "Sign in");
    await press(page, "Allow");
    await page.waitForURL(({ origin }) => origin !== service.url);
  } catch (error) {
    throw new Error(`${error}\nat ${page.url()}: ${await page.textContent("main")}`);
  } finally {
    await page.close();
  }
}

/** Creates the program that opens a URL on Linux, in a folder for the PATH. It hands the URL to `open`. */
export async function createOpener(folder: string, open: (url: string) => void): Promise<{ close(): void }> {
  const server = createServer(async (request, answer) => {
    open((await request.toArray()).join(""));
    answer.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const script = `#!${process.execPath}
fetch("http://127.0.0.1:${port}", { method: "POST", body: process.argv.at(-1) });
`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "xdg-open"), script, { mode: 0o755 });
  return { close: () => server.close() };
}
