// Hostilegen writes the index of the hostile files,
// plugins/host/testdata/hostile/INDEX.txt, when it is run from the module's root
// without an argument. With one it writes the files themselves into that folder.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/loadstone-db/loadstone/plugins/host/hosttest/hostile"
)

func main() {
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "hostilegen [FOLDER]: the index of the hostile files, or the files")
	}
	flag.Parse()
	var err error
	if flag.NArg() > 0 {
		err = hostile.Write(flag.Arg(0))
	} else {
		err = os.WriteFile("plugins/host/testdata/hostile/INDEX.txt", hostile.Index(),
			0o644) //nolint:gosec // test data is for everybody
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
