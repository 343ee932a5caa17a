import { describeBrowser } from "../../http/describe-browser.ts";
import { badge, csrfField, formatTime, formButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, table } from "../../ui/table.ts";

/** A session as the account page shows it. */
export type ShownSession = {
  id: string;
  means: "session" | "token";
  methods: string[];
  address: string | null;
  user_agent: string | null;
  created_at: string;
  last_seen_at: string | null;
  current: boolean;
};

const PATH = "/dashboard/account";
const METHODS: Record<string, string> = {
  password: "Password",
  totp: "authenticator app",
  recovery_code: "recovery code",
  passkey: "passkey",
};

/** Renders the user's active sessions. @param provider the name of the identity provider, if there is one */
export function sessionsPanel(
  sessions: ShownSession[],
  provider: string | undefined,
  csrf: string | undefined,
): Html {
  const columns: Column<ShownSession>[] = [
    {
      head: "Device",
      cell: ({ means, user_agent, current }) =>
        html`${means === "token" ? "API client" : describeBrowser(user_agent ?? "")}${current ? html` ${badge("this device", "good")}` : html``}`,
    },
    { head: "IP address", cell: ({ address }) => address ?? "unknown" },
    {
      head: "Signed in",
      cell: ({ created_at, methods }) =>
        html`${time(Date.parse(created_at))}<br><span class="soft">${describeMethods(methods, provider)}</span>`,
    },
    { head: "Last used", cell: ({ last_seen_at }) => (last_seen_at ? time(Date.parse(last_seen_at)) : "–") },
    {
      head: "Actions",
      cell: ({ id, current, created_at }) =>
        current
          ? ""
          : formButton({
              action: `${PATH}/sessions/${id}/delete`,
              csrf,
              text: "Revoke",
              about: `session from ${formatTime(Date.parse(created_at))}`,
            }),
    },
  ];
  const hasOthers = sessions.some(({ current }) => !current);
  return html`<section class="group"><h2>Active sessions</h2>
${table("Active sessions", columns, sessions)}
${hasOthers ? signOutForm(csrf) : html``}
</section>`;
}

function signOutForm(csrf: string | undefined): Html {
  return html`<form method="post" action="${PATH}/sessions/delete" class="stack">${csrfField(csrf)}
<label class="option"><input type="checkbox" name="apps" value="true"> Also revoke the access of all apps</label>
<button type="submit" class="quiet">Sign out everywhere else</button></form>`;
}

/** Returns the methods of a sign-in, such as “Password + authenticator app”. */
function describeMethods(methods: string[], provider = "SSO"): string {
  const names = methods.map((method) => (method === "sso" ? provider : (METHODS[method] ?? method)));
  const text = names.join(" + ");
  return text ? text.charAt(0).toUpperCase() + text.slice(1) : "–";
}
