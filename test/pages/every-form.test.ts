import test from "ava";
import { type HTMLElement, NodeType } from "node-html-parser";
import type { ProblemBody } from "../../resources/http/problem.ts";
import { createGallery } from "../harness/browser/gallery.ts";
import { type GalleryPage, galleryPages } from "../harness/browser/gallery-pages.ts";
import { browserOf } from "../harness/clients/dashboard.ts";
import { fillRequired, secretOn } from "../harness/clients/form-filling.ts";
import { codeOf } from "../harness/clients/second-factor.ts";
import { type Filled, type Page, TestBrowser } from "../harness/clients/test-browser.ts";
import { advanceClock, HOUR_MS } from "../harness/clock.ts";
import { startMailServer } from "../harness/mail-server.ts";
import { startWithProvider } from "../harness/providers/identity-provider.ts";
import { startReceiver } from "../harness/webhooks.ts";

export const stage = "long";

const receiver = await startReceiver();
const mail = await startMailServer();
const { service } = await startWithProvider({
  WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).hostname,
  SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
  SMTP_FROM: "linkgate@example.com",
});
const gallery = await createGallery(service, receiver);
const { organization, users } = gallery;
// Members whom others can promote, sign out and remove.
const [first] = await Promise.all(
  (["member", "member", "admin"] as const).map((role) =>
    service.createUser([organization.id], undefined, role),
  ),
);
const resetLink = `/auth/reset-password/${await service.storage.accounts.createResetToken(first?.id ?? "", HOUR_MS)}`;

type Who = GalleryPage[1];
/** An opened page, with the URL that opens it again. */
type Opened = { who: Who; from: string; browser: TestBrowser; page: Page; isAnswer?: boolean };
/** A form with one of its buttons, and the pages where it was found. */
type Task = { key: string; rank: number; places: Opened[] };

// What a user does last, because it ends what other forms need.
const LAST = [
  /delete|remove|revoke|rotate|disable|unlink/i,
  /\/plan|\/members\//,
  /\/members\/me\/delete/,
  /\/organizations\/[^/]+\/delete/,
  /account\/totp\/|sessions/,
  /logout|password/,
  /account\/delete/,
];
const WHO: Who[] = ["visitor", "member", "admin", "owner", "founder", "newcomer"];
const OWN_PATH = /^\/($|dashboard|auth|interaction|docs|oauth)/;
const PAGES_PER_KIND = 4;
// A notice, a whole consent page, and the filters of links, deliveries, clicks and the audit log: the page has the same
// forms without them.
const SAME_FORMS =
  /^(done|undo|signature|status|event_type|search|tag|archived|sort|cursor|all|part|from|to|referrer|country|device|browser|operating_system|destination|utm_\w+)$/;
const TOTP_STEP_MS = 30_000;

const pages = galleryPages(service, service, gallery, receiver);
const signedIn = new Map<Who, TestBrowser>();
const secrets = new Map<Who, string>();
const failures: string[] = [];
const seenForms = new Set<string>();
const submitted = new Set<string>();

function kindOf(url: string): string {
  const { pathname, searchParams } = new URL(url);
  const path = pathname.replaceAll(/(?<=\/)(?=[\w-]*[A-Z0-9])[\w-]{21,}(?=\/|$)/g, "…");
  const names = [...searchParams.keys()].filter((name) => !SAME_FORMS.test(name)).sort();
  return names.length > 0 ? `${path}?${names}` : path;
}

/** Opens a page as a user, who signs in first if necessary. Each visitor has a new browser. */
async function open(who: Who, from: string): Promise<Opened> {
  const browser = (who !== "visitor" && signedIn.get(who)) || new TestBrowser(service.url);
  const page = await browser.open(new URL(from, service.url).href);
  const isAtSignIn = page.url.startsWith(`${service.url}/auth/login`) && !from.startsWith("/auth/");
  if (who === "visitor" || !isAtSignIn) return { who, from, browser, page };
  const next = await browser.signIn(page, users[who]);
  const secret = secrets.get(who);
  if (secret && next.html.querySelector("#totp")) {
    advanceClock(TOTP_STEP_MS); // the last code was used
    await browser.press(next, "Continue", { totp: codeOf(secret) });
  }
  signedIn.set(who, browser);
  const opened = { who, from, browser, page: await browser.open(new URL(from, service.url).href) };
  if (opened.page.url.startsWith(`${service.url}/auth/`))
    throw new Error(`${who} can't sign in: ${next.text}`);
  return opened;
}

function buttonsOf({ html }: Page): HTMLElement[] {
  return html
    .querySelectorAll("form button")
    .filter((button) => button.attributes.type !== "button" && !button.closest("[hidden]"));
}

const isSuspended = ({ text }: Page): boolean => /This organization (is|has been) suspended/.test(text);

/** Names a form and its button, alike for all ids. */
function keyOf({ who, page }: Opened, button: HTMLElement): string {
  const { method, action = "" } = button.closest("form")?.attributes ?? {};
  const { name, value } = button.attributes;
  const text = button.childNodes
    .filter(({ nodeType }) => nodeType === NodeType.TEXT_NODE)
    .map(({ text }) => text);
  const place = button.closest("main") ? kindOf(page.url) : "header";
  const state = isSuspended(page) ? " (suspended)" : "";
  const target = kindOf(new URL(action, page.url).href);
  return `${who}, ${place}${state}: ${text.join("").trim()}${name ? ` (${name}=${value})` : ""}, ${method} ${target}`;
}

function rankOf(key: string): number {
  return LAST.findLastIndex((one) => one.test(key.slice(key.indexOf(":")))) + 1;
}

/**
 * Returns what is wrong with the response to a form. A rejected form is shown again with the reason, which must not be a
 * field that the form doesn't have.
 */
async function faultOf({ browser, page: source }: Opened, button: HTMLElement, fields: Filled, answer: Page) {
  const { status, html, text } = answer;
  if (status < 400) return undefined;
  const content = html.querySelector("main")?.text.trim().replaceAll(/\s+/g, " ") ?? text;
  if (status === 403 && isSuspended(answer)) return undefined;
  const isShownAgain = html.querySelector("main [role=alert]") && html.querySelector("main form");
  if (!isShownAgain || status >= 500 || [404, 405].includes(status)) return `${status} ${content}`;
  if (status !== 422) return undefined;
  browser.accept = "application/json";
  const { errors = [] } = JSON.parse(
    (await browser.click(source, button, fields)).text,
  ) as Partial<ProblemBody>;
  browser.accept = "text/html";
  const form = button.closest("form");
  const unknown = errors.filter(({ field }) => !form?.querySelector(`[name="${field.split(".")[0]}"]`));
  return unknown.length > 0 ? `${status} ${JSON.stringify(unknown)}` : undefined;
}

function addForms(tasks: Map<string, Task>, opened: Opened): void {
  for (const button of buttonsOf(opened.page)) {
    const key = keyOf(opened, button);
    if (seenForms.has(key)) continue;
    const task = tasks.get(key) ?? { key, rank: rankOf(key), places: [] };
    task.places.push(opened);
    tasks.set(key, task);
  }
}

async function crawl(who: Who, tasks: Map<string, Task>): Promise<void> {
  const listed = pages.flatMap(([, reader, from]) =>
    reader === who && typeof from === "string" ? [from] : [],
  );
  const starts = who === "visitor" ? ["/", resetLink] : ["/dashboard"];
  const queue = [...starts, ...listed].map((from) => ({ from, source: "" }));
  const seen = new Set<string>();
  const kinds = new Map<string, number>();
  for (let next = queue.shift(); next; next = queue.shift()) {
    const opened = await open(who, next.from);
    const { page } = opened;
    if (page.status >= (next.source ? 400 : 500))
      failures.push(`${who}, ${next.source} → ${next.from}: ${page.status}`);
    if (!page.headers.get("content-type")?.startsWith("text/html")) continue;
    addForms(tasks, opened);
    for (const link of page.html.querySelectorAll("a[href]")) {
      const { origin, pathname, search, href } = new URL(link.attributes.href ?? "", page.url);
      const from = pathname + search;
      if (origin !== service.url || !OWN_PATH.test(pathname) || seen.has(from)) continue;
      seen.add(from);
      const count = kinds.get(kindOf(href)) ?? 0;
      kinds.set(kindOf(href), count + 1);
      if (count < PAGES_PER_KIND && page.status < 400) queue.push({ from, source: kindOf(page.url) });
    }
  }
}

/** Opens a page of a form again. Some can't be opened again, because they answer another form. */
async function reopen({ key, places }: Task) {
  for (const place of places) {
    const again = await open(place.who, place.from);
    // An answer may have the URL of a page that lacks its forms.
    for (const opened of place.isAnswer ? [again, place] : [again]) {
      const button = buttonsOf(opened.page).find((one) => keyOf(opened, one) === key);
      if (button) return { opened, button };
    }
  }
  return undefined;
}

async function submit(task: Task, tasks: Map<string, Task>): Promise<void> {
  seenForms.add(task.key);
  tasks.delete(task.key);
  const found = await reopen(task);
  if (!found) return;
  const { opened, button } = found;
  const { who, browser } = opened;
  const user = users[who === "visitor" ? "newcomer" : who];
  const fields = fillRequired(button.closest("form") as HTMLElement, opened.page, user);
  const secret = secretOn(opened.page);
  const page = await browser.click(opened.page, button, fields);
  const fault = await faultOf(opened, button, fields, page);
  if (fault) failures.push(`${task.key}: ${fault}`);
  submitted.add(withoutUser(task.key));
  if (page.status >= 400) return;
  if (fields.new_password) user.password = String(fields.new_password);
  if (fields.code && secret) secrets.set(who, secret);
  const from = page.url.slice(service.url.length);
  // Each button of an authorization request ends it.
  const isUsedOnce = who !== "visitor" && from.startsWith("/interaction/");
  if (page.url.startsWith(service.url) && !isUsedOnce)
    addForms(tasks, { who, from, browser, page, isAnswer: true });
}

const withoutUser = (key: string): string => key.slice(key.indexOf(",") + 2);

for (const who of WHO)
  test.serial(
    `the links of the ${who} lead to pages, and each form is accepted or shown again`,
    async (t) => {
      // Other sessions, which can be revoked.
      if (who !== "visitor")
        await Promise.all([browserOf(service, users[who]), browserOf(service, users[who])]);
      const tasks = new Map<string, Task>();
      const next = (isLast: boolean) =>
        [...tasks.values()].filter(({ rank }) => isLast || rank === 0).sort((a, b) => a.rank - b.rank)[0];
      await crawl(who, tasks);
      for (let task = next(false); task; task = next(false)) await submit(task, tasks);
      await crawl(who, tasks);
      for (let task = next(true); task; task = next(true)) await submit(task, tasks);
      t.deepEqual(failures.splice(0), []);
    },
  );

test.serial("at least one user submits each form", (t) => {
  const never = [...seenForms].map(withoutUser).filter((key) => !submitted.has(key));
  t.deepEqual(never, []);
});
