import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import {
  authorizeUrl,
  createApp,
  isAcceptedByApi,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { runCommand, stopPrograms } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-reset-"));
const DATABASE_URL = `sqlite:${folder}/test.sqlite`;
const service = await startTestService({ DATABASE_URL });
test.after.always(stopPrograms);
test.after.always(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

const FRESH = "an entirely new password";

/** Creates a user and, by the command, a reset link. */
async function withLink() {
  const made = await createApp(service);
  return { ...made, url: await linkFor(made.user.username) };
}

async function linkFor(username: string): Promise<string> {
  const { stdout } = await runCommand(["user", "reset-password", username, "--json"], {
    settings: { DATABASE_URL, BASE_URL: service.url },
  });
  return JSON.parse(stdout).url;
}

async function linkOf(userId: string): Promise<string> {
  return `${service.url}/auth/reset-password/${await service.storage.accounts.createResetToken(userId, 60_000)}`;
}

async function setPassword(url: string, password: string) {
  const answer = await fetch(url, { method: "POST", body: new URLSearchParams({ password }) });
  return { status: answer.status, text: await answer.text() };
}

/** Returns whether the sign-in page accepts a password. */
async function signsIn(
  app: Awaited<ReturnType<typeof createApp>>["app"],
  username: string,
  password: string,
) {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(authorizeUrl(service, app));
  return (await browser.signIn(page, { id: "", username, password })).text.includes("Allow access?");
}

test.serial("a reset link shows its page and sets a new password once", async (t) => {
  const { app, user, url } = await withLink();
  const browser = new TestBrowser(service.url);
  const page = await browser.open(url);
  t.is(page.status, 200);
  t.is(page.headers.get("cache-control"), "no-store");
  t.true(page.html.text.includes(user.username));
  const { maxlength } = page.html.querySelector("#password")?.attributes ?? {};
  t.is(maxlength, undefined, "a browser would silently truncate a longer one");
  const again = await browser.open(url);
  t.is(again.status, 200, "opening the page doesn't use the link up");

  const saved = await browser.press(page, "Save password", { password: FRESH });
  t.is(saved.status, 200);
  t.regex(saved.text, /Password saved/);
  t.true(await signsIn(app, user.username, FRESH));
  t.false(await signsIn(app, user.username, user.password), "the old password is no longer valid");

  const used = await browser.open(url);
  t.is(used.status, 404);
  t.is(used.html.querySelector("a")?.attributes.href, "/auth/login", "the page has a way on");
  const second = await setPassword(url, "yet another password");
  t.is(second.status, 404);
  t.regex(second.text, /This link is no longer valid/);
  t.false(await signsIn(app, user.username, "yet another password"));
});

test.serial("a weak password is rejected on the page, and the link stays valid", async (t) => {
  const { app, user, url } = await withLink();
  const browser = new TestBrowser(service.url);
  for (const password of ["", "seven77", "x".repeat(129), "password123", "Linkgate", user.username]) {
    const page = await browser.press(await browser.open(url), "Save password", { password });
    t.is(page.status, 422, password);
    t.truthy(page.html.querySelector("[role=alert]"), password);
    t.truthy(page.html.querySelector("#password"), "the form is shown again");
    if (password && password !== user.username) t.false(page.text.includes(password), password);
  }
  t.true(await signsIn(app, user.username, user.password));
  t.is((await setPassword(url, FRESH)).status, 200);
});

test.serial("of ten concurrent uses of a link, exactly one sets its password", async (t) => {
  const { app, user, url } = await withLink();
  const passwords = Array.from({ length: 10 }, (_, index) => `the password number ${index}`);
  const answers = await Promise.all(passwords.map((password) => setPassword(url, password)));
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(9).fill(404)]);
  const winner = answers.findIndex(({ status }) => status === 200);
  t.true(await signsIn(app, user.username, passwords[winner] as string));
});

test.serial("using a link invalidates the user's other links, and no other user's", async (t) => {
  const { user, url } = await withLink();
  const other = await linkFor(user.username);
  const { url: neighbour } = await withLink();
  t.is((await setPassword(url, FRESH)).status, 200);
  t.is((await setPassword(other, FRESH)).status, 404);
  t.is((await setPassword(neighbour, FRESH)).status, 200);
});

test.serial("a link that was changed, shortened or made up is not valid", async (t) => {
  const { url } = await withLink();
  const last = url.at(-1) === "A" ? "B" : "A";
  const wrong = [
    url.slice(0, -1),
    url.slice(0, -1) + last,
    `${url}A`,
    url.toUpperCase().replace(/.*PASSWORD/, ""),
  ];
  const base = `${service.url}/auth/reset-password`;
  for (const link of [...wrong, `${base}/%00`, `${base}/${"x".repeat(5000)}`, `${base}/'%20or%201=1--`]) {
    const target = link.startsWith("http") ? link : `${base}${link}`;
    t.is((await fetch(target)).status, 404, target.slice(0, 120));
    t.is((await setPassword(target, FRESH)).status, 404, target.slice(0, 120));
  }
  t.is((await setPassword(url, FRESH)).status, 200);
});

test.serial("a reset ends every session, grant and token of the user", async (t) => {
  const { app, user, url } = await withLink();
  const browser = new TestBrowser(service.url);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { browser });
  const signedIn = await browser.open(authorizeUrl(service, app, { prompt: "consent" }));
  t.regex(signedIn.text, /Allow access\?/, "the session is valid");
  t.true(await isAcceptedByApi(service, accessToken));

  t.is((await setPassword(url, FRESH)).status, 200);
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  const after = await browser.open(authorizeUrl(service, app));
  t.truthy(after.html.querySelector("#password"), "the browser has to sign in again");
  const consent = await browser.press(signedIn, "Allow").catch((error) => error);
  t.false(String(consent.url).includes("code="), "an earlier consent page issues no code");
});

test.serial("a link expires after an hour", async (t) => {
  const { user, url } = await withLink();
  const other = await linkFor(user.username);
  advanceClock(59 * 60_000);
  t.is((await fetch(other)).status, 200);
  advanceClock(61_000);
  t.is((await fetch(url)).status, 404);
  t.is((await setPassword(url, FRESH)).status, 404);
});

test.serial(
  "while too many passwords are being checked, the form is shown again and the link remains valid",
  async (t) => {
    const { user } = await createApp(service);
    let isOver = false;
    const flood = Array.from({ length: 56 }, async () => {
      const body = new URLSearchParams({ username: "unknown", password: "a guess" });
      while (!isOver) await (await fetch(`${service.url}/auth/login`, { method: "POST", body })).text();
    });
    let refused: Response;
    do {
      const body = new URLSearchParams({ password: FRESH });
      refused = await fetch(await linkOf(user.id), { method: "POST", body });
    } while (refused.status === 200);
    isOver = true;
    await Promise.all(flood);
    t.is(refused.status, 503);
    t.is(refused.headers.get("retry-after"), "2");
    const text = await refused.text();
    t.regex(text, /The service is busy\. Try again in a moment\./);
    t.regex(text, /name="password"/);
    t.is((await setPassword(refused.url, FRESH)).status, 200);
  },
);
