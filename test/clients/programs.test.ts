import { startApache } from "../harness/clients/apache.ts";
import { compileGo } from "../harness/clients/go.ts";
import { testFlows } from "../harness/clients/library-flows.ts";
import { runLibraryProgram } from "../harness/clients/library-program.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { debianVersion } from "../harness/clients/versions.ts";
import { bearer } from "../harness/service.ts";

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

testFlows(
  {
    name: "Apache mod_auth_openidc",
    version: debianVersion("libapache2-mod-auth-openidc"),
    flows: ["code", "userinfo", "refresh", "revocation", "introspection"],
  },
  async (setup) => {
    const apache = await startApache(setup);
    /** Opens a URL of Apache; returns what the application behind it reads. */
    async function openApp(url: string): Promise<{ token: string; userinfo: { sub: string } }> {
      const { headers, status, text } = await browser.open(url);
      const token = headers.get("x-access-token");
      const userinfo = headers.get("x-userinfo");
      if (status !== 200 || !token || !userinfo) throw new Error(`${url}: ${status} ${text}`);
      return { token, userinfo: JSON.parse(userinfo) };
    }
    /** Uses a token at Apache as the resource server. */
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

const PROGRAM = "test/clients/programs/requests_oauthlib_client.py";

testFlows(
  {
    name: "requests-oauthlib",
    version: debianVersion("python3-requests-oauthlib"),
    flows: ["clientCredentials", "code", "refresh", "revocation", "error"],
  },
  (setup) => runLibraryProgram("/usr/bin/python3", [PROGRAM], setup),
);

testFlows(
  {
    name: "Ruby oauth2",
    version: debianVersion("ruby-oauth2"),
    flows: ["clientCredentials", "code", "refresh", "error"],
  },
  (setup) => runLibraryProgram("/usr/bin/ruby", ["test/clients/programs/oauth2_client.rb"], setup),
);
