import test from "ava";
import { LINK_DEFAULTS, type Link } from "../../resources/links/types.ts";
import { formFieldOf, toInput, valuesOf } from "../../server/dashboard/links/form.ts";

const DESTINATION = "https://example.com/a%20b?x=%2F&utm_source=old&y&utm_source=older#top";
const CARD = { title: "Card", description: "Two\r\nlines", image_url: null };
const show = (fields: Partial<Link>) =>
  valuesOf({ ...LINK_DEFAULTS, url: DESTINATION, slug: "spring", ...fields } as Partial<Link> as Link);
const shown = show({ title: "Spring", card: CARD });

for (const [typed, url] of [
  ["example.com", "https://example.com"],
  [" example.com:8080/a?b=c#d ", "https://example.com:8080/a?b=c#d"],
  ["münchen.example?a=https://b.example", "https://münchen.example?a=https://b.example"],
  ["http://example.com/", "http://example.com/"],
  ["HTTPS://example.com/", "HTTPS://example.com/"],
] as const)
  test(`the form of a link understands “${typed}” as ${url}`, (t) => {
    t.deepEqual(toInput({ url: typed, fallback_url: typed }), { url, fallback_url: url });
  });

const MEDIUM = { utm_medium: "email", utm_campaign: "spring", utm_term: " " };
const utm = (query: string) => ({ url: `https://example.com/a%20b?x=%2F&${query}#top` });
const SENT = { ...CARD, description: "Two\nlines" };
const IMAGE_URL = "https://example.com/a.png";
const UNTITLED = { description: "New", image_url: null };
const EMPTY = { card_title: "", card_description: "", card_image_url: "" };
for (const [what, fields, input] of [
  ["nothing", {}, {}],
  ["a new source", { utm_source: "News & more" }, utm("utm_source=News%20%26%20more&y")],
  ["no source", { utm_source: "" }, utm("y")],
  ["a medium", MEDIUM, utm("utm_source=old&y&utm_source=older&utm_medium=email&utm_campaign=spring")],
  ["another URL", { url: "example.org/?utm_source=new" }, { url: "https://example.org/?utm_source=new" }],
  ["both", { url: "example.org", utm_source: "new" }, { url: "https://example.org?utm_source=new" }],
  ["a title of spaces", { title: "  " }, { title: null }],
  ["a title with spaces around", { title: " A " }, { title: " A " }],
  ["tags", { tags: "mail, spring , ,mail" }, { tags: ["mail", "spring", "mail"] }],
  ["a time", { expires_at: "2030-01-31T12:00" }, { expires_at: "2030-01-31T12:00:00Z" }],
  ["a limit", { max_clicks: "100" }, { max_clicks: 100 }],
  ["another card title", { card_title: " A " }, { card: { ...SENT, title: " A " } }],
  ["a card image", { card_image_url: " example.com/a.png" }, { card: { ...SENT, image_url: IMAGE_URL } }],
  ["no card description", { card_description: "" }, { card: { ...CARD, description: null } }],
  ["no card", { card_title: " " }, { card: null }],
  ["no card, if all of its fields are empty", EMPTY, { card: null }],
  ["a card description without a title", { ...EMPTY, card_description: "New" }, { card: UNTITLED }],
] as const)
  test(`of a link that is shown, the form sends ${what}, and no field that is as it was`, (t) => {
    t.is(shown.utm_source, "old");
    const submitted = { ...shown, card_description: "Two\r\nlines", ...fields };
    t.deepEqual(toInput(submitted, shown), input);
  });

const RULES: Link["rules"] = [
  { if: { os: "iOS" }, url: "https://example.com/ios" },
  { if: { language: "de", after: "2030-01-31T12:00:00.000Z" }, url: "https://example.com/de" },
];
const ROWS = {
  ...{ "rule-0-device": "", "rule-0-os": "iOS", "rule-0-url": "https://example.com/ios" },
  ...{ "rule-1-language": "de", "rule-1-after": "2030-01-31T12:00" },
  ...{ "rule-1-url": "https://example.com/de", "rule-2-os": "", "rule-2-url": " " },
};

test("the fields of rules are one value: unchanged, changed, without an emptied rule, or removed", (t) => {
  const withRules = show({ rules: RULES });
  const send = (rows: object) => toInput({ ...withRules, ...rows }, withRules).rules;
  const [first, second] = RULES as [Link["rules"][number], Link["rules"][number]];
  const sent = { ...second, if: { ...second.if, after: "2030-01-31T12:00:00Z" } };
  t.is(send(ROWS), undefined);
  const moved = { ...first, url: "https://example.com/new" };
  t.deepEqual(send({ ...ROWS, "rule-0-url": "example.com/new" }), [moved, sent]);
  t.deepEqual(send({ ...ROWS, "rule-0-os": "", "rule-0-url": "" }), [sent]);
  t.deepEqual(send(Object.fromEntries(Object.keys(ROWS).map((name) => [name, ""]))), []);
  t.is(send({ rules: "[" }), undefined, "only the fields of the form count");
  const withSeconds = { if: { before: "2030-01-31T12:00:30.000Z" }, url: DESTINATION };
  const precise = show({ rules: [withSeconds] });
  t.regex(precise.rules, /"before":"2030-01-31T12:00:30"/);
  t.deepEqual(toInput({ url: DESTINATION, ...ROWS }).rules, [first, sent]);
});

test("of a new link, the form sends a card only if one of its fields is filled in, and UTM parameters in the URL", (t) => {
  t.deepEqual(toInput(EMPTY), { card: null });
  const filled = { title: "A", description: null, image_url: null };
  t.deepEqual(toInput({ ...EMPTY, card_title: "A" }), { card: filled });
  t.deepEqual(toInput({ ...EMPTY, card_image_url: "example.com" }), {
    card: { description: null, image_url: "https://example.com" },
  });
  const withTerm = { url: "example.com?utm_term=old", utm_term: "a b" };
  t.deepEqual(toInput(withTerm), { url: "https://example.com?utm_term=a%20b" });
});

test("errors are shown beside the field of the form, those of a card beside its parts", (t) => {
  for (const [field, shownBy] of [
    ["url", "url"],
    ["tags.2", "tags"],
    ["card.title", "card_title"],
    ["card.image_url", "card_image_url"],
    ["metadata.a", "metadata"],
    ["rules", "rules"],
    ["rules.0.url", "rule-0-url"],
    ["rules.19.if.language", "rule-19-language"],
    ["rules.2.if", "rule-2"],
  ] as const)
    t.is(formFieldOf(field), shownBy);
});

test("an empty short link of a new link is left out, and words other than true and false stay as they are", (t) => {
  t.deepEqual(toInput({ slug: " ", archived: "perhaps", unknown: 1 }), { archived: "perhaps", unknown: 1 });
  t.deepEqual(toInput({ archived: "true" }), { archived: true });
});
