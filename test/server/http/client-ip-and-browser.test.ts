import test from "ava";
import { describeBrowser } from "../../../server/http/describe-browser.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

const { url, encryptionKey, database, close } = await createTestStorage();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.from(encryptionKey).toString("base64url"),
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
});

test.after.always(async () => {
  await service.close();
  await close();
});

function signIn(username: string, password: string, forwardedFor: string) {
  const headers = { "x-forwarded-for": forwardedFor };
  return apiAt(service.url).send("POST", "/auth/login", { json: { username, password }, headers });
}

const LONG = "x".repeat(8000);
const UNREADABLE = ["unknown", "_hidden", "", ",,,", "1.2.3", "0x7f.1", "<script>", LONG, `fe80::1%${LONG}`];

test("a port, a zone or another notation of an address gains no attempts", async (t) => {
  const same: ((index: number) => string)[] = [
    (index) => `198.51.100.7:${5000 + index}`,
    (index) => `${"garbage, ".repeat(index)}198.51.101.7`,
    (index) => `[2001:db8:1::1]:${5000 + index}`,
    (index) => `2001:db8:2::1%zone${index}`,
    (index) => ["2001:DB8:3::1", "2001:db8:3:0:0::1", "2001:0db8:0003::1"][index % 3] as string,
    (index) => (index % 2 ? "::ffff:198.51.102.7" : "198.51.102.7"),
  ];
  for (const [number, forwardedFor] of same.entries()) {
    const statuses = [];
    for (let index = 0; index < 6; index++) {
      statuses.push((await signIn(`spelled${number}`, "guess", forwardedFor(index))).status);
    }
    t.deepEqual(statuses, [401, 401, 401, 401, 401, 429], forwardedFor(1));
  }
});

test("addresses with ports are distinguished", async (t) => {
  for (const at of [
    (network: number) => `192.0.${network}.7:5000`,
    (network: number) => `[2001:db8:${network}::1]:5000`,
    (network: number) => `[2001:db8:1${network}::1]`,
  ]) {
    const username = `apart${at(2)}`;
    for (let guess = 0; guess < 5; guess++) await signIn(username, "guess", at(2));
    t.is((await signIn(username, "guess", at(2))).status, 429, at(2));
    t.is((await signIn(username, "guess", at(3))).status, 401, at(3));
  }
});

test("text that is no address counts as the proxy's own address", async (t) => {
  const statuses = [];
  for (const text of UNREADABLE) statuses.push((await signIn("hidden-behind", "guess", text)).status);
  t.deepEqual(statuses.slice(0, 5), [401, 401, 401, 401, 401]);
  t.deepEqual([...new Set(statuses.slice(5, -1))], [429]);
  t.is(statuses.at(-1), 401, "a link-local address, without its zone");
});

test("no header value is an error, and none is stored unless it is an address", async (t) => {
  for (const [index, text] of [...UNREADABLE, "192.0.2.1:99999999"].entries()) {
    const { id, username, password } = await service.createUser([], `stored${index}`);
    t.is((await signIn(username, password, text)).status, 200, text.slice(0, 20));
    const page = await fetch(`${service.url}/auth/login`, {
      method: "POST",
      body: new URLSearchParams({ username, password }),
      headers: { accept: "text/html", origin: service.url, "x-forwarded-for": text },
      redirect: "manual",
    });
    t.is(page.status, 303);
    const addresses = await database.knex("sessions").where({ user_id: id }).pluck("address");
    t.regex(addresses[0] ?? "", /^(127\.0\.0\.1|::1|fe80::1|192\.0\.2\.1)$/);
  }
});

const AGENTS: [userAgent: string, description: string][] = [
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0",
    "Edge on Windows",
  ],
  [
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36",
    "Chrome on Android",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
    "Safari on iOS",
  ],
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.7339.16 Safari/537.36",
    "Chrome on Linux",
  ],
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chromium/140.0.7339.16 Chrome/140.0.7339.16 Safari/537.36",
    "Chrome on Linux",
  ],
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36 HeadlessEdg/140.0.0.0",
    "Edge on Linux",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15",
    "Safari on macOS",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Chrome on macOS",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0.7339.39 Mobile/15E148 Safari/604.1",
    "Chrome on iOS",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 15_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/142.0 Mobile/15E148 Safari/605.1.15",
    "Firefox on iOS",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 EdgiOS/140.0.3485.54 Mobile/15E148 Safari/605.1.15",
    "Edge on iOS",
  ],
  ["Mozilla/5.0 (Android 15; Mobile; rv:142.0) Gecko/142.0 Firefox/142.0", "Firefox on Android"],
  [
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
    "Samsung Internet on Android",
  ],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36 OPR/122.0.0.0",
    "Opera on Windows",
  ],
  [
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Chrome on ChromeOS",
  ],
  // GNOME Web. Safari itself runs on Apple's systems only.
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
    "Unknown browser on Linux",
  ],
  ["curl/8.14.1", "curl"],
  ["python-requests/2.32", "python-requests"],
  ["Mozilla/5.0 (compatible)", "Unknown browser"],
  ["<script>alert(1)</script>", "Unknown browser"],
  ["", "Unknown browser"],
];

test("a user agent is described by its browser and system, or by the name of its program", (t) => {
  for (const [userAgent, description] of AGENTS) t.is(describeBrowser(userAgent), description);
  t.true(describeBrowser("x".repeat(10_000)).length <= 100);
});
