import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import pLimit from "p-limit";
import manifest from "../../package.json" with { type: "json" };
import { commands } from "../../server/cli/commands/index.ts";
import { createProgram } from "../../server/cli/program.ts";
import { apiAt } from "../harness/clients/api.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { createTestDatabase, serverOf } from "../harness/database/test-database.ts";
import { createCheckout, runScript, withoutCommand } from "../harness/documented-commands.ts";
import { storeDomain } from "../harness/domains.ts";
import { blocksOf, DOCUMENTS } from "../harness/examples.ts";
import { settingsFor } from "../harness/inhabited.ts";
import { ROOT, runShell } from "../harness/program.ts";
import type { TestOrganization, TestService, TestUser } from "../harness/service.ts";
import { startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

export const stage = "processes";

// The commands of each document run in turn, in one shell, as if they were pasted. guides.test.ts runs the examples in
// several languages.

/** Why commands don't run here, and how they begin. */
const NOT_RUN: Record<string, string[]> = {
  "would replace the packages that the tests use; .ci/newcomer runs it": ["npm ci"],
  "test/release/package.test.ts installs the package": ["npm install ./linkgate-"],
  "test/processes/deploy.test.ts compares the names of the packages": ["npm install pg ioredis"],
  "a package that the tests use themselves": ["npm install standardwebhooks"],
  "test/processes/client-package.test.ts installs the client": [
    "npm install http://localhost:3000/client.tgz",
  ],
  "test/documentation/signatures.test.ts runs it": ["WEBHOOK_SECRET=whsec_… node receiver.mjs"],
  "test/release/release.test.ts runs it": ["npm run release"],
  "test/processes/backup.test.ts runs it": ["pg_dump", "pg_restore", "mariadb-dump", "mariadb"],
  "test/failover/postgres.ts runs it": ["patronictl", "psql"],
  "its user needs a browser; test/processes/cli/login.test.ts is one": [
    "npx linkgate login",
    "npx linkgate links",
  ],
  "test/clients/ai-clients.test.ts runs the program": ["claude", "codex", "copilot", "gemini", "opencode"],
  "needs an account; test/documentation/documentation.test.ts compares it with the Connect page": [
    "code",
    "goose",
  ],
  "changes the machine; test/processes/deploy.test.ts checks the unit": [
    "sudo",
    "npx --prefix /opt/linkgate",
  ],
  "needs a certificate authority; test/processes/deploy.test.ts runs nginx with the certificates": [
    "sudo certbot",
    "sudo chgrp www-data",
    "sudo chmod 640",
  ],
  "test/conformance/oidf/plan.test.ts runs the program": ["npm run --silent conformance:oidf"],
  "needs a registry of images; test/release/container.test.ts builds the image and runs it": ["podman"],
  "the suite of the OpenID Foundation is downloaded, and runs in containers":
    "git clone|cd conformance-suite|python3 -m venv|.venv/bin/|IMAGE_TAG=".split("|"),
};
const BEGINNINGS = Object.values(NOT_RUN).flat();

type Reader = { service: TestService; organization: TestOrganization; owner: TestUser };

/** What a reader has besides an organization: files by their names, and variables. */
type Preparation = { files: Record<string, string>; variables?: Record<string, string> };

const PREPARED: Record<string, (reader: Reader) => Promise<Preparation>> = {
  async "docs/audit-log.md"({ service, organization: { id }, owner }) {
    const api = apiAt(service.url, await firstPartyToken(service, owner));
    const log = `/dashboard/organizations/${id}/audit`;
    const { body } = await api.get<{ head: { hash: string } }>(log);
    const { text } = await api.get(`${log}.csv`);
    return { files: { [`audit-${id}.csv`]: text }, variables: { NOTED_HASH: body.head.hash } };
  },
  async "docs/custom-domains.md"({ service, organization }) {
    await storeDomain(service.storage, organization.id, "go.example.com");
    return { files: {} };
  },
  "docs/import.md": async () => ({ files: { "links.csv": blockIn("docs/import.md", "csv") } }),
  async "docs/operate/checks.md"({ service, organization }) {
    const { redirect_uri, ...config } = JSON.parse(blockIn("docs/operate/checks.md", "json")); // it needs a browser
    const other = await service.createOrganization();
    Object.assign(config.other_client, { client_id: other.clientId, client_secret: other.clientSecret });
    return { files: { "conformance.json": replaceValues(JSON.stringify(config), service, organization) } };
  },
};

const PRINTS: Record<string, RegExp> = {
  "docs/custom-domains.md": /"verified"[\s\S]*"verified"/,
  "docs/audit-log.md": /are unchanged[\s\S]*are unchanged[\s\S]*operator/,
  "docs/mcp.md": /"name":"create_link"/,
  "docs/users.md": /"access_token":"lga_/,
};

// A block of settings only.
const SETTINGS = /^([A-Z_]+=\S+\n)+$/;
const startWith = (settings: string) => `${settings.replaceAll("\n", " ")}npm start\n`;

const scripts = new Map(
  DOCUMENTS.map((document) => {
    const blocks = blocksOf(document).filter(({ language, title }) => language === "sh" && !title);
    return [document, blocks.map(({ code }) => (SETTINGS.test(code) ? startWith(code) : code)).join("")];
  }),
);
const all = [...scripts.values()].join("");
// More would only wait for the processors.
const inTurn = pLimit(3);
const hasOpenssl = (await runShell("openssl version")).code === 0;

function blockIn(document: string, language: string): string {
  return blocksOf(document).find((block) => block.language === language)?.code ?? "";
}

function replaceValues(text: string, service: TestService, organization: TestOrganization): string {
  return text
    .replaceAll(/http:\/\/localhost:3000|https:\/\/(links|go)\.example\.com/g, service.url)
    .replaceAll(/<org-id>|org_01JD9K2M4N6P8Q0R2S4T6V8W0X/g, organization.id)
    .replaceAll(/<client-id>|lgc_…/g, organization.clientId)
    .replaceAll("lgs_…", organization.clientSecret);
}

async function setUp(document: string, script: string) {
  const folder = createCheckout();
  const database = await createTestDatabase();
  const target = await createTestDatabase({ empty: true, on: serverOf("postgres") ? "postgres" : "sqlite" });
  const { ENCRYPTION_KEY = "", ...others } = await settingsFor(database.url);
  const settings = { ...others, ENCRYPTION_KEY_FILE: path.join(folder, "encryption.key") };
  writeFileSync(settings.ENCRYPTION_KEY_FILE, ENCRYPTION_KEY, { mode: 0o600 });
  const service = await startTestService(settings);
  const organization = await service.createOrganization();
  const owner = await service.createUser([organization.id], "owner", "owner");
  // What the commands don't create themselves, they expect.
  if (!script.includes("user create ada")) await service.createUser([organization.id], "ada");
  if (!script.includes('"slug": "spring"'))
    await apiAt(service.url, await service.token(organization)).createLink({ slug: "spring" });
  const nothing: Preparation = { files: {} };
  const { files, variables } = (await PREPARED[document]?.({ service, organization, owner })) ?? nothing;
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, name), content);
  const credentials = { CLIENT_ID: organization.clientId, CLIENT_SECRET: organization.clientSecret };
  return {
    folder,
    settings: { ...settings, ...credentials, PASSWORD: owner.password, ...variables },
    script: replaceValues(script, service, organization)
      .replaceAll("postgres://linkgate@db.example.com/linkgate", target.url)
      .replaceAll('"demo"', `"${owner.username}"`),
    async close() {
      await service.close();
      await Promise.all([database.drop(), target.drop()]);
    },
  };
}

for (const [document, written] of scripts) {
  const title = `the commands of ${document} work when pasted one after the other`;
  const script = BEGINNINGS.reduce(withoutCommand, written);
  if (!/^[^:]/m.test(script)) continue;
  if (!hasOpenssl && script.includes("openssl ")) {
    skip(title, "openssl is not installed");
    continue;
  }
  test(title, (t) =>
    inTurn(async () => {
      const reader = await setUp(document, script);
      try {
        t.notRegex(reader.script, /<[\w-]+>|…/, "a placeholder");
        const { code, stdout, stderr } = await runScript(reader, "a fine password");
        t.is(code, 0, stdout + stderr);
        t.regex(stdout, PRINTS[document] ?? /^/);
      } finally {
        await reader.close();
      }
    }),
  );
}

test("the tables of commands name nothing that isn't documented, and files that exist", (t) => {
  for (const beginning of BEGINNINGS) t.not(withoutCommand(all, beginning), all, beginning);
  for (const reason of Object.keys(NOT_RUN))
    for (const [file] of reason.matchAll(/(test|\.ci)\/[\w./-]+\w/g)) t.true(existsSync(ROOT + file), file);
  for (const document of Object.keys({ ...PREPARED, ...PRINTS })) t.truthy(scripts.get(document), document);
});

function codesIn(document: string): string[] {
  const text = readFileSync(ROOT + document, "utf8").replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
  return Array.from(text.matchAll(/`([^`\n]+)`/g), ([, code = ""]) => code.replaceAll("\\|", "|"));
}

/** Returns the words of a command, with the first of several alternatives; none for other code, and for help. */
function wordsOf(code: string): string[] {
  const [, program, text = ""] = /^((?:npx )?linkgate )?([a-z-].*)$/.exec(code) ?? [];
  const words =
    text
      .replace(/ [>|] .*/, "")
      .replaceAll(/[[\]…]/g, "")
      .match(/"[^"]*"|\S+/g) ?? [];
  const isCommand = commands.some(({ name }) => `${name} `.startsWith(`${words[0]} `) && words.length > 1);
  if (!program && !isCommand) return [];
  return words.flatMap((word) => (/^--(help|version)$/.test(word) ? [] : word.split("|").slice(0, 1)));
}

// A text may leave arguments out.
const LEFT_OUT = /^Missing required argument|^Option "--.*" argument missing/;

test("each command in the text of the documentation is accepted", async (t) => {
  for (const document of DOCUMENTS)
    for (const code of codesIn(document).filter((code) => wordsOf(code).length > 0)) {
      await createProgram(async () => {})
        .parseAsync(wordsOf(code), { from: "user" })
        .catch(({ message }) => t.regex(message, LEFT_OUT, `${document}: ${code}`));
      t.pass();
    }
});

test("docs/cli.md lists each command with its options", (t) => {
  const codes = codesIn("docs/cli.md");
  for (const { name, options = {} } of commands) {
    const own = codes.filter((code) => `${code} `.startsWith(`${name} `));
    t.true(own.length > 0, name);
    for (const option of Object.keys(options)) {
      const [flag = ""] = option.split(" ");
      t.true(own.join().includes(flag), `${name} ${flag}`);
    }
  }
});

test("each npm script that a document names exists", (t) => {
  const SCRIPT = /npm run (?:--silent )?([\w:-]+)(?![\w:-]| --workspace)/g;
  for (const document of DOCUMENTS)
    for (const [, name = ""] of readFileSync(ROOT + document, "utf8").matchAll(SCRIPT))
      t.true(name in manifest.scripts, `${document}: ${name}`);
});
