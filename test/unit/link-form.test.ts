import test from "ava";
import { LINK_DEFAULTS, type Link } from "../../resources/links/types.ts";
import { toInput, valuesOf } from "../../server/dashboard/links/form.ts";

const DESTINATION = "https://example.com/a%20b?x=%2F&utm_source=old&y&utm_source=older#top";
const shown = valuesOf({
  ...LINK_DEFAULTS,
  url: DESTINATION,
  slug: "spring",
  title: "Spring",
} as Partial<Link> as Link);

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
for (const [what, fields, input] of [
  ["nothing", {}, {}],
  ["a new source", { utm_source: "News & more" }, utm("utm_source=News%20%26%20more&y")],
  ["no source", { utm_source: "" }, utm("y")],
  ["a medium", MEDIUM, utm("utm_source=old&y&utm_source=older&utm_medium=email&utm_campaign=spring")],
  ["another URL", { url: "example.org/?utm_source=new" }, { url: "https://example.org/?utm_source=new" }],
  ["both", { url: "example.org", utm_source: "new" }, { url: "https://example.org?utm_source=new" }],
  ["a title of spaces", { title: "  " }, { title: null }],
  ["a title with spaces around", { title: " A " }, { title: " A " }],
  ["an external ID with a space", { external_id: "crm-7 " }, { external_id: "crm-7 " }],
  ["tags", { tags: "mail, spring , ,mail" }, { tags: ["mail", "spring", "mail"] }],
  ["a time", { expires_at: "2030-01-31T12:00" }, { expires_at: "2030-01-31T12:00:00Z" }],
  ["a limit", { max_clicks: "100" }, { max_clicks: 100 }],
  ["another redirect", { redirect_type: "307" }, { redirect_type: 307 }],
] as const)
  test(`of a link that is shown, the form sends ${what}, and no field that is as it was`, (t) => {
    t.is(shown.utm_source, "old");
    t.deepEqual(toInput({ ...shown, ...fields }, shown), input);
  });

test("an empty short link of a new link is left out, and words other than true and false stay as they are", (t) => {
  t.deepEqual(toInput({ slug: " ", archived: "perhaps", unknown: 1 }), { archived: "perhaps", unknown: 1 });
  t.deepEqual(toInput({ archived: "true" }), { archived: true });
});
