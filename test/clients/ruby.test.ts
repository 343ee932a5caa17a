import { testFlows } from "../harness/clients/library-flows.ts";
import { runLibraryProgram } from "../harness/clients/library-program.ts";
import { debianVersion } from "../harness/clients/versions.ts";

testFlows(
  {
    name: "Ruby oauth2",
    version: debianVersion("ruby-oauth2"),
    flows: ["clientCredentials", "code", "refresh", "error"],
  },
  (setup) => runLibraryProgram("/usr/bin/ruby", ["test/clients/programs/oauth2_client.rb"], setup),
);
