import test from "ava";
import { parse } from "node-html-parser";
import { browserOf } from "../harness/clients/dashboard.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { prepareForm, SECRET_FORMS, type SecretForm } from "../harness/clients/secret-forms.ts";
import type { Page, TestBrowser } from "../harness/clients/test-browser.ts";
import { advanceClock } from "../harness/clock.ts";
import { startWithStorage } from "../harness/database/service-storage.ts";
import { freePort } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";

const [port, secondPort] = [await freePort(), await freePort()];
const address = { PORT: String(port), BASE_URL: `http://localhost:${port}` };
const { service, settings } = await startWithStorage(address);
await startTestService({ ...settings, PORT: String(secondPort) });

const LIFETIME_MS = 5 * 60_000;
const INVITATION = SECRET_FORMS.find(({ name }) => name === "an invitation") as SecretForm;

async function withForm(form: SecretForm) {
  const prepared = await prepareForm(service, form);
  const { browser } = await browserOf(service, prepared.owner);
  const page = await browser.open(prepared.page);
  const send = async () => {
    browser.follows = false;
    const redirect = await browser.press(page, prepared.button, form.fields);
    browser.follows = true;
    const path = redirect.headers.get("location") ?? "";
    const cookie = redirect.headers.getSetCookie().find((line) => line.includes(`path=${path};`)) ?? "";
    return { ...redirect, path, result: service.url + path, cookie, pair: cookie.split(";")[0] ?? "" };
  };
  return { ...prepared, browser, send };
}

const secretIn = ({ text }: { text: string }, { secret }: SecretForm) => secret.exec(parse(text).text)?.[0];
const cookiesAt = (url: string, { jar }: TestBrowser) => jar.getCookieString(url);
const buttonsOf = ({ html }: Page) => html.querySelectorAll("main a.button").map(({ text }) => text);

for (const form of SECRET_FORMS) {
  const { name } = form;

  test.serial(`${name} redirects to a page that shows the secret once, and leads on`, async (t) => {
    const { browser, send, created } = await withForm(form);
    const before = await created();
    const { status, text, path, result, cookie } = await send();
    const after = await created();
    t.is(status, 303);
    t.is(after.filter((id) => !before.includes(id)).length, 1);

    const shown = await browser.open(result);
    const secret = secretIn(shown, form) ?? "no secret";
    t.regex(secret, form.secret, shown.text);
    t.is(shown.status, 200);
    t.regex(buttonsOf(shown).join(), /^(Done|(Done|Go to your links),Open quick start)$/);
    t.is(shown.headers.get("cache-control"), "no-store");
    t.regex(cookie, /; httponly/i);
    t.regex(cookie, /; samesite=lax/i);
    t.true(
      Math.abs(Date.parse(/expires=([^;]+)/i.exec(cookie)?.[1] ?? "") - Date.now() - LIFETIME_MS) < 60_000,
    );
    for (const part of [secret, secret.slice(-20), Buffer.from(secret).toString("base64url").slice(4, -4)])
      t.false(`${text} ${path} ${cookie}`.includes(part), "the redirect reveals nothing");

    const again = await browser.open(result);
    t.is(again.status, 410);
    t.is(again.headers.get("cache-control"), "no-store");
    t.is(secretIn(again, form), undefined);
    t.regex(again.html.querySelector("h1")?.text ?? "", /already shown/);
    t.regex(again.html.querySelector("main")?.text ?? "", form.again ?? /can’t be shown again/);
    t.true(buttonsOf(again).includes(form.next), buttonsOf(again).join());
    t.deepEqual(await created(), after, "a reload creates nothing");
  });

  test.serial(`only the session that submitted the form can open the page after ${name}`, async (t) => {
    const { browser, send, owner, member } = await withForm(form);
    const { path, result, pair } = await send();
    const own = await cookiesAt(service.url, browser);
    const [elsewhere, colleague] = await Promise.all(
      [owner, member].map(async (user) => cookiesAt(service.url, (await browserOf(service, user)).browser)),
    );
    const open = async (cookie: string, url = result, accept = "text/html") => {
      const answer = await fetch(url, { headers: { accept, cookie }, redirect: "manual" });
      return { status: answer.status, text: await answer.text() };
    };
    const otherView = path.slice(0, -22) + "A".repeat(22);
    const changed = pair.slice(0, -3) + (pair.endsWith("AAA") ? "BBB" : "AAA");
    const refusals: [what: string, status: number, refused: Awaited<ReturnType<typeof open>>][] = [
      ["another page", 410, await open(`${own}; ${pair}`, service.url + otherView)],
      ["another cookie", 410, await open(`${own}; ${changed}`)],
      ["an API client", 404, await open(`${own}; ${pair}`, result, "application/json")],
      ["a visitor", 303, await open(pair)],
      ["another session of the user", 410, await open(`${elsewhere}; ${pair}`)],
      ["a member", 403, await open(`${colleague}; ${pair}`)],
    ];
    for (const [what, status, refused] of refusals) {
      t.is(refused.status, status, what);
      t.is(secretIn(refused, form), undefined, what);
    }
    t.truthy(secretIn(await browser.open(result), form), "the session can still open the page");
  });
}

test.serial("any process can serve the page, and a HEAD request does not use it up", async (t) => {
  const { browser, send } = await withForm(INVITATION);
  const { path, result } = await send();
  await browser.open(result, { method: "HEAD" });
  const headers = ["host", `localhost:${port}`, "accept", "text/html", "cookie"];
  const shown = await sendRaw(`http://127.0.0.1:${secondPort}`, path, {
    headers: [...headers, await cookiesAt(result, browser)],
  });
  t.is(shown.status, 200);
  t.truthy(secretIn(shown, INVITATION));
});

test.serial("each of several secrets has its own page, and they open in any order", async (t) => {
  const { browser, send } = await withForm(INVITATION);
  const results = [(await send()).result, (await send()).result, (await send()).result];
  const secrets = [];
  for (const result of results.toReversed()) secrets.push(secretIn(await browser.open(result), INVITATION));
  t.is(new Set(secrets).size, 3);
  t.false(secrets.includes(undefined));
  for (const result of results) t.is((await browser.open(result)).status, 410);
});

test.serial("a secret page that is not opened within five minutes shows nothing", async (t) => {
  const { browser, send } = await withForm(INVITATION);
  const { result, pair } = await send();
  const cookie = `${await cookiesAt(service.url, browser)}; ${pair}`;
  advanceClock(LIFETIME_MS + 1000);
  const late = await fetch(result, { headers: { accept: "text/html", cookie } });
  t.is(late.status, 410);
  t.is(secretIn({ text: await late.text() }, INVITATION), undefined);
});
