import { testFlows } from "../harness/clients/library-flows.ts";
import { runLibraryProgram } from "../harness/clients/library-program.ts";
import { debianVersion } from "../harness/clients/versions.ts";

testFlows(
  {
    name: "Authlib",
    version: debianVersion("python3-authlib"),
    flows: ["clientCredentials", "code", "refresh", "revocation", "error", "introspection"],
  },
  (setup) => runLibraryProgram("/usr/bin/python3", ["test/clients/programs/authlib_client.py"], setup),
);
