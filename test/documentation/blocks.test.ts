import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { generate } from "selfsigned";
import { parseAllDocuments } from "yaml";
import { type Block, blocksOf, DOCUMENTS } from "../harness/examples.ts";
import { HAS_NGINX, NGINX } from "../harness/nginx.ts";
import { Program, temporaryFolder } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";

const blocks = DOCUMENTS.flatMap((document) => blocksOf(document).map((block) => ({ ...block, document })));
const folder = temporaryFolder("blocks");

/** Returns what is wrong with a block; nothing if it is valid. */
type Check = (code: string) => Promise<string> | string;

async function failureOf(command: string, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Program(command, args).ended;
  return code === 0 ? "" : stdout + stderr;
}

const CHECKS: Record<string, Check> = {
  // commands.test.ts and guides.test.ts run them, except for what can't run in a test.
  // `<org-id>` stands for a word. Without the replacement, a shell takes it for two files.
  sh: (code) => failureOf("sh", ["-nc", code.replaceAll(/<([\w-]+)>/g, "$1")]),
  js(code) {
    const file = path.join(folder, "example.mjs");
    writeFileSync(file, code);
    return failureOf(process.execPath, ["--check", file]);
  },
  json(code) {
    JSON.parse(code);
    return "";
  },
  // guides.test.ts runs them, one after the other.
  python: (code) =>
    [...code.matchAll(/\b(base64|hashlib|hmac|os|requests|time)\.\w/g)]
      .filter(([, name]) => !code.includes(`import ${name}\n`) && !code.includes(`import ${name} `))
      .map(([, name]) => `${name} isn't imported`)
      .join(),
  yaml: (code) =>
    parseAllDocuments(code)
      .flatMap(({ errors }) => errors)
      .join("\n"),
};

const ELSEWHERE: Record<string, string> = {
  ts: "guides.test.ts runs the examples, and signatures.test.ts the functions",
  go: "signatures.test.ts runs the function",
  sql: "statements.test.ts executes the statements",
  csv: "commands.test.ts imports it",
  nginx: "nginx checks it, if it is installed",
  haproxy: "test/failover/ starts HAProxy with it",
  http: "an excerpt of a request or a response",
  ini: "the tests start pgbouncer and Galera with it",
  mermaid: "a drawing",
  text: "what users enter in a client, which the Connect page shows",
  "": "the output of a program, or a request",
};

test("every block of the documentation is run or checked", (t) => {
  const unknown = blocks.filter(({ language }) => !(language in CHECKS || language in ELSEWHERE));
  t.deepEqual(unknown, []);
});

for (const [language, check] of Object.entries(CHECKS))
  test(`each ${language} block of the documentation is valid`, async (t) => {
    const own = blocks.filter((block) => block.language === language);
    t.true(own.length > 0);
    for (const { document, heading, code } of own) t.is(await check(code), "", `${document}: ${heading}`);
  });

if (!HAS_NGINX) skip("nginx accepts each documented configuration", "nginx is not installed");
else
  test("nginx accepts each documented configuration", async (t) => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }]);
    writeFileSync(`${folder}/cert.pem`, cert);
    writeFileSync(`${folder}/key.pem`, key);
    const own = blocks.filter((block: Block) => block.language === "nginx");
    for (const { document, code } of own) {
      const tls = `ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem;`;
      const file = `${folder}/nginx.conf`;
      writeFileSync(file, `pid ${folder}/pid; events {} http { ${tls}\n${code} }`);
      t.is(await failureOf(NGINX, ["-t", "-c", file, "-p", folder, "-e", "stderr"]), "", document);
    }
  });
