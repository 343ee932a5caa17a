import { randomBytes } from "node:crypto";
import { chown, copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "../port.ts";
import { Program, ROOT } from "../program.ts";
import type { ClientSetup } from "./library-flows.ts";

/** Apache with mod_auth_openidc. */
export type Apache = { url: string; stop(): Promise<void> };

// Apache refuses to serve pages as root.
const UNPRIVILEGED = process.getuid?.() === 0 ? 65_534 : undefined;

/** Starts Apache in the foreground, with its files in a temporary folder. The caller stops it. */
export async function startApache({ issuer, clientId, clientSecret, scope }: ClientSetup): Promise<Apache> {
  const folder = await mkdtemp(path.join(tmpdir(), "linkgate-apache-"));
  for (const page of ["app", "api"]) await writeFile(path.join(folder, page), `the page of ${page}`);
  await copyFile(path.join(ROOT, "test/clients/programs/apache.conf"), path.join(folder, "apache.conf"));
  if (UNPRIVILEGED) await chown(folder, UNPRIVILEGED, UNPRIVILEGED);
  const port = await freePort();
  const apache = new Program("/usr/sbin/apache2", ["-DFOREGROUND", "-f", "apache.conf", "-d", folder], {
    cwd: folder,
    ...(UNPRIVILEGED && { uid: UNPRIVILEGED }),
    settings: {
      FOLDER: folder,
      PORT: String(port),
      MODULES: "/usr/lib/apache2/modules",
      ISSUER: issuer,
      CLIENT_ID: clientId,
      CLIENT_SECRET: clientSecret,
      SCOPE: scope,
      PASSPHRASE: randomBytes(32).toString("base64url"),
    },
  });
  await apache.says(/resuming normal operations/);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await apache.stop();
      await rm(folder, { recursive: true });
    },
  };
}
