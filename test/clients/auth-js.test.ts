import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Auth, type AuthConfig } from "@auth/core";
import type { Account } from "@auth/core/types";
import { startApp } from "../harness/clients/app-server.ts";
import { type ClientSetup, testFlows } from "../harness/clients/library-flows.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { npmVersion } from "../harness/clients/versions.ts";

/** Configures linkgate as an OpenID Connect provider. The session contains the account, which has the tokens. */
function configure({ issuer, clientId, clientSecret, scope }: ClientSetup): AuthConfig {
  return {
    basePath: "/auth",
    secret: randomBytes(32).toString("base64url"),
    trustHost: true,
    providers: [
      {
        id: "linkgate",
        name: "linkgate",
        type: "oidc",
        issuer,
        clientId,
        clientSecret,
        authorization: { params: { scope } },
        checks: ["pkce", "state", "nonce"],
        // Otherwise the ID token is enough.
        idToken: false,
      },
    ],
    callbacks: {
      jwt: ({ token, account }) => (account ? { ...token, account } : token),
      session: ({ session, token }) => ({ ...session, account: token.account }),
    },
  };
}

async function toRequest(request: IncomingMessage, origin: string): Promise<Request> {
  const { method = "GET", headers, url = "" } = request;
  const body = method === "POST" ? (await request.toArray()).join("") : null;
  return new Request(origin + url, { method, headers: headers as Record<string, string>, body });
}

/** Starts a web app with Auth.js, which redirects to `/` after a sign-in. */
async function startAuthApp(config: AuthConfig) {
  const app = await startApp(async (request, answer) => {
    if (request.url === "/") return void answer.end("signed in");
    const response = await Auth(await toRequest(request, app.url), config);
    answer.setHeaders(response.headers);
    answer.writeHead(response.status).end(await response.text());
  });
  return app;
}

testFlows(
  {
    name: "@auth/core",
    version: npmVersion("@auth/core"),
    flows: ["code", "userinfo"],
    redirectUri: "http://127.0.0.1/auth/callback/linkgate",
  },
  async (setup) => {
    const app = await startAuthApp(configure(setup));
    try {
      const browser = new TestBrowser(app.url);
      const page = await browser.open(`${app.url}/auth/signin`);
      const request = await browser.press(page, "Sign in with linkgate");
      const { text } = await browser.open((await setup.allow(request.url)).href);
      if (text !== "signed in") throw new Error(`the app refused the sign-in: ${text}`);
      const session = await browser.open(`${app.url}/auth/session`);
      const { account } = JSON.parse(session.text) as { account: Account };
      return { code: await setup.use(account.access_token ?? ""), userinfo: account.providerAccountId };
    } finally {
      app.close();
    }
  },
);
