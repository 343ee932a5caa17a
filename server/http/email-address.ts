import { z } from "zod";

const RULE = { error: "must be an email address, such as ada@example.com" };

/** Lower case, because limits must not depend on the spelling; ASCII only, so it has no lookalikes. */
export const emailAddress = z.string(RULE).max(254, RULE).trim().toLowerCase().pipe(z.email(RULE));
