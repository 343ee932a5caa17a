import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { OPERATOR, postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { id: organizationId } = await service.createOrganization("Zorbvexia");

// Those of organizations are in no list of breached passwords.
const GUESSES = ["sunshine", "Password1!", "Qwerty123!", "Linkgate2026!", "Zorbvexia2026!"];
const FRESH = "an entirely new password";

async function invite(): Promise<string> {
  const created = { organizationId, role: "member", lifetimeMs: 60_000, actor: OPERATOR } as const;
  return (await service.storage.invitations.create(created)).token;
}

const register = (form: Record<string, string>) => async (password: string) =>
  (await postForm(`${service.url}/auth/register`, { ...form, password })).status;

const WAYS: Record<string, () => Promise<(password: string) => Promise<number>>> = {
  "a registration": async () => register({ username: "guessable", organization_name: "Zorbvexia" }),
  "a registration with an invitation": async () =>
    register({ username: "invited", invitation: await invite() }),
  async "a change"() {
    const user = await service.createUser([organizationId]);
    const api = apiAt(service.url, await firstPartyToken(service, user));
    return async (new_password) => {
      const json = { current_password: user.password, new_password };
      return (await api.send("POST", "/dashboard/account/password", { json })).status;
    };
  },
  async "a reset link"() {
    const { id } = await service.createUser([organizationId]);
    const url = `${service.url}/auth/reset-password/${await service.storage.accounts.createResetToken(id, 60_000)}`;
    return async (password) => (await postForm(url, { password })).status;
  },
};

for (const [way, prepare] of Object.entries(WAYS))
  test(`guessable passwords are rejected by ${way}, also those made of the organization's name, and others work`, async (t) => {
    const setPassword = await prepare();
    for (const password of GUESSES) t.is(await setPassword(password), 422, password);
    t.true([200, 201, 204].includes(await setPassword(FRESH)));
  });
