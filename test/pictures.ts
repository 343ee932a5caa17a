import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Browser, chromium } from "playwright-core";
import { addressOf, ROOT, startDevServer, startServer } from "./harness/program.ts";

// Takes the pictures of the README: the dashboard of `linkgate dev`, and what a first start prints.

const FOLDER = path.join(ROOT, "docs/images");
const MAX_BYTES = 300 * 1024;

async function takeDashboard(browser: Browser): Promise<void> {
  const server = startDevServer(["--port", "0", "--json"]);
  try {
    const [line] = await server.says(/^\{.*\}$/m);
    const { base, password, organizations } = JSON.parse(line);
    const [{ id, members }] = organizations;
    const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
    await page.goto(`${base}/auth/login`);
    await page.fill("[name=username]", members[0].username);
    await page.fill("[name=password]", password);
    await Promise.all([page.waitForURL("**/dashboard**"), page.keyboard.press("Enter")]);
    // The notice of the new device.
    await page.goto(`${base}/dashboard/notices`);
    await page
      .getByRole("button", { name: /^Dismiss/ })
      .first()
      .click();
    await page.goto(`${base}/dashboard/organizations/${id}`);
    await page.locator(".panel form.inline button").click(); // dismisses the first steps
    await page.screenshot({ path: path.join(FOLDER, "dashboard.png") });
    await page.close();
  } finally {
    await server.stop();
  }
}

async function takeTerminal(browser: Browser): Promise<void> {
  const cwd = await mkdtemp(path.join(tmpdir(), "linkgate-pictures-"));
  const server = startServer({ cwd, settings: { LOG_LEVEL: "silent" } });
  try {
    await addressOf(server);
    const page = await browser.newPage({ viewport: { width: 900, height: 10 }, deviceScaleFactor: 1.25 });
    await page.setContent(TERMINAL);
    await page.locator("pre").evaluate((pre: { textContent: string }, text: string) => {
      pre.textContent = text;
    }, `$ npm ci && npm start\n${server.stdout.trimEnd()}`);
    await page.locator("pre").screenshot({ path: path.join(FOLDER, "terminal.png") });
    await page.close();
  } finally {
    await server.stop();
    await rm(cwd, { recursive: true });
  }
}

const TERMINAL = `<!doctype html><style>
body { margin: 0 }
pre { margin: 0; padding: 20px; background: #16181d; color: #e4e6eb; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace }
</style><pre></pre>`;

await mkdir(FOLDER, { recursive: true });
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox"],
});
try {
  await takeDashboard(browser);
  await takeTerminal(browser);
} finally {
  await browser.close();
}
const sizes = await Promise.all(
  ["dashboard.png", "terminal.png"].map(async (name) => (await stat(path.join(FOLDER, name))).size),
);
const total = sizes.reduce((sum, size) => sum + size, 0);
console.log(`docs/images: ${Math.ceil(total / 1024)} KB`);
if (total > MAX_BYTES) throw new Error(`the pictures are larger than ${MAX_BYTES / 1024} KB`);
