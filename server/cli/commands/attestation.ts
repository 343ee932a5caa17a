import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { JWK } from "jose";
import {
  createStatement,
  type Envelope,
  signStatement,
  summarizeHeads,
  verifyEnvelope,
} from "../../../certification/attestation.ts";
import type { Report } from "../../../certification/report.ts";
import { keysAt, loadStoredKeys, statementKeyOf } from "../../keys/shared-keys.ts";
import { withoutSecrets } from "../../settings/public-settings.ts";
import { VERSION } from "../../version.ts";
import { type Command, CommandError, missingOption } from "../execution/command.ts";

const ROOT = path.join(import.meta.dirname, "../../..");
const PACKAGE = ["adapters", "certification", "package.json", "resources", "server"];

/** Signs a report with the key of the server, which is that of the settings. Throws CommandError `other_server`. */
export async function attest(report: Report, jwksUri: string, file: string): Promise<void> {
  const published = (await (await fetch(jwksUri)).json()) as { keys: JWK[] };
  const command: Command = {
    name: "conformance",
    summary: "Check an authorization server",
    isReadOnly: true,
    async run({ settings, storage }) {
      const key = statementKeyOf(keysAt(await loadStoredKeys(storage.keys), Date.now())) as JWK;
      if (!published.keys.some(({ kid, x }) => kid === key.kid && x === key.x))
        throw new CommandError(
          "other_server",
          `The settings are not those of ${report.issuer}, so it isn't attested.`,
        );
      const subject = {
        version: VERSION,
        digest: digestOfPackage(),
        settings: withoutSecrets(settings),
        auditLogs: summarizeHeads(await storage.verifyAuditLogs()),
      };
      await writeFile(file, `${JSON.stringify(signStatement(createStatement(report, subject), key))}\n`);
      return {};
    },
  };
  // Loads the database, which no other server needs.
  const { runCommand } = await import("../execution/run.ts");
  await runCommand(command, { args: ["", ""], options: {}, note() {}, print() {}, async printFirst() {} });
}

/** The SHA-256 of what `sha256sum` prints for each file of the package, sorted by its path. */
export function digestOfPackage(root = ROOT): string {
  const files = PACKAGE.flatMap((name) => (name.includes(".") ? [name] : filesOf(root, name)));
  const lines = files.sort().map((file) => `${sha256(readFileSync(path.join(root, file)))}  ${file}\n`);
  return sha256(lines.join(""));
}

function filesOf(root: string, folder: string): string[] {
  const entries = readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(root, path.join(parentPath, name)));
}

function sha256(content: string | Buffer): string {
  return hash("sha256", content, "hex");
}

export const verifyAttestationCommand: Command = {
  name: "verify-attestation",
  summary: "Verify what conformance --attest wrote",
  description: "Verify what conformance --attest wrote, with the public keys of the server",
  arguments: { "<file>": "the attestation" },
  options: { "--keys <file>": "the JWK Set of the server, as /oauth/jwks returned it" },
  example: "attestation.json --keys jwks.json",
  async runAlone({ args: [file], options }) {
    if (typeof options.keys !== "string") throw missingOption("usage", "--keys <file>");
    const { keys } = await readJson<{ keys: JWK[] }>(options.keys);
    const statement = verifyEnvelope(await readJson<Envelope>(file), keys);
    if (!statement) throw new CommandError("invalid_signature", `No key of ${options.keys} signed ${file}.`);
    return statement;
  },
};

/** Throws CommandError. */
async function readJson<T>(file: string): Promise<T> {
  const text = await readFile(file, "utf8").catch(() => {
    throw new CommandError("file_not_found", `Can't read ${file}.`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandError("invalid_file", `${file} is not JSON.`);
  }
}
