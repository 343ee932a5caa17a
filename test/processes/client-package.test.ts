import { copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import test from "ava";
import manifest from "../../package.json" with { type: "json" };
import { newWebhookSecret, signatureHeaders } from "../../resources/webhooks/signature.ts";
import { outputOf, ROOT, temporaryFolder } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

const { TEST_NODE_22 } = process.env;
const folder = temporaryFolder("client");
const service = await startTestService();
const run = (command: string, args: string[], cwd = folder) => outputOf(command, args, { cwd });

/** Packs a dependency into the folder; resolves to the name of its file. */
async function pack(name: string): Promise<string> {
  const options = ["--silent", "--ignore-scripts", "--pack-destination", folder];
  return (await run("npm", ["pack", `./node_modules/${name}`, ...options], ROOT)).trim();
}

// Its only dependency, and that of the dependency, from this checkout: the tests reach no registry.
const packages = ["openapi-fetch", "openapi-typescript-helpers"];
const tarballs = await Promise.all(packages.map(pack));
const overrides = Object.fromEntries(packages.map((name, index) => [name, `file:${tarballs[index]}`]));
const manifestOfUser = JSON.stringify({ private: true, type: "module", overrides });
await writeFile(`${folder}/package.json`, manifestOfUser);
const options = ["--no-audit", "--no-fund", `--registry=${service.url}`];
await run("npm", ["install", ...options, `${service.url}/client.tgz`]);
await copyFile(`${ROOT}test/api/client/programs/walk.ts`, `${folder}/walk.ts`);

const TSC = `${ROOT}node_modules/.bin/tsc`;
const STRICT = "--strict --target es2024 --module nodenext --types node --typeRoots";
const compile = (...files: string[]) =>
  run(process.execPath, [TSC, ...STRICT.split(" "), `${ROOT}node_modules/@types`, ...files]);
await compile("walk.ts");

test("the package that the server offers has its version, and contains the compiled client only", async (t) => {
  const installed = `${folder}/node_modules/@linkgate/client`;
  t.is(JSON.parse(await readFile(`${installed}/package.json`, "utf8")).version, manifest.version);
  const names = (await readdir(installed)).toSorted();
  t.deepEqual(names, ["LICENSE", "README.md", "dist", "package.json"]);
  for (const name of await readdir(`${installed}/dist`)) t.regex(name, /^[\w-]+\.(js|d\.ts)$/);
});

// What is wrong → a statement, which must not compile.
const REFUSED: Record<string, string> = {
  "a link without a URL": "linkgate.createLink({});",
  "an unknown field": 'linkgate.createLink({ url, alias: "spring" });',
  "a link without an ID": "linkgate.getLink({});",
  "an unknown filter": 'linkgate.listLinks({ tags: ["mail"] });',
  "an unknown event": 'linkgate.createWebhook({ url, events: ["link.opened"] });',
  "an unknown operation": "linkgate.archiveLink({ id });",
  "a title that may be null": "(await linkgate.getLink({ id })).title.length;",
  "an unknown error code": 'error.code === "slug_is_taken";',
  "a property that only some events have": "event.data.link_id;",
  "a client without a secret or a token": 'createClient({ baseUrl: url, clientId: "lgc_1" });',
};
const DECLARATIONS = `import { createClient, type Linkgate, type LinkgateError, type WebhookEvent } from "@linkgate/client";
declare const linkgate: Linkgate, error: LinkgateError, event: WebhookEvent, id: string, url: string;`;

test("the types of the package refuse each mistake", async (t) => {
  const lines = [...DECLARATIONS.split("\n"), ...Object.values(REFUSED)];
  await writeFile(`${folder}/refused.ts`, lines.join("\n"));
  const failure = await t.throwsAsync(compile("--noEmit", "refused.ts"));
  const found = failure.message.matchAll(/^refused\.ts\((\d+),/gm);
  t.deepEqual([...new Set(Array.from(found, ([, line]) => lines[Number(line) - 1]))], Object.values(REFUSED));
});

// The examples leave these to their readers.
const SURROUNDINGS = `
declare const linkgate: import("@linkgate/client").Linkgate;
declare const id: string;
declare const url: string;
declare const order: { id: number };
declare const session: { accessToken: string };
declare module "@actions/core" {
  export function getIDToken(audience: string): Promise<string>;
}
`;

test("the examples of the README compile", async (t) => {
  const readme = await readFile(`${ROOT}client/README.md`, "utf8");
  const examples = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => `${code}export {};\n`);
  t.true(examples.length > 5);
  const files = examples.map((_, index) => `example-${index}.ts`);
  await writeFile(`${folder}/surroundings.d.ts`, SURROUNDINGS);
  await Promise.all(files.map((file, index) => writeFile(`${folder}/${file}`, examples[index] ?? "")));
  t.is(await compile("--noEmit", "surroundings.d.ts", ...files), "");
});

const SECRET = newWebhookSecret();
const BODY = JSON.stringify({ type: "link.deleted", timestamp: "2026-11-26T10:00:00.000Z", data: {} });

function testOn(name: string, node: string): void {
  test(`the package runs on ${name}`, async (t) => {
    const options = { baseUrl: service.url, ...(await service.createOrganization()) };
    const headers = signatureHeaders("evt_1", Date.now(), BODY, [SECRET]);
    const args = JSON.stringify([options, { body: BODY, headers, secret: SECRET }]);
    const source = `import { walk } from "./walk.js"; console.log(JSON.stringify(await walk(...${args})), process.version);`;
    const [result = "", version] = (await run(node, ["--input-type=module", "--eval", source])).split(" v");
    t.is(version?.split(".")[0], name.replace("Node.js ", ""));
    t.deepEqual(JSON.parse(result), {
      created: ["https://example.com/a", "https://example.com/b"],
      listed: ["https://example.com/b", "https://example.com/a"],
      code: "invalid_url",
      aborted: "aborted",
      event: "link.deleted",
    });
  });
}

testOn("Node.js 24", process.execPath);
if (TEST_NODE_22) testOn("Node.js 22", TEST_NODE_22);
else skip("the package runs on Node.js 22", "TEST_NODE_22 is not the path of a Node.js 22");
