import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { temporaryFolder } from "./folder.ts";
import type { TestProxy } from "./nginx.ts";
import { freePort } from "./port.ts";
import { Program, ROOT } from "./program.ts";
import { until } from "./webhooks.ts";

const CADDY = "/usr/bin/caddy";
const EXAMPLE = `${ROOT}docs/operate/deploy/Caddyfile`;
export const HAS_CADDY = existsSync(CADDY);

async function canConnect(port: number): Promise<boolean> {
  const socket = connect({ port, servername: "localhost", rejectUnauthorized: false });
  try {
    await once(socket, "secureConnect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Prepares the example configuration, with ports of its own. The name localhost gets a certificate of Caddy's own CA. */
export async function prepareCaddy(): Promise<TestProxy> {
  const folder = temporaryFolder("caddy");
  const [http, https] = [await freePort(), await freePort()];
  let program: Program | undefined;

  return {
    url: `https://localhost:${https}`,

    get certificate() {
      return readFileSync(`${folder}/data/caddy/pki/authorities/local/root.crt`, "utf8");
    },

    async start(ports) {
      const example = readFileSync(EXAMPLE, "utf8")
        .replace(/\b300([01])\b/g, (_, server) => String(ports[Number(server)]))
        .replaceAll("links.example.com", `localhost:${https}`);
      const file = `${folder}/Caddyfile`;
      // These options keep it from the files and ports of a Caddy of this machine.
      writeFileSync(file, `{\n\tadmin off\n\tskip_install_trust\n\thttp_port ${http}\n}\n${example}`);
      program = new Program(CADDY, ["run", "--config", file, "--adapter", "caddyfile"], {
        settings: { XDG_DATA_HOME: `${folder}/data`, XDG_CONFIG_HOME: `${folder}/config`, HOME: folder },
      });
      await program.says(/"serving initial configuration"/, "stderr");
      await program.says(/"certificate obtained successfully"/, "stderr");
      // Caddy logs this a moment before it uses the certificate.
      await until(async () => (await canConnect(https)) || undefined);
    },

    async stop() {
      program?.kill("SIGTERM");
      await program?.ended;
    },
  };
}
