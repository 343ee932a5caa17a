import { z } from "zod";
import { notFound } from "../../resources/http/problem.ts";
import { ACCOUNT, sessionSchema, sessionToJson } from "./account.ts";
import { onAccount } from "./operation.ts";
import { flag } from "./schemas.ts";

const PATH = `${ACCOUNT}/sessions` as const;

export const listSessions = onAccount({
  at: `GET ${PATH}`,
  summary: "List the sessions",
  description: "Returns the browsers and programs in which the user is signed in.",
  output: z.object({ data: z.array(sessionSchema) }),
  async run({ storage, user }) {
    const sessions = await storage.sessions.listByUser(user.id);
    return { data: sessions.map((session) => sessionToJson(session, user)) };
  },
});

export const endOtherSessions = onAccount({
  at: `DELETE ${PATH}`,
  summary: "Sign out everywhere else",
  input: z.strictObject({
    apps: flag.default(false).describe("Whether to revoke the apps that the user authorized, too."),
  }),
  events: ["member.session_ended", "authorization.revoked"],
  done: {
    "sessions-ended": "Signed out everywhere else.",
    "apps-ended": "Signed out everywhere else, and revoked the access of all apps.",
  },
  outcome: ({ apps }) => (apps ? "apps-ended" : "sessions-ended"),
  async run({ storage, user: { sessionId, actor }, input }) {
    await storage.sessions.endOthers(sessionId, actor, input);
  },
});

export const endSession = onAccount({
  at: `DELETE ${PATH}/{session_id}`,
  summary: "End a session",
  events: ["member.session_ended"],
  done: { "session-ended": "Session revoked." },
  async run({ storage, user, params }) {
    if (!(await storage.sessions.end(params.session_id, user.actor))) throw notFound("session");
  },
});
