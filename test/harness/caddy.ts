import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:tls";
import type { TestProxy } from "./nginx.ts";
import { freePort, Program, ROOT, temporaryFolder } from "./program.ts";
import { until } from "./webhooks.ts";

const CADDY = "/usr/bin/caddy";
// A Caddyfile has at most one.
const OPTIONS = /^\{\n([\s\S]*?)^\}\n/m;
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

/** Prepares an example configuration, with ports of its own. Hosts get a certificate of Caddy's own CA. */
export async function prepareCaddy(example = "Caddyfile"): Promise<TestProxy> {
  const folder = temporaryFolder("caddy");
  const [http, https] = [await freePort(), await freePort()];
  let program: Program | undefined;
  const readRoot = () => readFileSync(`${folder}/data/caddy/pki/authorities/local/root.crt`, "utf8");

  return {
    url: `https://localhost:${https}`,
    httpPort: http,

    get certificate() {
      return readRoot();
    },

    certify: async () => readRoot(),

    async start(ports) {
      const configuration = readFileSync(`${ROOT}docs/operate/deploy/${example}`, "utf8")
        .replace(/\b300([01])\b/g, (_, server) => String(ports[Number(server)]))
        .replaceAll("links.example.com", `localhost:${https}`);
      // These options keep it from the files, ports and certificate authorities outside of this test.
      const options = `\tadmin off\n\tskip_install_trust\n\tlocal_certs\n\thttp_port ${http}\n\thttps_port ${https}\n`;
      const [block = "", own = ""] = OPTIONS.exec(configuration) ?? [];
      const file = `${folder}/Caddyfile`;
      writeFileSync(file, `{\n${options}${own}}\n${configuration.replace(block, "")}`);
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
