import test from "ava";
import { browserOf } from "../harness/clients/dashboard.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const organization = await service.createOrganization();
const user = await service.createUser([organization.id]);

const IMMUTABLE = "public, max-age=31536000, immutable";

function addressesIn(text: string): string[] {
  return [...new Set([...text.matchAll(/"(\/assets\/[^"#]+)[#"]/g)].map(([, address = ""]) => address))];
}

const ALL = [
  ...["app.js", "dashboard.css", "docs.css", "docs.js", "icon.svg", "icons.svg", "inter.woff2"],
  ...["link-form.js", "passkeys.js", "search.js", "shortcuts.js", "style.css", "utm.js"],
];

test("pages load assets by addresses that are cached forever, and so do these", async (t) => {
  const { browser } = await browserOf(service, user);
  const newLink = `/dashboard/organizations/${organization.id}/links/new`;
  const found = new Set<string>();
  for (const path of ["/", "/docs", newLink, "/dashboard/account/passkeys/new"]) {
    const { text } = await browser.open(service.url + path);
    for (const address of addressesIn(text)) found.add(address);
  }
  // Also visits what is added on the way.
  for (const address of found) {
    const { status, headers, text } = await browser.open(service.url + address);
    t.is(status, 200, address);
    t.is(headers.get("cache-control"), IMMUTABLE, address);
    if (/\.(css|js)\?/.test(address)) for (const next of addressesIn(text)) found.add(next);
  }
  const names = [...found].map((address) => /^\/assets\/(\S+)\?v=[\w-]{10}$/.exec(address)?.[1]);
  t.deepEqual(names.toSorted(), ALL);
});

for (const query of ["", "?v=0123456789", "?v=", "?w=1"])
  test(`an asset with the version “${query}” is served, but not kept`, async (t) => {
    const answer = await fetch(`${service.url}/assets/style.css${query}`);
    t.is(answer.status, 200);
    t.is(answer.headers.get("cache-control"), "public, no-cache");
    t.regex(await answer.text(), /@font-face/);
  });
