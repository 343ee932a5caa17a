import { randomBytes } from "node:crypto";
import { chown, copyFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { compileGo } from "../harness/clients/go.ts";
import { type ClientSetup, type Results, testFlows } from "../harness/clients/library-flows.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { debianVersion } from "../harness/clients/versions.ts";
import { freePort, Program, temporaryFolder, UNPRIVILEGED } from "../harness/program.ts";
import { bearer } from "../harness/service.ts";

/**
 * Runs the program of a client library. The program prints its authorization URL, reads the URL that it is called back
 * at from stdin, and ends by printing its results as a line of JSON.
 */
async function runLibraryProgram(
  command: string,
  args: string[],
  { issuer, clientId, clientSecret, redirectUri, scope, allow }: ClientSetup,
): Promise<Results> {
  const program = new Program(command, args, {
    settings: {
      ISSUER: issuer,
      CLIENT_ID: clientId,
      CLIENT_SECRET: clientSecret,
      REDIRECT_URI: redirectUri,
      SCOPE: scope,
      // The Python libraries reject http, also on loopback, unless these are set.
      AUTHLIB_INSECURE_TRANSPORT: "1",
      OAUTHLIB_INSECURE_TRANSPORT: "1",
    },
  });
  const [, url = ""] = await program.says(/^(http\S+)\n/m);
  program.write(`${await allow(url)}\n`);
  const { code, stdout, stderr } = await program.ended;
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} exited with ${code}:\n${stderr}`);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Results;
}

testFlows(
  {
    name: "Authlib",
    version: debianVersion("python3-authlib"),
    flows: ["clientCredentials", "code", "refresh", "revocation", "error", "introspection"],
  },
  (setup) => runLibraryProgram("/usr/bin/python3", ["test/clients/programs/authlib_client.py"], setup),
);

testFlows(
  {
    name: "golang.org/x/oauth2",
    version: debianVersion("golang-golang-x-oauth2-dev"),
    flows: ["clientCredentials", "code", "refresh", "error"],
  },
  async (setup) => runLibraryProgram(await compileGo("test/clients/programs/x_oauth2.go"), [], setup),
);

async function startApache({ issuer, clientId, clientSecret, scope }: ClientSetup) {
  const folder = temporaryFolder("apache");
  for (const page of ["app", "api"]) await writeFile(path.join(folder, page), `the page of ${page}`);
  await copyFile("test/clients/programs/apache.conf", path.join(folder, "apache.conf"));
  const { uid } = UNPRIVILEGED;
  if (uid) await chown(folder, uid, uid);
  const port = await freePort();
  const apache = new Program("/usr/sbin/apache2", ["-DFOREGROUND", "-f", "apache.conf", "-d", folder], {
    cwd: folder,
    ...UNPRIVILEGED,
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
  return { url: `http://127.0.0.1:${port}`, stop: () => apache.stop() };
}

testFlows(
  {
    name: "Apache mod_auth_openidc",
    version: debianVersion("libapache2-mod-auth-openidc"),
    flows: ["code", "userinfo", "refresh", "revocation", "introspection"],
  },
  async (setup) => {
    const apache = await startApache(setup);
    async function openApp(url: string): Promise<{ token: string; userinfo: { sub: string } }> {
      const { headers, status, text } = await browser.open(url);
      const token = headers.get("x-access-token");
      const userinfo = headers.get("x-userinfo");
      if (status !== 200 || !token || !userinfo) throw new Error(`${url}: ${status} ${text}`);
      return { token, userinfo: JSON.parse(userinfo) };
    }
    const accepts = async (token: string) =>
      (await fetch(`${apache.url}/api`, { headers: bearer(token) })).status === 200;

    const browser = new TestBrowser(apache.url);
    try {
      const request = await browser.open(`${apache.url}/app`);
      const { token, userinfo } = await openApp((await setup.allow(request.url)).href);
      const code = await setup.use(token);

      const returnTo = encodeURIComponent(`${apache.url}/app`);
      const hook = `${apache.url}/callback?refresh=${returnTo}&access_token=${code.accessToken}`;
      const refresh = await setup.use((await openApp(hook)).token);

      const tokens = {
        user: await accepts(refresh.accessToken),
        client: await accepts(await setup.token("links:read")),
        withoutScope: await accepts(await setup.token("webhooks:read")),
      };
      await browser.open(`${apache.url}/callback?logout=${returnTo}`);
      const revoked = await accepts(refresh.accessToken);
      return { code, userinfo: userinfo.sub, refresh, introspection: { ...tokens, revoked } };
    } finally {
      await apache.stop();
    }
  },
);

testFlows(
  {
    name: "requests-oauthlib",
    version: debianVersion("python3-requests-oauthlib"),
    flows: ["clientCredentials", "code", "refresh", "revocation", "error"],
  },
  (setup) =>
    runLibraryProgram("/usr/bin/python3", ["test/clients/programs/requests_oauthlib_client.py"], setup),
);

testFlows(
  {
    name: "Ruby oauth2",
    version: debianVersion("ruby-oauth2"),
    flows: ["clientCredentials", "code", "refresh", "error"],
  },
  (setup) => runLibraryProgram("/usr/bin/ruby", ["test/clients/programs/oauth2_client.rb"], setup),
);
