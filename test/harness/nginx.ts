import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { freePort, Program, ROOT, temporaryFolder } from "./program.ts";
import { selfSigned } from "./publisher.ts";

export const NGINX = "/usr/sbin/nginx";

export const HAS_NGINX = existsSync(NGINX);

export type TestProxy = {
  /** Its https URL, which is known before it starts. */
  url: string;
  /** The port that redirects to https. */
  httpPort: number;
  /** The certificate, in PEM, that its clients have to trust. Known once it has started. */
  readonly certificate: string;
  /** Does what an operator does for a verified domain. Resolves to the certificate that its visitors have to trust. */
  certify(host: string): Promise<string>;
  start(ports: readonly [number, number]): Promise<void>;
  stop(): Promise<void>;
};

/** Prepares an example configuration, with ports and certificates of its own. */
export async function prepareNginx(example = "nginx.conf"): Promise<TestProxy> {
  const folder = temporaryFolder("nginx");
  const [http, https] = [await freePort(), await freePort()];
  let program: Program | undefined;

  /** Creates the certificate of a host where certbot would. */
  async function certify(host: string): Promise<string> {
    const { cert, private: key } = await selfSigned(host);
    mkdirSync(`${folder}/${host}`);
    writeFileSync(`${folder}/${host}/fullchain.pem`, cert);
    writeFileSync(`${folder}/${host}/privkey.pem`, key);
    return cert;
  }
  const certificate = await certify("localhost");

  return {
    url: `https://localhost:${https}`,
    httpPort: http,
    certificate,
    certify,

    async start(ports) {
      const configuration = readFileSync(`${ROOT}docs/operate/deploy/${example}`, "utf8")
        .replace(/\b300([01])\b/g, (_, server) => String(ports[Number(server)]))
        .replace("listen 80", `listen 127.0.0.1:${http}`)
        .replace("listen 443", `listen 127.0.0.1:${https}`)
        .replaceAll(/\/etc\/(ssl|letsencrypt\/live)\//g, `${folder}/`)
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
${configuration}
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
