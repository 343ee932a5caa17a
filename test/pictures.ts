import { writeFile } from "node:fs/promises";
import path from "node:path";
import { chromium, type Page } from "playwright-core";
import { press, signIn } from "./harness/browser/page-actions.ts";
import { ROOT, startCommand } from "./harness/program.ts";

// Takes the pictures of the README and of the landing page, in light and dark: pages of `linkgate dev`.

const WIDTH = 1200;
const HEIGHT = 780;
const QUALITY = 50;
// On the landing page, a picture takes half of the width.
const SCALE = 0.75;
// A page sends at most 150 KB, and browsers that change the color scheme load both.
const MAX_BYTES = 42 * 1024;

const server = startCommand(["dev", "--port", "0", "--json"]);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});

/** Playwright has no WebP. */
async function takePicture(page: Page, file: string): Promise<void> {
  // The port differs each time.
  await page.evaluate((host) => {
    const texts = document.createNodeIterator(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode())
      node.textContent = node.textContent?.replaceAll(host, "go.example") ?? "";
  }, new URL(page.url()).host);
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", {
    format: "webp",
    quality: QUALITY,
    clip: { x: 0, y: 0, width: WIDTH, height: HEIGHT, scale: SCALE },
  });
  const picture = Buffer.from(data, "base64");
  console.log(`${file}: ${Math.ceil(picture.length / 1024)} KB`);
  if (picture.length > MAX_BYTES) throw new Error(`the picture is larger than ${MAX_BYTES / 1024} KB`);
  await writeFile(path.join(ROOT, file), picture);
}

try {
  const [line] = await server.says(/^\{.*\}$/m);
  const { base, password, organizations } = JSON.parse(line);
  const [{ id, members }] = organizations;
  const organization = `${base}/dashboard/organizations/${id}`;
  const page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT } });
  await page.goto(`${base}/auth/login`);
  const { username } = members[0];
  await Promise.all([page.waitForURL("**/dashboard**"), signIn(page, { username, password })]);
  // The notice of the new device.
  await page.goto(`${base}/dashboard/notices`);
  await press(page, /^Dismiss/);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.goto(`${organization}/links`);
    await takePicture(page, `server/ui/assets/links-${colorScheme}.webp`);
    await page.goto(`${organization}/analytics`);
    await takePicture(page, `docs/images/analytics-${colorScheme}.webp`);
  }
} finally {
  await browser.close();
  await server.stop();
}
