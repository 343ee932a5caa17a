import type { ExecutionContext } from "ava";
import { apiAt, type Reply } from "./api.ts";

/** The response to a JSON sign-in. */
export type FirstPartyTokens = {
  user: { id: string; username: string };
  organization: { id: string; name: string; plan: string };
  access_token: string;
  refresh_token: string;
  token_type: string;
  expires_in: number;
};

export const PASSWORD = "correct horse battery";

let count = 0;

/** Returns an unused username. */
export const newName = () => `newcomer${++count}`;

/** Returns a JSON client of `/auth`. */
export function firstPartyAt(url: string) {
  const post = (path: string, json: object, token?: string) =>
    apiAt(url, token).send<FirstPartyTokens>("POST", path, { json });
  return {
    post,
    me: (token: string) => apiAt(url, token).get("/dashboard/me"),
    async register(fields: object = {}): Promise<FirstPartyTokens> {
      const reply = await post("/auth/register", { username: newName(), password: PASSWORD, ...fields });
      if (reply.status !== 201) throw new Error(`registration failed: ${reply.text}`);
      return reply.body;
    },
  };
}

/** Asserts that a response contains tokens and sets no session cookie. */
export function isTokenAnswer(t: ExecutionContext, { headers, body }: Reply<FirstPartyTokens>): void {
  t.regex(body.access_token, /^lga_[\w-]{58}$/);
  t.regex(body.refresh_token, /^lgr_[\w-]{58}$/);
  t.is(body.token_type, "Bearer");
  t.is(body.expires_in, 3600);
  t.is(headers.get("cache-control"), "no-store");
  t.deepEqual(headers.getSetCookie(), [], "a program gets no session");
}
