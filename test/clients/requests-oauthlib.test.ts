import { testFlows } from "../harness/clients/library-flows.ts";
import { runLibraryProgram } from "../harness/clients/library-program.ts";
import { debianVersion } from "../harness/clients/versions.ts";

const PROGRAM = "test/clients/programs/requests_oauthlib_client.py";

testFlows(
  {
    name: "requests-oauthlib",
    version: debianVersion("python3-requests-oauthlib"),
    flows: ["clientCredentials", "code", "refresh", "revocation", "error"],
  },
  (setup) => runLibraryProgram("/usr/bin/python3", [PROGRAM], setup),
);
