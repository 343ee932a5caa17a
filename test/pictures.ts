import { stat } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";
import { press, signIn } from "./harness/browser/page-actions.ts";
import { ROOT, startCommand } from "./harness/program.ts";

// Takes the picture of the README: the dashboard of `linkgate dev`.

const PICTURE = path.join(ROOT, "docs/images/dashboard.png");
const MAX_BYTES = 150 * 1024;

const server = startCommand(["dev", "--port", "0", "--json"]);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});
try {
  const [line] = await server.says(/^\{.*\}$/m);
  const { base, password, organizations } = JSON.parse(line);
  const [{ id, members }] = organizations;
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  await page.goto(`${base}/auth/login`);
  const { username } = members[0];
  await Promise.all([page.waitForURL("**/dashboard**"), signIn(page, { username, password })]);
  // The notice of the new device.
  await page.goto(`${base}/dashboard/notices`);
  await press(page, /^Dismiss/);
  await page.goto(`${base}/dashboard/organizations/${id}`);
  await page.locator(".panel form.inline button").click(); // dismisses the first steps
  await page.screenshot({ path: PICTURE });
} finally {
  await browser.close();
  await server.stop();
}
const { size } = await stat(PICTURE);
console.log(`docs/images/dashboard.png: ${Math.ceil(size / 1024)} KB`);
if (size > MAX_BYTES) throw new Error(`the picture is larger than ${MAX_BYTES / 1024} KB`);
