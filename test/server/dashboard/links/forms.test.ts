import test from "ava";
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
  });
});

const INVALID_VALUES: [field: string, value: string, message: RegExp][] = [
  ["url", "example.com", /absolute URL/],
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
