import type { IncomingMessage } from "node:http";
import test from "ava";
import Bowser from "bowser";
import fc from "fast-check";
import { validate } from "../../resources/http/validate.ts";
import { createReadClickSource } from "../../resources/links/redirect.ts";
import type { Rule, Visitor } from "../../resources/links/redirect-rules.ts";
import { DEVICES, destinationOf, SYSTEMS, varyOf } from "../../resources/links/redirect-rules.ts";
import { NO_NAMES } from "../../resources/links/rules.ts";
import { linkSchemas } from "../../resources/links/schema.ts";

const NOW = Date.UTC(2026, 5, 1, 12);
const UNKNOWN: Visitor = {
  device: null,
  operatingSystem: null,
  country: null,
  query: "",
  readLanguage: () => undefined,
};

const ruleOf = (conditions: Rule["if"], name = "rule"): Rule => ({
  if: conditions,
  url: `https://example.com/${name}`,
});
const isFor = (conditions: Rule["if"], visitor: Partial<Visitor>, now = NOW) =>
  destinationOf([ruleOf(conditions)], { ...UNKNOWN, ...visitor }, now) !== undefined;

const readSource = createReadClickSource(undefined);
const visitorOf = (userAgent: string) =>
  readSource({ headers: { "user-agent": userAgent } } as unknown as IncomingMessage);

const WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)";
const BLINK = "AppleWebKit/537.36 (KHTML, like Gecko)";
const INSTAGRAM = "Instagram 390.0.0.28.85 (iPhone15,2; iOS 18_5; en_US; en; scale=3.00; 1179x2556)";
const AGENTS: [system: string, browser: string, os: Rule["if"]["os"], device: Rule["if"]["device"]][] = [
  ["iPhone; CPU iPhone OS 18_5 like Mac OS X", `${WEBKIT} Mobile/15E148 ${INSTAGRAM}`, "iOS", "mobile"],
  ["iPad; CPU OS 17_7 like Mac OS X", `${WEBKIT} CriOS/140.0.7339.101 Safari/604.1`, "iOS", "tablet"],
  ["Linux; Android 10; K", `${BLINK} Chrome/140.0.0.0 Mobile Safari/537.36`, "Android", "mobile"],
  ["Linux; Android 15; SM-X710", `${BLINK} Chrome/140.0.0.0 Safari/537.36`, "Android", "tablet"],
  ["Android 14; Tablet; rv:142.0", "Gecko/142.0 Firefox/142.0", "Android", "tablet"],
  ["Windows NT 10.0; Win64; x64", `${BLINK} Chrome/140.0.0.0 Safari/537.36`, "Windows", "desktop"],
  ["Macintosh; Intel Mac OS X 10.15; rv:142.0", "Gecko/20100101 Firefox/142.0", "macOS", "desktop"],
  ["X11; Linux x86_64", `${BLINK} Chrome/140.0.0.0 Safari/537.36`, "Linux", "desktop"],
  ["X11; CrOS x86_64 14541.0.0", `${BLINK} Chrome/140.0.0.0 Safari/537.36`, "Chrome OS", "desktop"],
];

test("devices and systems are those of the user agent", (t) => {
  for (const [system, browser, os, device] of AGENTS) {
    const visitor = visitorOf(`Mozilla/5.0 (${system}) ${browser}`);
    const systems = SYSTEMS.filter((one) => isFor({ os: one }, visitor));
    const devices = DEVICES.filter((kind) => isFor({ device: kind }, visitor));
    t.deepEqual([systems, devices], [[os], [device]], `${system} ${browser}`);
  }
  for (const userAgent of ["", "curl/8.5.0"]) {
    const visitor = visitorOf(userAgent);
    for (const os of SYSTEMS) t.false(isFor({ os }, visitor), userAgent);
  }
});

const LANGUAGES: [range: string, preferred: string | undefined, applies: boolean][] = [
  ["de", "de", true],
  ["de", "de-AT", true],
  ["DE", "de-at", true],
  ["de-AT", "de", false],
  ["de", "den", false],
  ["zh-Hant", "zh-Hant-TW", true],
  ["zh-Hant", "zh-TW", false],
  ["de", "*", false],
  ["de", undefined, false],
];

test("a language is a basic range, of the language that the visitor prefers (RFC 4647 §3.3.1)", (t) => {
  for (const [language, preferred, applies] of LANGUAGES)
    t.is(isFor({ language }, { readLanguage: () => preferred }), applies, `${language} of ${preferred}`);
});

const PARAMETERS: [wanted: string, query: string, applies: boolean][] = [
  ["ref=mail", "ref=web&ref=mail", true],
  ["ref=mail", "ref=Mail", false],
  ["ref=mail", "Ref=mail", false],
  ["ref=mail", "ref=mailing", false],
  ["ref", "ref=anything", true],
  ["ref", "ref", true],
  ["ref", "reference=1", false],
  ["ref=a&lang=de", "lang=de&ref=a", true],
  ["ref=a&lang=de", "ref=a", false],
  ["ref=a%20b", "ref=a+b", true],
];

test("parameters have to be there with their values, in any order, or with any value", (t) => {
  for (const [wanted, query, applies] of PARAMETERS)
    t.is(isFor({ query: wanted }, { query }), applies, `${wanted} of ${query}`);
});

test("a rule begins and ends to the millisecond, and its country is exact", (t) => {
  const span = { after: "2026-06-01T12:00:00.000Z", before: "2026-06-01T12:00:01.000Z" };
  const applies = [-1, 0, 999, 1000].map((ms) => isFor(span, {}, NOW + ms));
  t.deepEqual(applies, [false, true, true, false]);
  const countries = ["DE", "AT", null].map((country) => isFor({ country: "DE" }, { country }));
  t.deepEqual(countries, [true, false, false]);
});

const conditions = fc.record(
  {
    device: fc.constantFrom(...DEVICES),
    os: fc.constantFrom(...SYSTEMS),
    country: fc.constantFrom("DE", "US"),
    language: fc.constantFrom("de", "en"),
    query: fc.constantFrom("a=1", "b"),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const visitors = fc.record({
  device: fc.constantFrom(null, ...DEVICES),
  operatingSystem: fc.constantFrom(null, ...SYSTEMS),
  country: fc.constantFrom(null, "DE", "US"),
  query: fc.constantFrom("", "a=1", "b=2&a=1"),
  readLanguage: fc.constantFrom("de", "en-US").map((language) => () => language),
});

test("the first rule that applies decides, and one with more conditions applies to no more visitors", (t) => {
  fc.assert(
    fc.property(fc.array(conditions, { maxLength: 20 }), visitors, (list, visitor) => {
      const rules = list.map((condition, index) => ruleOf(condition, String(index)));
      const first = rules.find((rule) => destinationOf([rule], visitor, NOW));
      t.is(destinationOf(rules, visitor, NOW), first?.url);
      for (const name of Object.keys(first?.if ?? {}) as (keyof Rule["if"])[])
        t.true(isFor({ [name]: first?.if[name] }, visitor));
    }),
  );
});

test("the systems of rules are names that clicks have", (t) => {
  const names: string[] = Object.values(Bowser.OS_MAP);
  t.true(SYSTEMS.every((system) => names.includes(system)));
});

test("Vary names what rules read of a request", (t) => {
  const vary = (...all: Rule["if"][]) => varyOf(all.map((one) => ruleOf(one)));
  t.is(vary({ query: "a" }, { after: "2026-06-01T12:00:00.000Z" }), "");
  t.is(vary({ device: "mobile" }, { os: "iOS" }), "User-Agent");
  t.is(vary({ os: "iOS", language: "de" }), "User-Agent, Accept-Language");
  t.is(vary({ device: "mobile" }, { country: "DE" }), "*");
});

const { create } = linkSchemas({ ...NO_NAMES, ownHosts: new Set(["go.example"]) });
const URL = "https://example.com/";
const read = (rules: unknown) => validate(create, { url: URL, rules }).rules;
const INVALID: [rules: unknown, message: string][] = [
  ["x", "rules must be an array of rules."],
  [Array(21).fill({ if: { os: "iOS" }, url: URL }), "rules must have at most 20 rules."],
  [[{ if: {}, url: URL }], "rules.0.if must have a condition."],
  [[{ url: URL }], "rules.0.if is required."],
  [[{ if: { os: "iOS" }, url: "https://go.example/a" }], "rules.0.url must not point to this service."],
  [[{ if: { os: "iOS", browser: "Safari" }, url: URL }], "rules.0.if.browser is not a known field."],
  [[{ if: { device: "phone" }, url: URL }], "rules.0.if.device must be one of desktop, mobile, tablet."],
  ...["", "*", "de_DE", "-de", "x".repeat(36)].map((language): [unknown, string] => [
    [{ if: { language }, url: URL }],
    "rules.0.if.language must be a language, such as de or pt-BR.",
  ]),
  ...["de", "DEU", ""].map((country): [unknown, string] => [
    [{ if: { country }, url: URL }],
    "rules.0.if.country must be the code of a country in capital letters, such as DE.",
  ]),
  ...["", "a b", "=1", "ä=1", "x".repeat(256)].map((query): [unknown, string] => [
    [{ if: { query }, url: URL }],
    "rules.0.if.query must be parameters, such as ref=mail, of at most 255 ASCII characters without spaces.",
  ]),
  [
    [{ if: { after: "2030-01-01T00:00:00Z", before: "2030-01-01T00:00:00Z" }, url: URL }],
    "rules.0.if.before must be later than after.",
  ],
];

test("an invalid rule is refused with its place", (t) => {
  for (const [rules, message] of INVALID) t.throws(() => read(rules), { message }, JSON.stringify(rules));
});

test("times of rules are kept in UTC", (t) => {
  const rules = [{ if: { after: "2030-01-01T00:00:00+01:00" }, url: URL }];
  t.deepEqual(read(rules), [{ if: { after: "2029-12-31T23:00:00.000Z" }, url: URL }]);
});
