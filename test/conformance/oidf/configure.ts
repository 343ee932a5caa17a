// Creates the clients and users of plan.json, and prints it with their names, keys, secrets and passwords.
//
//   npm run --silent conformance:oidf -- <BASE_URL> [URL of the suite] > plan.json
//
// It runs commands of the CLI, so it needs the settings of the server. See docs/conformance.md.

import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { exportJWK, generateKeyPair } from "jose";
import { resultOf, temporaryFolder } from "../../harness/program.ts";
import type { Client } from "./deployment.ts";
import { BASIC } from "./plans.ts";

const [base = "", suite = "https://localhost.emobix.co.uk:8443"] = process.argv.slice(2);
if (!URL.canParse(base) || !URL.canParse(suite)) {
  console.error("usage: conformance:oidf -- <BASE_URL> [URL of the suite]");
  process.exit(1);
}

// The hosted suite shares aliases among all its users.
const id = randomBytes(4).toString("hex");
const alias = `linkgate-${id}`;
const callback = `${new URL(suite).origin}/test/a/${alias}/callback`;
// The second client uses the second one.
const redirectUris = [callback, `${callback}?dummy1=lorem&dummy2=ipsum`];
const names = {
  "https://links.example.com": new URL(base).origin,
  "linkgate-conformance": alias,
  "suite-user": `suite-user-${id}`,
  "suite-other-user": `suite-other-user-${id}`,
  "suite-password": randomUUID(),
};

const folder = temporaryFolder("oidf");

function run<Result>(words: string[], input?: string): Promise<Result> {
  return resultOf(words, { settings: process.env as Record<string, string> }, input);
}

async function createClient(): Promise<Client> {
  const { organization, client } = await run<{
    organization: { id: string };
    client: { client_id: string; client_secret: string };
  }>(["org", "create", `Relying party ${randomUUID()}`, "--plan", "growth"]);
  await run(["client", "redirect-uris", organization.id, ...redirectUris]);
  return { id: client.client_id, secret: client.client_secret, organizationId: organization.id };
}

async function createFapiClient(alg: string) {
  const { id: client_id, organizationId } = await createClient();
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const file = path.join(folder, `${client_id}.jwk`);
  writeFileSync(file, JSON.stringify(await exportJWK(publicKey)));
  await run(["client", "add-key", organizationId, file]);
  await run(["client", "remove-secrets", organizationId]);
  await run(["org", "fapi", organizationId, "on"]);
  const key = { ...(await exportJWK(privateKey)), alg, kid: client_id, use: "sig" };
  return { organizationId, settings: { client_id, jwks: { keys: [key] } } };
}

const withSecret = ({ id, secret }: Client) => ({ client_id: id, client_secret: secret });

// One module of the FAPI plan needs an RSA key.
const [client, client2] = [await createFapiClient("PS256"), await createFapiClient("ES256")];
const basic = withSecret(await createClient());
const basic2 = withSecret(await createClient());
for (const user of ["suite-user", "suite-other-user"] as const) {
  const words = ["user", "create", names[user], "--org", client.organizationId, "--role", "owner"];
  await run(words, names["suite-password"]);
}

const template = readFileSync(path.join(import.meta.dirname, "plan.json"), "utf8");
const plan = JSON.parse(
  Object.entries(names).reduce((text, [from, to]) => text.replaceAll(from, to), template),
);
Object.assign(plan.client, client.settings);
Object.assign(plan.client2, client2.settings);
plan.client_secret_post = basic;
// Clients that follow FAPI 2.0 have no secret, so those of the OpenID Connect plan are others.
for (const module of BASIC.modules)
  plan.override[module] = { ...plan.override[module], client: basic, client2: basic2 };
console.log(JSON.stringify(plan, undefined, 2));
