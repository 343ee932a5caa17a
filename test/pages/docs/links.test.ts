import { readdirSync } from "node:fs";
import test from "ava";
import { type HTMLElement, parse } from "node-html-parser";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const BYTES_MAX = 60_000;

const service = await startTestService();
/** Opens every page that can be reached from the first one by links. */
async function crawl(): Promise<Map<string, HTMLElement>> {
  const pages = new Map<string, HTMLElement>();
  const pending = ["/docs"];
  for (const address of pending) {
    if (pages.has(address)) continue;
    const response = await fetch(service.url + address);
    if (!response.headers.get("content-type")?.startsWith("text/html") || response.status !== 200) continue;
    const text = await response.text();
    const html = parse(text);
    html.setAttribute("data-bytes", String(Buffer.byteLength(text)));
    pages.set(address, html);
    pending.push(
      ...linksOf(html, address)
        .map(({ pathname }) => pathname)
        .filter((path) => path.startsWith("/docs") && !path.endsWith(".md")),
    );
  }
  return pages;
}

function linksOf(html: HTMLElement, address: string): URL[] {
  return html
    .querySelectorAll("a[href]")
    .map((link) => new URL(link.getAttribute("href") ?? "", service.url + address))
    .filter(({ origin }) => origin === service.url);
}

const pages = await crawl();
const ids = new Map(
  Array.from(pages, ([address, html]) => [address, html.querySelectorAll("[id]").map(({ id }) => id)]),
);

test("every file of docs/ is a page or a file beside them", async (t) => {
  t.true(pages.size > 150);
  for (const file of readdirSync(`${ROOT}docs`, { recursive: true, encoding: "utf8" })) {
    if (!/\.\w+$/.test(file)) continue;
    // Not for users, so linked from no table of docs/README.md.
    if (["README.md", "architecture.md", "releasing.md"].includes(file)) continue;
    t.is((await fetch(`${service.url}/docs/${file}`)).status, 200, file);
    if (file.endsWith(".md")) t.true(pages.has(`/docs/${file.slice(0, -3)}`), file);
  }
});

test("every page is below 60 KB, as HTML and as Markdown", async (t) => {
  for (const [address, html] of pages) {
    const bytes = Number(html.getAttribute("data-bytes"));
    t.true(bytes < BYTES_MAX, `${address}: ${bytes}`);
    const alternate = html.querySelector("link[rel=alternate]")?.getAttribute("href");
    const response = await fetch(service.url + alternate);
    t.is(response.headers.get("content-type"), "text/markdown; charset=utf-8", address);
    const text = await response.text();
    t.regex(text, /^# /, address);
    t.true(Buffer.byteLength(text) < BYTES_MAX, address);
    const same = await fetch(service.url + address, { headers: { accept: "text/markdown" } });
    t.is(await same.text(), text, address);
  }
});

test("ids are unique, and every link leads to a page, and to an element that it has", async (t) => {
  const others = new Set<string>();
  for (const [address, html] of pages) {
    const own = ids.get(address) ?? [];
    t.is(new Set(own).size, own.length, address);
    for (const { pathname, hash } of linksOf(html, address)) {
      if (!pages.has(pathname)) others.add(pathname);
      else if (hash !== "")
        t.true(ids.get(pathname)?.includes(decodeURIComponent(hash.slice(1))), address + pathname + hash);
    }
  }
  for (const other of others)
    t.true((await fetch(service.url + other, { headers: { accept: "text/html" } })).ok, other);
});

test("every link of the Markdown leads to a page", async (t) => {
  const addresses = new Set<string>();
  for (const address of pages.keys()) {
    const text = await (await fetch(service.url + address, { headers: { accept: "text/markdown" } })).text();
    for (const [, target = ""] of text.matchAll(/\]\((?!https?:|mailto:|#)([^)]*)\)/g))
      if (!text.includes("`](")) t.fail(`${address}: ${target} is relative`);
    for (const [target = ""] of text.matchAll(/(?<=\]\()http[^)#]*(?=[)#])/g))
      if (target.startsWith(`${service.url}/docs`)) addresses.add(target);
  }
  t.true(addresses.size > 100);
  for (const address of addresses) t.is((await fetch(address)).status, 200, address);
});

test("/llms.txt lists the pages of the navigation, each with what it is about", async (t) => {
  const response = await fetch(`${service.url}/llms.txt`);
  t.is(response.headers.get("content-type"), "text/plain; charset=utf-8");
  const text = await response.text();
  t.regex(text, /^# linkgate\n\n> .+\n/);
  const links = [...text.matchAll(/^- \[(.+)\]\((.+)\): (.+)$/gm)];
  t.is(links.length, text.match(/^- /gm)?.length ?? 0);
  for (const [, title = "", address = ""] of links) {
    const response = await fetch(address);
    t.is(response.headers.get("content-type"), "text/markdown; charset=utf-8", title);
  }
  const listed = links.map(([, , address = ""]) => new URL(address).pathname.replace(/\.md$/, ""));
  const navigation = pages.get("/docs/api")?.querySelectorAll(".sidebar a") ?? [];
  const hrefs = navigation.map((link) => link.getAttribute("href"));
  t.deepEqual(["/docs", ...listed], hrefs);
});
