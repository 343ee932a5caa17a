import test from "ava";
import { isMarked, linksInBrowser, typedIn } from "../../harness/clients/pages.ts";
import { alertOn, textsOn } from "../../harness/clients/team-pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const FILLED = {
  card_title: "Spring <sale>",
  card_description: "Half price\r\nuntil May",
  card_image_url: "example.com/spring.png",
};
const CARD = {
  title: "Spring <sale>",
  description: "Half price\nuntil May",
  image_url: "https://example.com/spring.png",
};

const describedIn = (page: Page) => page.html.querySelector("[name=card_description]")?.text;
const isOpen = (page: Page) =>
  page.html.querySelector("[name=card_title]")?.closest("details")?.attributes.open !== undefined;

test("the form creates a card, which the page of the link shows, and keeps it", async (t) => {
  const { browser, list, look, open } = await linksInBrowser(service);
  const form = await open("/new");
  t.false(isOpen(form));
  const created = await browser.press(form, "Create link", { url: "https://example.com/", ...FILLED });
  const [link] = await list();
  if (!link) return t.fail();
  t.deepEqual(link.card, CARD);
  const facts = textsOn(created, "dl.facts dd").join("\n");
  for (const text of Object.values(CARD)) t.true(facts.includes(text), text);
  const edit = await open(`/${link.id}/edit`);
  t.true(isOpen(edit));
  t.is(typedIn(edit, "card_title"), CARD.title);
  t.is(typedIn(edit, "card_image_url"), CARD.image_url);
  t.is(describedIn(edit), CARD.description);
  await browser.press(edit, "Save link", { card_description: FILLED.card_description });
  t.is((await look(link.id)).updated_at, link.updated_at);
});

test("the form changes a part of a card, and removes it with its title; the quick form keeps it", async (t) => {
  const { browser, create, look, open } = await linksInBrowser(service);
  const { id } = await create({ card: CARD });
  await browser.press(await open(`/${id}`), "Save", { title: "Quick" });
  t.deepEqual((await look(id)).card, CARD);
  await browser.press(await open(`/${id}/edit`), "Save link", { card_image_url: "" });
  t.deepEqual((await look(id)).card, { ...CARD, image_url: null });
  await browser.press(await open(`/${id}/edit`), "Save link", { card_title: " " });
  t.is((await look(id)).card, null);
  t.false(textsOn(await open(`/${id}`), "dl.facts dt").includes("Card"));
});

test("an error of a card is shown beside its field, and every value is kept", async (t) => {
  const { browser, create, list, look, open } = await linksInBrowser(service);
  const link = await create();
  const forms = { "Create link": await open("/new"), "Save link": await open(`/${link.id}/edit`) };
  for (const [field, value, message] of [
    ["card_title", "", /is required/i],
    ["card_title", "a".repeat(256), /1 to 255 characters/],
    ["card_description", "a".repeat(501), /at most 500 characters/],
    ["card_image_url", service.url, /this service/],
    ["card_image_url", "javascript:alert(1)", /http or https/],
  ] as const)
    for (const [button, form] of Object.entries(forms)) {
      const filled = { url: "https://example.com/", ...FILLED, [field]: value };
      const rejected = await browser.press(form, button, filled);
      t.is(rejected.status, 422);
      isMarked(t, rejected, field, message);
      t.true(isOpen(rejected));
      t.is(typedIn(rejected, "card_title"), filled.card_title);
      t.is(describedIn(rejected), filled.card_description);
    }
  t.is((await list()).length, 1);
  t.deepEqual(await look(link.id), link);
});

test("a concurrent change of a card is shown with the differences", async (t) => {
  const { browser, create, open, owner, path, look } = await linksInBrowser(service);
  const { id } = await create({ card: CARD });
  const form = await open(`/${id}/edit`);
  await owner.api.send("PATCH", `${path}/${id}`, { json: { card: { ...CARD, title: "Theirs" } } });
  const rejected = await browser.press(form, "Save link", {
    card_title: "Mine",
    card_description: FILLED.card_description,
  });
  t.regex(alertOn(rejected), /was changed while you were editing/);
  t.deepEqual(textsOn(rejected, "main tbody td"), ["Card title", "Theirs", "Mine"]);
  await browser.press(rejected, "Save link");
  t.deepEqual((await look(id)).card, { ...CARD, title: "Mine" });
});
