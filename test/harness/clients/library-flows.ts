import test, { type ExecutionContext } from "ava";
import { bearer, startTestService } from "../service.ts";
import { skip } from "../skip.ts";
import { FLOWS, type Flow } from "./flow-titles.ts";
import { allow, createApp, isAcceptedByApi } from "./oauth.ts";

/** A client library: `version` is undefined if it is not installed, `flows` are those that it implements. */
type Library = { name: string; version: string | undefined; flows: Flow[]; redirectUri?: string };

/** A token that was used at the API, with the organization that it acts for. */
export type Used = { accessToken: string; organization: string };

/** Whether a client, as a resource server, accepts the token of a user, before and after its revocation, and others. */
type Accepted = { user: boolean; revoked: boolean; client?: boolean; withoutScope?: boolean };

/** What a client did. */
export type Results = {
  clientCredentials?: Used;
  code: Used;
  /** The `sub` of the userinfo response. */
  userinfo?: string;
  refresh?: Used;
  /** The error code that the library reports for a code that was never issued. */
  error?: string;
  introspection?: Accepted;
};

/** The settings of a client, and the user in front of it. */
export type ClientSetup = {
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  scope: string;
  /** Signs the user in and allows the request; returns the URL that the client is called back at. */
  allow(authorizationUrl: string): Promise<URL>;
  /** Requests a token with the client credentials grant. */
  token(scope: string): Promise<string>;
  /** Uses a token at the API. */
  use(accessToken: string): Promise<Used>;
};

/** A redirect URI of a native app. Any port matches. */
const LOOPBACK = "http://127.0.0.1:8976/callback";
// The default scopes of many apps. Some libraries repeat them in refresh requests.
const SCOPE = "openid offline_access links:read";

async function startSetup(redirectUri: string) {
  const service = await startTestService();
  const { app, own, user } = await createApp(service, [redirectUri]);
  const setup: ClientSetup = {
    issuer: service.url,
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    redirectUri,
    scope: SCOPE,
    allow: (url) => allow(service, user, url),
    token: (scope) => service.token(app, { scope }),
    async use(accessToken) {
      const answer = await fetch(`${service.url}/v1/organization`, { headers: bearer(accessToken) });
      if (!answer.ok) throw new Error(`the token was refused: ${await answer.text()}`);
      return { accessToken, organization: ((await answer.json()) as { id: string }).id };
    },
  };
  return { service, app, own, user, setup };
}

/** Declares a test for each flow of a library. `run` goes through them with the library, and revokes last. */
export function testFlows(
  { name, version, flows, redirectUri = LOOPBACK }: Library,
  run: (setup: ClientSetup) => Promise<Results>,
): void {
  const titleOf = (flow: Flow) => [name, version, FLOWS[flow]].filter(Boolean).join(" ");
  if (!version) {
    for (const flow of flows) skip(titleOf(flow), `${name} is not installed`);
    return;
  }
  const started = startSetup(redirectUri);
  const finished = started.then(({ setup }) => run(setup));
  // The tests report a failure.
  finished.catch(() => undefined);
  test.after.always(async () => (await started).service.close());

  const checks: Record<Flow, (t: ExecutionContext) => Promise<void>> = {
    async clientCredentials(t) {
      const { app } = await started;
      t.is((await finished).clientCredentials?.organization, app.id);
    },
    async code(t) {
      const { own } = await started;
      t.is((await finished).code.organization, own.id);
    },
    async userinfo(t) {
      const { user } = await started;
      t.is((await finished).userinfo, user.id);
    },
    async refresh(t) {
      const { own } = await started;
      const { code, refresh } = await finished;
      t.is(refresh?.organization, own.id);
      t.not(refresh?.accessToken, code.accessToken);
    },
    async revocation(t) {
      const { service } = await started;
      const { code, refresh } = await finished;
      t.false(await isAcceptedByApi(service, (refresh ?? code).accessToken));
    },
    async error(t) {
      t.is((await finished).error, "invalid_grant");
    },
    async introspection(t) {
      const { introspection } = await finished;
      t.deepEqual(
        { client: true, withoutScope: false, ...introspection },
        { client: true, withoutScope: false, user: true, revoked: false },
      );
    },
  };
  for (const flow of flows) test(titleOf(flow), checks[flow]);
}
