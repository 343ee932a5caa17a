import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import passport from "passport";
import { Strategy, TokenError, type VerifyCallback } from "passport-oauth2";
import { startApp } from "../harness/clients/app-server.ts";
import { type ClientSetup, testFlows } from "../harness/clients/library-flows.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { npmVersion } from "../harness/clients/versions.ts";

/** Starts a web app with the strategy; `/` begins the sign-in, and the callback answers with the access token. */
async function startPassportApp({ issuer, clientId, clientSecret, scope }: ClientSetup) {
  const sessions = new Map<string, object>();
  const app = await startApp((request, answer) => {
    const handle = passport.authenticate(
      "oauth2",
      { session: false },
      (error: unknown, user?: string | false) =>
        answer
          .writeHead(user ? 200 : 401)
          .end(user || (error instanceof TokenError ? error.code : String(error))),
    );
    // What express and its session middleware add.
    const query = Object.fromEntries(new URL(request.url ?? "", app.url).searchParams);
    handle(Object.assign(request, { query, session: sessionOf(request) }), answer, () => answer.end());

    function sessionOf({ headers }: IncomingMessage): object {
      const id = /session=([\w-]+)/.exec(headers.cookie ?? "")?.[1] ?? randomUUID();
      const session = sessions.get(id) ?? {};
      sessions.set(id, session);
      answer.setHeader("set-cookie", `session=${id}; HttpOnly`);
      return session;
    }
  });
  passport.use(
    new Strategy(
      {
        authorizationURL: `${issuer}/oauth/authorize`,
        tokenURL: `${issuer}/oauth/token`,
        clientID: clientId,
        clientSecret,
        callbackURL: `${app.url}/callback`,
        scope: scope.split(" "),
        state: true,
        pkce: true,
      },
      (accessToken: string, _refreshToken: string, _profile: unknown, done: VerifyCallback) =>
        done(null, accessToken as Express.User),
    ),
  );
  return app;
}

testFlows(
  { name: "passport-oauth2", version: npmVersion("passport-oauth2"), flows: ["code", "error"] },
  async (setup) => {
    const app = await startPassportApp(setup);
    try {
      const browser = new TestBrowser(app.url);
      const request = await browser.open(app.url);
      const { status, text } = await browser.open((await setup.allow(request.url)).href);
      if (status !== 200) throw new Error(`the app refused the sign-in: ${text}`);
      const next = new URL((await browser.open(app.url)).url);
      const forged = new URLSearchParams({ code: "unknown", state: next.searchParams.get("state") ?? "" });
      const refused = await browser.open(`${app.url}/callback?${forged}`);
      return { code: await setup.use(text), error: refused.text };
    } finally {
      app.close();
    }
  },
);
