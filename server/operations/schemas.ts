import { z } from "zod";

/** RFC 3339 in UTC. */
export const timestamp = z.iso.datetime();

export const flag = z.boolean({ error: "must be true or false" });
