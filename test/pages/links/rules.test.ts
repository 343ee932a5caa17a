import test from "ava";
import { linksInBrowser } from "../../harness/clients/pages.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const STORE = "https://example.com/store";

test("rules are added, shown, changed and removed in the form", async (t) => {
  const { browser, open, list, look } = await linksInBrowser(service);
  const filled = { url: "https://example.com/", "rule-1-os": "iOS", "rule-1-url": STORE };
  const created = await browser.press(await open("/new"), "Create link", filled);
  const [link] = await list();
  if (!link) return t.fail();
  t.deepEqual(link.rules, [{ if: { os: "iOS" }, url: STORE }]);
  t.true(created.html.querySelectorAll("dt").some(({ text }) => text === "System iOS"));

  const form = await open(`/${link.id}/edit`);
  t.is(form.html.querySelectorAll("fieldset.rule").length, 3, "one, and two to fill in");
  const unchanged = await browser.press(form, "Save link");
  t.regex(unchanged.text, /Link saved/);
  t.is((await look(link.id)).updated_at, link.updated_at);
  await browser.press(form, "Save link", { "rule-0-os": "", "rule-0-url": "" });
  t.deepEqual((await look(link.id)).rules, []);
});

test("what is wrong with a rule is said beside its field, and every value is kept", async (t) => {
  const { browser, open, list } = await linksInBrowser(service);
  const form = await open("/new");
  const filled = {
    url: "https://example.com/",
    "rule-0-language": "german language",
    "rule-0-url": STORE,
  };
  const rejected = await browser.press(form, "Create link", filled);
  t.is(rejected.status, 422);
  const input = (page: typeof rejected, name: string) => page.html.querySelector(`[name=rule-0-${name}]`);
  t.is(input(rejected, "language")?.attributes["aria-invalid"], "true");
  t.is(input(rejected, "language")?.attributes.value, "german language");
  t.is(input(rejected, "url")?.attributes.value, STORE);
  t.deepEqual(
    rejected.html.querySelectorAll("p.error").map(({ text }) => text),
    ["Must be a language, such as de or pt-BR."],
  );
  const lone = await browser.press(form, "Create link", {
    url: "https://example.com/",
    "rule-0-url": STORE,
  });
  t.deepEqual(
    lone.html.querySelectorAll("p.error").map(({ text }) => text),
    ["Must have a condition."],
  );
  t.deepEqual(await list(), []);
});
