import test from "ava";
import { PROMPTS } from "../../resources/mcp/prompts.ts";
import { DAY_MS } from "../harness/clock.ts";

const dayBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

/** Writes a prompt, whose arguments are checked first, as the SDK does. */
function write(name: string, args: Record<string, string>): string {
  const prompt = PROMPTS.find((one) => one.name === name);
  return prompt?.write(prompt.arguments.parse(args) as Record<string, string>) ?? "";
}

test("create_campaign contains the URLs and the parameters, and asks for those that are missing", (t) => {
  const given = { urls: "https://example.com/a\nhttps://example.com/b#c", campaign: "Spring Sale" };
  const text = write("create_campaign", { ...given, source: "newsletter" });
  t.true(text.includes(given.urls));
  t.regex(text, /the tag "Spring Sale"/);
  t.regex(text, /utm_source: newsletter\n/);
  t.regex(text, /utm_medium: not given\n\s+Ask me once/);
  const full = write("create_campaign", { ...given, source: "newsletter", medium: "email" });
  t.notRegex(full, /not given|Ask me once/);
});

test("weekly_report names the seven days before today, and the seven before them", (t) => {
  for (const args of [{}, { tag: "mail" }]) {
    const text = write("weekly_report", args);
    for (const day of [7, 1, 14, 8].map(dayBefore)) t.true(text.includes(day), day);
    t.is(text.includes('the tag "mail"'), "tag" in args);
    t.is(text.includes("get_analytics"), !("tag" in args), "it has no filter by tag");
  }
});

test("clean_up_links asks before it archives, and never deletes", (t) => {
  t.true(write("clean_up_links", {}).includes(dayBefore(90)));
  const text = write("clean_up_links", { days: "30" });
  t.true(text.includes(dayBefore(30)));
  t.regex(text, /Change nothing before I answer/);
  t.notRegex(text, /delete_link/);
});

test("arguments that are missing, empty or no number are refused with the reason", (t) => {
  for (const [name, args, message] of [
    ["create_campaign", {}, /must be a text/],
    ["create_campaign", { urls: " ", campaign: "x" }, /must not be empty/],
    ["create_campaign", { urls: "https://example.com/a", campaign: "x", source: "" }, /must not be empty/],
    ["weekly_report", { tag: "" }, /must not be empty/],
    ["clean_up_links", { days: "0" }, /must be a whole number from 1 to 9999/],
    ["clean_up_links", { days: "a few" }, /must be a whole number from 1 to 9999/],
  ] as const)
    t.throws(() => write(name, args), { message }, `${name} ${JSON.stringify(args)}`);
});
