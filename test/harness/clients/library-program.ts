import { Program } from "../program.ts";
import type { ClientSetup, Results } from "./library-flows.ts";

/**
 * Runs the program of a client library. The program prints its authorization URL, reads the URL that it is called back
 * at from stdin, and ends by printing its results as a line of JSON.
 */
export async function runLibraryProgram(
  command: string,
  args: string[],
  { issuer, clientId, clientSecret, redirectUri, scope, allow }: ClientSetup,
): Promise<Results> {
  const program = new Program(command, args, {
    settings: {
      ISSUER: issuer,
      CLIENT_ID: clientId,
      CLIENT_SECRET: clientSecret,
      REDIRECT_URI: redirectUri,
      SCOPE: scope,
      // The Python libraries reject http, also on loopback, unless these are set.
      AUTHLIB_INSECURE_TRANSPORT: "1",
      OAUTHLIB_INSECURE_TRANSPORT: "1",
    },
  });
  const [, url = ""] = await program.says(/^(http\S+)\n/m);
  program.write(`${await allow(url)}\n`);
  const { code, stdout, stderr } = await program.ended;
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} exited with ${code}:\n${stderr}`);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Results;
}
