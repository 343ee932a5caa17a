import type { Plan } from "../../../resources/plans.ts";
import type { Reply } from "../clients/api.ts";
import type { Server } from "../remote-servers.ts";

/** The expected state of a client. Secrets are in plain text, newest first. */
export type State = { secrets: string[]; name: string; plan: Plan; redirectUris: string[] };

/** A client under test. */
export type App = {
  id: string;
  clientId: string;
  state: State;
  /** The ids of the two secrets, if the round needs them. */
  secretIds?: string[] | undefined;
  /** A token that was issued before the round. */
  token?: string;
};

/** A completed change. `apply` returns the new state, and throws if the response contradicts the previous state. */
export type Change = { apply(state: State): State; secret?: string; isCompromised?: boolean };

/** A kind of change, sent to the JSON API of a server's dashboard. */
export type Writer = { title: string; change(app: App, server: Server, seed: number): Promise<Change> };

const pathOf = ({ id }: App) => `/dashboard/organizations/${id}`;

function rotation(title: string, json: { overlap_hours?: number; compromised?: true }): Writer {
  const isCompromised = json.compromised === true;
  return {
    title,
    async change(app, { api }) {
      const { body } = assertSucceeded(
        await api.send<{ client_secret: string }>("POST", `${pathOf(app)}/client/rotate`, { json }),
      );
      const secret = body.client_secret;
      const apply = (state: State) => ({
        ...state,
        secrets: isCompromised ? [secret] : [secret, ...state.secrets.slice(0, 1)],
      });
      return { secret, isCompromised, apply };
    },
  };
}

/** The two kinds of rotation. */
export const ROTATIONS: Writer[] = [
  rotation("a compromised rotation", { compromised: true }),
  rotation("a rotation with an overlap", { overlap_hours: 24 }),
];

/** Revokes one of the client's two secrets. Revoking the newest must be rejected. */
export const REVOKE_SECRET: Writer = {
  title: "the revocation of a secret",
  async change(app, { api }, seed) {
    const index = seed % 3 === 0 ? 0 : 1;
    const secret = app.state.secrets[index] as string;
    const { status } = await api.send("DELETE", `${pathOf(app)}/client/secrets/${app.secretIds?.[index]}`);
    return {
      apply(state) {
        const position = state.secrets.indexOf(secret);
        const expected = position === -1 ? 404 : position === 0 ? 409 : 204;
        if (status !== expected) throw new Error(`${status} instead of ${expected}`);
        return { ...state, secrets: state.secrets.filter((other, index) => other !== secret || index === 0) };
      },
    };
  },
};

/** Changes that don't affect secrets. */
export const OTHERS: Writer[] = [
  {
    title: "a rename",
    async change(app, { api }, seed) {
      const name = `Renamed ${seed}`;
      assertSucceeded(await api.send("PATCH", pathOf(app), { json: { name } }));
      return { apply: (state) => ({ ...state, name }) };
    },
  },
  {
    title: "a plan change",
    async change(app, { api }, seed) {
      const otherPlans = (["free", "growth", "premium"] as const).filter((other) => other !== app.state.plan);
      const plan = otherPlans[seed % 2] as Plan;
      assertSucceeded(await api.send("PUT", `${pathOf(app)}/plan`, { json: { plan } }));
      return { apply: (state) => ({ ...state, plan }) };
    },
  },
  {
    title: "a change of redirect URIs",
    async change(app, { api }, seed) {
      const redirectUris = [`https://app.example.com/callback/${seed}`];
      const json = { redirect_uris: redirectUris };
      assertSucceeded(await api.send("PUT", `${pathOf(app)}/client/redirect-uris`, { json }));
      return { apply: (state) => ({ ...state, redirectUris }) };
    },
  },
];

function assertSucceeded<Body>(reply: Reply<Body>): Reply<Body> {
  if (reply.status !== 200) throw new Error(`${reply.status} ${reply.text}`);
  return reply;
}
