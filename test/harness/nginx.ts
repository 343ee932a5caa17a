import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "./port.ts";
import { Program, ROOT } from "./program.ts";

/** The program, if it is installed. */
export const NGINX = "/usr/sbin/nginx";
const EXAMPLE = `${ROOT}docs/operate/deploy/nginx.conf`;

/** Whether nginx is installed. */
export const HAS_NGINX = existsSync(NGINX);

/** A proxy, configured as in the documentation. */
export type TestProxy = {
  /** Its https URL, which is known before it starts. */
  url: string;
  /** The certificate, in PEM, that its clients have to trust. Known once it has started. */
  readonly certificate: string;
  /** Serves the servers at these ports. */
  start(ports: readonly [number, number]): Promise<void>;
  stop(): Promise<void>;
};

/** Prepares the example configuration, with ports and a certificate of its own. */
export async function prepareNginx(): Promise<TestProxy> {
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-nginx-"));
  const [http, https] = [await freePort(), await freePort()];
  const [certificate, key] = [`${folder}/cert.pem`, `${folder}/key.pem`];
  execFileSync("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2"],
    ...[
      "-subj",
      "/CN=localhost",
      "-addext",
      "subjectAltName=DNS:localhost",
      "-out",
      certificate,
      "-keyout",
      key,
    ],
  ]);
  let program: Program | undefined;

  return {
    url: `https://localhost:${https}`,
    certificate: readFileSync(certificate, "utf8"),

    async start([first, second]) {
      const example = readFileSync(EXAMPLE, "utf8")
        .replace("127.0.0.1:3000", `127.0.0.1:${first}`)
        .replace("127.0.0.1:3001", `127.0.0.1:${second}`)
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
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
