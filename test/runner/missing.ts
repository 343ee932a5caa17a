import { existsSync } from "node:fs";
import { HAS_CADDY } from "../harness/caddy.ts";
import { HAS_GO } from "../harness/clients/go.ts";
import { PYTHON } from "../harness/clients/python.ts";
import { DEBIAN_PACKAGES, debianVersion } from "../harness/clients/versions.ts";
import { hasPgBouncer } from "../harness/database/pgbouncer.ts";
import { HAS_NGINX } from "../harness/nginx.ts";
import { HAS_PROMTOOL } from "../harness/promtool.ts";
import { HAS_BUILDAH } from "../harness/release/image.ts";
import { CAN_ISOLATE } from "../harness/release/machine.ts";
import type { Selection } from "./files.ts";

const CHROMIUM = "/usr/bin/chromium";

/** Lists what tests need and this machine doesn't have. */
export function missingPrograms({ clients, processes, release }: Selection): string[] {
  const missing = clients ? DEBIAN_PACKAGES.filter((name) => !debianVersion(name)) : [];
  const needs: [has: unknown, sentence: string][] = [
    [process.env.TEST_REDIS_URL, "shared rate limits: TEST_REDIS_URL is not set"],
    [HAS_NGINX, "tests behind nginx: nginx is not installed"],
    [!processes || HAS_CADDY, "tests behind Caddy: caddy is not installed"],
    [HAS_PROMTOOL, "alert rules: promtool is not installed"],
    [existsSync(CHROMIUM), `browser tests: ${CHROMIUM} is missing`],
    [hasPgBouncer, "a connection pooler for PostgreSQL: pgbouncer is not installed"],
    [PYTHON, "the Python quick start and examples: no python3 has authlib and requests"],
    [HAS_GO, "the Go example: go is not installed"],
    [
      !(processes || release) || process.env.TEST_NODE_22,
      "the client and the package on Node.js 22: TEST_NODE_22 is not set",
    ],
    [!release || HAS_BUILDAH, "the image: buildah is not installed, or this user is not root"],
    [!release || CAN_ISOLATE, "a machine with Node and npm only: namespaces can't be created"],
    ...missing.map((name): [boolean, string] => [
      false,
      `a client library: the Debian package ${name} is not installed`,
    ]),
  ];
  return needs.filter(([has]) => !has).map(([, sentence]) => sentence);
}
