import type { Plan } from "../../../resources/plans.ts";
import type { TestService } from "../service.ts";
import { createTeam, type Team } from "./dashboard.ts";

/** A form whose response shows a secret, or a link that acts as one. Paths are those within an organization. */
export type SecretForm = {
  name: string;
  plan?: Plan;
  /** The path of its page, where `:webhook` stands for an existing one. */
  path: string;
  /** The text of its button, where `:member` stands for a name. */
  button: string;
  fields?: Record<string, string>;
  /** The list with what the form creates, in the JSON API. */
  created: string;
  secret: RegExp;
  /** The link on the page that no longer shows the secret. */
  next: string;
  /** Where that page says that the secret can be shown again, if it can. */
  again?: RegExp;
};

const WEBHOOK = { url: "https://hooks.example.com/in", events: ["link.created"] };
const CLIENT_SECRET = { secret: /lgs_[\w-]{20,}/, next: "Back to API access" };
const WEBHOOK_SECRET = {
  secret: /whsec_[A-Za-z0-9+/]{43}=/,
  next: "Back to the webhook",
  again: /view the secret again on the webhook’s page/,
};
const INVITATION = { secret: /\/dashboard\/invitations\/[\w-]{20,}/, next: "Back to members" };
const RESET_LINK = { secret: /\/auth\/reset-password\/[\w-]{20,}/, next: "Back to members" };

type Kind = Pick<SecretForm, "secret" | "next" | "again" | "plan" | "fields">;
const FORMS: [name: string, path: string, button: string, created: string, kind: Kind][] = [
  [
    "an upgrade that creates the client",
    ...(["/plan", "Upgrade to Growth", "/client"] as const),
    { ...CLIENT_SECRET, plan: "free" },
  ],
  ["a rotation of the client secret", "/client/rotate", "Rotate secret", "/client", CLIENT_SECRET],
  [
    "a new webhook",
    ...(["/webhooks/new", "Create webhook", "/webhooks"] as const),
    { ...WEBHOOK_SECRET, fields: { url: WEBHOOK.url } },
  ],
  [
    "a rotation of a webhook secret",
    ...(["/webhooks/:webhook/rotate-secret", "Rotate secret", "/audit?type=webhook.secret_rotated"] as const),
    WEBHOOK_SECRET,
  ],
  [
    "a view of a webhook secret",
    ...(["/webhooks/:webhook", "Show secret", "/audit?type=webhook.secret_viewed"] as const),
    WEBHOOK_SECRET,
  ],
  ["an invitation", "/members", "Create invitation link", "/invitations", INVITATION],
  [
    "a password reset link",
    ...(["/members", "Create reset link for :member", "/audit?type=member.reset_link_created"] as const),
    RESET_LINK,
  ],
];

/** Every dashboard form whose next page shows a secret once. */
export const SECRET_FORMS: SecretForm[] = FORMS.map(([name, path, button, created, kind]) => ({
  ...{ name, path, button, created },
  ...kind,
}));

async function createWebhook({ base, owner }: Team): Promise<string> {
  const { body } = await owner.api.send<{ id: string }>("POST", `${base}/webhooks`, { json: WEBHOOK });
  return body.id;
}

type List = { id: string }[];

export async function prepareForm(service: TestService, form: SecretForm) {
  const team = await createTeam(service, form.plan ?? "growth");
  const { base, owner, member } = team;
  const webhook = form.path.includes(":webhook") ? await createWebhook(team) : "";
  return {
    ...team,
    page: service.url + base + form.path.replace(":webhook", webhook),
    button: form.button.replace(":member", member.username),
    async created() {
      const { body } = await owner.api.get<{ data?: List; secrets?: List }>(base + form.created);
      return (body.data ?? body.secrets ?? []).map(({ id }) => id);
    },
  };
}
