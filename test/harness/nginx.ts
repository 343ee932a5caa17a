import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { temporaryFolder } from "./folder.ts";
import { freePort } from "./port.ts";
import { Program, ROOT } from "./program.ts";
import { selfSigned } from "./publisher.ts";

export const NGINX = "/usr/sbin/nginx";
const EXAMPLE = `${ROOT}docs/operate/deploy/nginx.conf`;

export const HAS_NGINX = existsSync(NGINX);

export type TestProxy = {
  /** Its https URL, which is known before it starts. */
  url: string;
  /** The certificate, in PEM, that its clients have to trust. Known once it has started. */
  readonly certificate: string;
  start(ports: readonly [number, number]): Promise<void>;
  stop(): Promise<void>;
};

/** Prepares the example configuration, with ports and a certificate of its own. */
export async function prepareNginx(): Promise<TestProxy> {
  const folder = temporaryFolder("nginx");
  const [http, https] = [await freePort(), await freePort()];
  const [certificate, key] = [`${folder}/cert.pem`, `${folder}/key.pem`];
  const generated = await selfSigned("localhost");
  writeFileSync(certificate, generated.cert);
  writeFileSync(key, generated.private);
  let program: Program | undefined;

  return {
    url: `https://localhost:${https}`,
    certificate: generated.cert,

    async start(ports) {
      const example = readFileSync(EXAMPLE, "utf8")
        .replace(/\b300([01])\b/g, (_, server) => String(ports[Number(server)]))
        .replace("listen 80;", `listen 127.0.0.1:${http};`)
        .replace("listen 443 ssl;", `listen 127.0.0.1:${https} ssl;`)
        .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
        .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`)
        .replaceAll("links.example.com", "localhost");
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      );
      const file = `${folder}/nginx.conf`;
      writeFileSync(
        file,
        `daemon off; user root; pid ${folder}/pid; error_log stderr notice; worker_processes 1;
events { worker_connections 4096; }
http { access_log off; ${temporary.join(" ")}
${example}
}`,
      );
      program = new Program(NGINX, ["-c", file, "-p", folder, "-e", "stderr"]);
      await program.says(/start worker process /, "stderr");
    },

    async stop() {
      program?.kill("SIGQUIT");
      await program?.ended;
    },
  };
}
