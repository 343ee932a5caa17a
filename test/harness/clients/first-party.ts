import type { ExecutionContext } from "ava";
import type { z } from "zod";
import type { register } from "../../../server/operations/sign-in.ts";
import { apiAt, type Reply } from "./api.ts";

type FirstPartyTokens = z.output<(typeof register)["output"]>;

export const PASSWORD = "correct horse battery";

let count = 0;

export const newName = () => `newcomer${++count}`;

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

export function isTokenAnswer(t: ExecutionContext, { headers, body }: Reply<FirstPartyTokens>): void {
  t.regex(body.access_token, /^lga_[\w-]{58}$/);
  t.regex(body.refresh_token, /^lgr_[\w-]{58}$/);
  t.is(body.token_type, "Bearer");
  t.is(body.expires_in, 3600);
  t.is(headers.get("cache-control"), "no-store");
  t.deepEqual(headers.getSetCookie(), [], "a program gets no session");
}
