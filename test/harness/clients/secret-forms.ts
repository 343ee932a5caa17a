import type { Plan } from "../../../resources/plans.ts";
import type { TestService } from "../service.ts";
import { createTeam } from "./dashboard.ts";

type Team = Awaited<ReturnType<typeof createTeam>>;
type List<Item = { id: string }> = { data: Item[] };

/** A form whose response shows a secret, or a link that acts as one. */
export type SecretForm = {
  name: string;
  plan?: Plan;
  /** Creates what the form needs, and returns the path of its page. */
  prepare(team: Team): Promise<string> | string;
  /** The text of its button. */
  button(team: Team): string;
  fields?: Record<string, string>;
  /** Returns the ids of the resources that the form has created so far, from the JSON API. */
  created(team: Team): Promise<string[]>;
  secret: RegExp;
  /** The link on the page that no longer shows the secret. */
  next: string;
  /** Where that page says that the secret can be shown again, if it can. */
  again?: RegExp;
};

const WEBHOOK = { url: "https://hooks.example.com/in", events: ["link.created"] };
const audited = (type: string) => (team: Team) => idsOf(team, `/audit?type=${type}`);

async function idsOf({ owner, base }: Team, path: string): Promise<string[]> {
  return (await owner.api.get<List>(base + path)).body.data.map(({ id }) => id);
}

async function clientSecrets({ owner, base }: Team): Promise<string[]> {
  const { body } = await owner.api.get<{ secrets?: { id: string }[] }>(`${base}/client`);
  return (body.secrets ?? []).map(({ id }) => id);
}

/** Every dashboard form whose next page shows a secret once. */
export const SECRET_FORMS: SecretForm[] = [
  {
    name: "an upgrade that creates the client",
    plan: "free",
    prepare: ({ base }) => `${base}/plan`,
    button: () => "Upgrade to Growth",
    created: clientSecrets,
    secret: /lgs_[\w-]{20,}/,
    next: "Back to API access",
  },
  {
    name: "a rotation of the client secret",
    prepare: ({ base }) => `${base}/client/rotate`,
    button: () => "Rotate secret",
    created: clientSecrets,
    secret: /lgs_[\w-]{20,}/,
    next: "Back to API access",
  },
  {
    name: "a new webhook",
    prepare: ({ base }) => `${base}/webhooks/new`,
    button: () => "Create webhook",
    fields: { url: WEBHOOK.url },
    created: (team) => idsOf(team, "/webhooks"),
    secret: /whsec_[A-Za-z0-9+/]{43}=/,
    next: "Back to the webhook",
    again: /view the secret again on the webhook’s page/,
  },
  {
    name: "a rotation of a webhook secret",
    async prepare({ base, owner }) {
      const { body } = await owner.api.send<{ id: string }>("POST", `${base}/webhooks`, { json: WEBHOOK });
      return `${base}/webhooks/${body.id}/rotate-secret`;
    },
    button: () => "Rotate secret",
    created: audited("webhook.secret_rotated"),
    secret: /whsec_[A-Za-z0-9+/]{43}=/,
    next: "Back to the webhook",
    again: /view the secret again on the webhook’s page/,
  },
  {
    name: "a view of a webhook secret",
    async prepare({ base, owner }) {
      const { body } = await owner.api.send<{ id: string }>("POST", `${base}/webhooks`, { json: WEBHOOK });
      return `${base}/webhooks/${body.id}`;
    },
    button: () => "Show secret",
    created: audited("webhook.secret_viewed"),
    secret: /whsec_[A-Za-z0-9+/]{43}=/,
    next: "Back to the webhook",
    again: /view the secret again on the webhook’s page/,
  },
  {
    name: "an invitation",
    prepare: ({ base }) => `${base}/members`,
    button: () => "Create invitation link",
    created: (team) => idsOf(team, "/invitations"),
    secret: /\/dashboard\/invitations\/[\w-]{20,}/,
    next: "Back to members",
  },
  {
    name: "a password reset link",
    prepare: ({ base }) => `${base}/members`,
    button: ({ member }) => `Create reset link for ${member.username}`,
    created: audited("member.reset_link_created"),
    secret: /\/auth\/reset-password\/[\w-]{20,}/,
    next: "Back to members",
  },
];

/** Creates a team and what the page of a form needs. */
export async function prepareForm(service: TestService, form: SecretForm) {
  const team = await createTeam(service, form.plan ?? "growth");
  const path = await form.prepare(team);
  return {
    ...team,
    page: service.url + path,
    button: form.button(team),
    created: () => form.created(team),
  };
}
