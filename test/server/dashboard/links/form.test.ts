import test from "ava";
import { isProblem } from "../../../harness/clients/api.ts";
import { isMarked, linksInBrowser, typedIn } from "../../../harness/clients/pages.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const FILLED = {
  url: "https://example.com/spring",
  slug: "spring-2030",
  title: "Spring & <more>",
  tags: "mail, spring , ,mail",
  expires_at: "2030-01-31T12:00",
  max_clicks: "100",
  redirect_type: "307",
  external_id: "my-1",
  fallback_url: "https://example.com/sorry",
};

test("the form creates and edits every field of a link", async (t) => {
  const { browser, list, look, open } = await linksInBrowser(service);
  const created = await browser.press(await open("/new"), "Create link", FILLED);
  t.is(created.html.querySelector("h1")?.text, "Spring & <more>");
  const [link] = await list();
  if (!link) return t.fail();
  t.like(link, {
    url: FILLED.url,
    slug: FILLED.slug,
    title: FILLED.title,
    tags: ["mail", "spring"],
    expires_at: "2030-01-31T12:00:00.000Z",
    max_clicks: 100,
    redirect_type: 307,
    external_id: "my-1",
    fallback_url: FILLED.fallback_url,
  });
  const form = await open(`/${link.id}/edit`);
  for (const [name, value] of Object.entries({ ...FILLED, tags: "mail, spring" })) {
    t.is(typedIn(form, name), value, name);
  }
  const unchanged = await browser.press(form, "Save link");
  t.regex(unchanged.text, /Link saved/);
  t.is((await look(link.id)).updated_at, link.updated_at);
  const cleared = {
    title: "",
    tags: "",
    expires_at: "",
    max_clicks: "",
    external_id: "",
    redirect_type: "302",
    fallback_url: "",
  };
  await browser.press(form, "Save link", cleared);
  t.like(await look(link.id), {
    slug: FILLED.slug,
    title: null,
    tags: [],
    expires_at: null,
    max_clicks: null,
    external_id: null,
    redirect_type: 302,
    fallback_url: null,
  });
});

test("spaces around a title and an external ID are kept, as in the API", async (t) => {
  const { browser, list, look, open } = await linksInBrowser(service);
  await browser.press(await open("/new"), "Create link", {
    ...FILLED,
    slug: "spaces",
    external_id: "crm-7 ",
    title: " A ",
  });
  const [link] = await list();
  if (!link) return t.fail();
  t.like(link, { external_id: "crm-7 ", title: " A " });
  await browser.press(await open(`/${link.id}/edit`), "Save link", { max_clicks: "7", title: "  " });
  t.like(await look(link.id), { external_id: "crm-7 ", title: null, max_clicks: 7 });
});

const WITHOUT_SCHEME: [typed: string, url: string][] = [
  ["example.com", "https://example.com"],
  [" example.com:8080/a?b=c#d ", "https://example.com:8080/a?b=c#d"],
  ["münchen.example?a=https://b.example", "https://münchen.example?a=https://b.example"],
  ["http://example.com/", "http://example.com/"],
  ["HTTPS://example.com/", "HTTPS://example.com/"],
];
for (const [typed, url] of WITHOUT_SCHEME) {
  test(`the form understands “${typed}” as ${url}, and the API doesn't add a scheme`, async (t) => {
    const { browser, list, member, open, path } = await linksInBrowser(service);
    await browser.press(await open("/new"), "Create link", { url: typed, fallback_url: typed });
    t.like((await list())[0], { url, fallback_url: url });
    if (/^https?:/i.test(typed)) return;
    const reply = await member.api.send("POST", path, { json: { url: typed } });
    isProblem(t, reply, { status: 422, code: "invalid_url", fields: ["url"] });
  });
}

const DESTINATION = "https://example.com/a%20b?x=%2F&utm_source=old&y&utm_source=older#top";
const UTM_CHANGES: [what: string, fields: object, url: string][] = [
  ["none", {}, DESTINATION],
  [
    "a new source",
    { utm_source: "News & more" },
    "https://example.com/a%20b?x=%2F&utm_source=News%20%26%20more&y#top",
  ],
  ["no source", { utm_source: "" }, "https://example.com/a%20b?x=%2F&y#top"],
  [
    "a medium and a campaign",
    { utm_medium: "email", utm_campaign: "spring", utm_term: " " },
    "https://example.com/a%20b?x=%2F&utm_source=old&y&utm_source=older&utm_medium=email&utm_campaign=spring#top",
  ],
  ["another URL", { url: "example.org/?utm_source=new" }, "https://example.org/?utm_source=new"],
  [
    "another URL and a source",
    { url: "example.org", utm_source: "new" },
    "https://example.org?utm_source=new",
  ],
];
for (const [what, fields, url] of UTM_CHANGES) {
  test(`the form of a link with UTM parameters saves ${what}, and keeps the rest of the URL`, async (t) => {
    const { browser, create, look, open } = await linksInBrowser(service);
    const link = await create({ url: DESTINATION });
    const form = await open(`/${link.id}/edit`);
    t.is(typedIn(form, "utm_source"), "old");
    t.is(typedIn(form, "utm_medium"), "");
    await browser.press(form, "Save link", { ...fields });
    t.is((await look(link.id)).url, url);
  });
}

test("a new link gets the UTM parameters of the form, also after a rejected attempt", async (t) => {
  const { browser, list, open } = await linksInBrowser(service);
  const fields = {
    url: "example.com/?utm_source=old",
    utm_source: "mail",
    utm_content: "a b",
    slug: "admin",
  };
  const rejected = await browser.press(await open("/new"), "Create link", fields);
  isMarked(t, rejected, "slug", /reserved/);
  t.is(typedIn(rejected, "utm_content"), "a b");
  await browser.press(rejected, "Create link", { slug: "" });
  t.is((await list())[0]?.url, "https://example.com/?utm_source=mail&utm_content=a%20b");
});

test("the form previews what visitors see", async (t) => {
  const { create, open } = await linksInBrowser(service);
  const { id, slug } = await create({ url: "https://example.com/<b>?a=1", title: "Spring & <more>" });
  const preview = (await open(`/${id}/edit`)).html.querySelector(".preview");
  t.deepEqual(
    preview?.querySelectorAll("dd").map(({ text }) => text),
    [`${service.url.slice("http://".length)}/${slug}`, "example.com/%3Cb%3E?a=1", "Spring & <more>"],
  );
  const empty = (await open("/new")).html.querySelector(".preview");
  t.deepEqual(
    empty?.querySelectorAll("dd").map(({ text }) => text),
    [`${service.url.slice("http://".length)}/…`, "…", "none"],
  );
});

const INVALID_VALUES: [field: string, value: string, message: RegExp][] = [
  ["url", "example", /absolute URL/],
  ["url", "javascript:alert(1)", /http or https/],
  ["url", "", /absolute URL/],
  ["url", "ftp://example.com/", /http or https/],
  ["slug", "not a slug", /1 to 64 characters/],
  ["slug", "admin", /reserved/],
  ["slug", "taken", /taken/],
  ["tags", `${"a".repeat(51)}, b`, /1 to 50 characters/],
  ["expires_at", "2001-01-01T00:00", /future/],
  ["expires_at", "tomorrow", /RFC 3339/],
  ["max_clicks", "0", /at least 1/],
  ["max_clicks", "many", /whole number/],
  ["redirect_type", "200", /301, 302, 307 or 308/],
  ["title", "a".repeat(256), /1 to 255/],
  ["external_id", "mine", /used by another link/],
  ["fallback_url", "mailto:ada@example.com", /http or https/],
  ["fallback_url", service.url, /this service/],
];

for (const [field, value, message] of INVALID_VALUES) {
  test(`the ${field} “${value.slice(0, 20)}” is rejected with an error beside the field`, async (t) => {
    const { browser, create, look, list, open } = await linksInBrowser(service);
    const { slug } = await create({ external_id: "mine" });
    const filled = { ...FILLED, slug: `${slug}-2`, [field]: value === "taken" ? slug : value };
    const link = await create();
    for (const [address, button] of [
      ["new", "Create link"],
      [`${link.id}/edit`, "Save link"],
    ] as const) {
      const form = await open(`/${address}`);
      const rejected = await browser.press(form, button, filled);
      t.true([409, 422].includes(rejected.status), String(rejected.status));
      isMarked(t, rejected, field, message);
      for (const [name, value] of Object.entries(filled)) {
        if (name !== "redirect_type") t.is(typedIn(rejected, name), value, name);
      }
    }
    t.is((await list()).length, 2);
    t.deepEqual(await look(link.id), link);
  });
}
