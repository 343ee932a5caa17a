import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import type { z } from "zod";
import { type domainPageSchema, recordName } from "../../resources/domains/schema.ts";
import type { ResolveTxt } from "../../resources/domains/service.ts";
import type { AnalyticsView } from "../../resources/links/analytics.ts";
import { type Api, apiAt, BROWSER, type LinkBody, type PageBody } from "../harness/clients/api.ts";
import { PYTHON } from "../harness/clients/python.ts";
import type { Block, Language } from "../harness/examples.ts";
import { blocksOf, examplesIn, LANGUAGES, outputsOf, toProgram } from "../harness/examples.ts";
import { Program, ROOT } from "../harness/program.ts";
import { startTestService, type TestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { createWebhook, startReceiver, until, type WebhookPage } from "../harness/webhooks.ts";

export const stage = "long";

type Guide = {
  /** Creates what the examples need; returns further environment variables. */
  prepare?(api: Api, service: TestService): Promise<Record<string, string>>;
  /** What the examples of each section print. A section has the same examples in each language. */
  prints: Record<string, RegExp>;
  check(t: ExecutionContext, api: Api, service: TestService): Promise<void>;
};

// These verify a request, and call nothing; signatures.test.ts runs them.
const SIGNATURES = "Verify signatures";
const SETUP = "Get a token";
const LINK_ID = /lnk_[0-9A-Z]{26}/;

type DomainPage = z.output<typeof domainPageSchema>;

const receiver = await startReceiver();

const GUIDES: Record<string, Guide> = {
  "quick-start.md": {
    prints: {
      [SETUP]: /^$/,
      "Create a link": LINK_ID,
      "Follow the link": /^302 https:\/\/example\.com\/spring$/m,
      "See the click": /clicks["']?: ?1,.*bot_clicks["']?: ?0/s,
    },
    async check(t, api) {
      const { clicks, bot_clicks } = await until(async () => {
        const { body } = await api.get<AnalyticsView>("/v1/analytics");
        return body.clicks > 0 ? body : undefined;
      });
      t.deepEqual([clicks, bot_clicks], [1, 0]);
    },
  },
  "authentication.md": {
    prints: {
      "Get a token with client credentials": /["']?scope["']?: ?["']links:read["']/,
      "Use a token": /org_[0-9A-Z]{26}/,
      "Revoke a token": /^(200|\{\})\s*$/,
    },
    async check(t, api) {
      t.is((await api.get<PageBody>("/v1/links")).status, 200, "another token of the client still works");
    },
  },
  "links.md": {
    async prepare(api) {
      await api.createLink({ slug: "spring" });
      return { LINK_ID: (await api.createLink()).id };
    },
    prints: {
      "Slug taken": /\/spring-2030\b/,
      "Send visitors to different destinations": /"rules":\[\{"if":\{"os":"iOS"\}|^2$/m,
      "Use your own IDs": /product-42/,
      "Create links in bulk": /201.*201.*422.*url must be an http or https URL/s,
      "Find links": /\/\w{7}\b.*\/\w{7}\b/s,
      "Update a link": /example\.com\/summer/,
      "Update links in bulk": /(200.*fall\/[ab]\?utm_source=newsletter.*){2}/s,
      "Archive or delete a link": /^(204)?\s*$/,
    },
    async check(t, api) {
      const { body } = await api.get<PageBody>("/v1/links?limit=100");
      const destinations = body.data.map(({ url }) => new URL(url).pathname);
      for (const path of ["/products/42", "/fall/a", "/fall/b"]) t.true(destinations.includes(path), path);
      t.false(destinations.includes("/summer"), "it was deleted");
    },
  },
  "custom-domains.md": {
    async prepare(api) {
      return { LINK_ID: (await api.createLink({ slug: "moved" })).id };
    },
    prints: {
      "Add a domain": /\b_linkgate\.go\.example\.com\b.*[\w-]{22}/,
      "Verify the domain": /"verified":true|^true$/im,
      "Create links on the domain": /go\.example\.com\/spring\b/,
      "Choose what the domain shows":
        /"default":true.*"https:\/\/example\.com\/"|^https:\/\/example\.com\/$/m,
      "Move links to another domain": /go\.example\.com\/moved\b/,
      "Delete a domain": /^\s*$/,
    },
    async check(t, api, { url }) {
      t.deepEqual((await api.get<DomainPage>("/v1/domains")).body.data, []);
      const { body } = await api.get<PageBody>("/v1/links");
      t.deepEqual(body.data.map(({ short_url }) => short_url).sort(), [`${url}/moved`, `${url}/spring`]);
    },
  },
  "requests.md": {
    async prepare(api) {
      for (const slug of ["first", "second", "third"]) await api.createLink({ slug });
      return { LINK_ID: (await api.createLink()).id };
    },
    prints: {
      Errors: /invalid_url.*url must be an http or https URL/s,
      Pagination: /\/third\b.*\/second\b.*\/first\b/s,
      "Conditional requests": /Spring sale.*(412|precondition_failed)/s,
      Idempotency: /(lnk_[0-9A-Z]{26}).*\1/s,
    },
    async check(t, api) {
      t.is((await api.get<PageBody>("/v1/links?search=sale")).body.data[0]?.title, "Spring sale");
      t.is((await api.get<PageBody>("/v1/links?search=order")).body.data.length, 1);
    },
  },
  "analytics.md": {
    async prepare(api, service) {
      const { slug } = await api.createLink();
      const headers = { "User-Agent": BROWSER };
      await fetch(`${service.url}/${slug}`, { redirect: "manual", headers });
      await until(async () => (await api.get<AnalyticsView>("/v1/analytics")).body.clicks || undefined);
      return {};
    },
    prints: { "Read the analytics": /\b1\b.*\b0\b.*country/s, "Filter clicks": /\b0\b/ },
    async check(t, api) {
      t.is((await api.get<LinkBody & PageBody>("/v1/links")).body.data[0]?.clicks, 1);
    },
  },
  "webhooks.md": {
    prints: {
      "Create a webhook": /whk_.*whsec_/s,
      "Receive events": /202|evt_/,
      "Without a receiver": /evt_.*link\.created|link\.created.*evt_/s,
      "Find out why deliveries fail": /resent["']?: ?0/,
    },
    async prepare(api) {
      await api.createLink();
      await until(async () => (await api.get<PageBody>("/v1/events")).body.data.length || undefined);
      return { WEBHOOK_ID: (await createWebhook(api, receiver.url("/"))).id };
    },
    async check(t, api) {
      const { body } = await api.get<WebhookPage>("/v1/webhooks");
      t.deepEqual(body.data[0]?.events, ["link.created", "link.clicked"]);
    },
  },
};

function commandFor(language: Language, program: string): [command: string, args: string[]] {
  if (language === "curl") return ["sh", ["-c", program]];
  if (language === "Python") return [PYTHON as string, ["-c", program]];
  return [process.execPath, ["--input-type=module-typescript", "--eval", program]];
}

/** Returns the examples of a guide, after the one that gets a token, with which all guides begin. */
function examplesWithSetup(document: string, language: Language): Block[] {
  const setup = examplesIn("docs/quick-start.md", language).find(({ heading }) => heading === SETUP) as Block;
  return [setup, ...examplesIn(document, language).filter(({ heading }) => heading !== SETUP)];
}

for (const [name, { prepare, prints, check }] of Object.entries(GUIDES))
  for (const language of LANGUAGES) {
    const title = `the ${language} examples of ${name} work when pasted one after the other`;
    if (language === "Python" && !PYTHON) {
      skip(title, "no Python here has requests");
      continue;
    }
    test(title, async (t) => {
      // A reader creates the DNS records that the dashboard shows.
      const resolveTxt: ResolveTxt = async (record) =>
        (await service.storage.domains.list(client.id))
          .filter(({ host }) => recordName(host) === record)
          .map(({ token }) => [token]);
      const settings = { WEBHOOK_ALLOW_HOSTS: "localhost:8080,127.0.0.1" };
      const service = await startTestService(settings, {}, { lingerMs: 0, resolveTxt });
      const client = await service.createOrganization();
      const api = apiAt(service.url, await service.token(client));
      const credentials = { CLIENT_ID: client.clientId, CLIENT_SECRET: client.clientSecret };
      const variables = { ...credentials, ...(await prepare?.(api, service)) };
      const examples = examplesWithSetup(`docs/${name}`, language);
      const program = toProgram(language, examples, service.url);
      const outputs = await outputsOf(...commandFor(language, program), variables);
      for (const [section, expected] of Object.entries(prints)) {
        const own = outputs.filter((_, index) => examples[index]?.heading === section);
        t.regex(own.join(""), expected, section);
      }
      await check(t, api, service);
    });
  }

test("the TypeScript examples have no type errors", async (t) => {
  // Inside the project, which has the types of Node.
  const folder = mkdtempSync(path.join(ROOT, "node_modules/.cache/linkgate-examples-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  for (const name of Object.keys(GUIDES)) {
    const examples = examplesWithSetup(`docs/${name}`, "TypeScript");
    const program = toProgram("TypeScript", examples, "http://localhost");
    writeFileSync(path.join(folder, name.replace(".md", ".mts")), program);
  }
  const options = ["--noEmit", "--strict", "--target", "es2024", "--module", "nodenext", "--types", "node"];
  const lib = ["--lib", "es2024,dom,dom.iterable,dom.asynciterable"];
  const others = ["--ignoreConfig", "--allowImportingTsExtensions", ...globSync(`${folder}/*.mts`)];
  const compiler = new Program(`${ROOT}node_modules/.bin/tsc`, [...options, ...lib, ...others]);
  t.like(await compiler.ended, { stdout: "", code: 0 });
});

test("every example that calls the API is run, in each language", (t) => {
  for (const document of globSync("docs/**/*.md", { cwd: ROOT })) {
    const sections = Map.groupBy(
      blocksOf(document).filter(({ title, heading }) => title && heading !== SIGNATURES),
      ({ heading }) => heading,
    );
    const { prints = {} } = GUIDES[document.replace("docs/", "")] ?? {};
    t.deepEqual([...sections.keys()], Object.keys(prints), document);
    if (sections.size > 0)
      t.regex(readFileSync(path.join(ROOT, document), "utf8"), /continue from (here|\[Get a token\])/);
    for (const [heading, blocks] of sections) {
      const expected = Array(Math.ceil(blocks.length / LANGUAGES.length))
        .fill(LANGUAGES)
        .flat();
      const titles = blocks.map(({ title }) => title);
      t.deepEqual(titles, expected, `${document}: ${heading}`);
    }
  }
});
