import test, { type ExecutionContext } from "ava";
import { bearer, startTestService } from "../service.ts";
import { skip } from "../skip.ts";
import { allow } from "./authorization.ts";
import { createApp } from "./authorization-request.ts";
import { FLOWS, type Flow } from "./flow-titles.ts";
import { isAcceptedByApi } from "./oauth.ts";

/** A client library: `version` is undefined if it is not installed, `flows` are those that it implements. */
type Library = { name: string; version: string | undefined; flows: Flow[]; redirectUri?: string };

/** A token that was used at the API, with the organization that it acts for. */
export type Used = { accessToken: string; organization: string };

/** Whether a client, as a resource server, accepts the token of a user, before and after its revocation, and others. */
type Accepted = { user: boolean; revoked: boolean; client?: boolean; withoutScope?: boolean };

export type Results = {
  clientCredentials?: Used;
  code: Used;
  userinfo?: string;
  refresh?: Used;
  /** The error code that the library reports for a code that was never issued. */
  error?: string;
  introspection?: Accepted;
};

export type ClientSetup = Awaited<ReturnType<typeof startSetup>>["setup"];

/** A redirect URI of a native app. Any port matches. */
const LOOPBACK = "http://127.0.0.1:8976/callback";
// The default scopes of many apps. Some libraries repeat them in refresh requests.
const SCOPE = "openid offline_access links:read";

async function startSetup(redirectUri: string) {
  const service = await startTestService();
  const { app, own, user } = await createApp(service, [redirectUri]);
  const setup = {
    issuer: service.url,
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    redirectUri,
    scope: SCOPE,
    allow: (authorizationUrl: string) => allow(service, user, authorizationUrl),
    token: (scope: string) => service.token(app, { scope }),
    async use(accessToken: string): Promise<Used> {
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

  for (const flow of flows) test(titleOf(flow), async (t) => CHECKS[flow](t, await finished, await started));
}

type Check = (
  t: ExecutionContext,
  results: Results,
  setup: Awaited<ReturnType<typeof startSetup>>,
) => unknown;

const CHECKS: Record<Flow, Check> = {
  clientCredentials: (t, { clientCredentials }, { app }) => t.is(clientCredentials?.organization, app.id),
  code: (t, { code }, { own }) => t.is(code.organization, own.id),
  userinfo: (t, { userinfo }, { user }) => t.is(userinfo, user.id),
  refresh(t, { code, refresh }, { own }) {
    t.is(refresh?.organization, own.id);
    t.not(refresh?.accessToken, code.accessToken);
  },
  revocation: async (t, { code, refresh }, { service }) =>
    t.false(await isAcceptedByApi(service, (refresh ?? code).accessToken)),
  error: (t, { error }) => t.is(error, "invalid_grant"),
  introspection(t, { introspection }) {
    const others = { client: true, withoutScope: false };
    t.deepEqual({ ...others, ...introspection }, { ...others, user: true, revoked: false });
  },
};
