// Hostilegen writes the index of the hostile files,
// plugins/host/testdata/hostile/INDEX.txt, when it is run from the module's root
// without an argument. With one it writes the files themselves into that folder.
package main

import (
	"fmt"
	"os"

	"github.com/loadstone-db/loadstone/plugins/host/hosttest/hostile"
)

func main() {
	var err error
	if len(os.Args) > 1 {
		err = hostile.Write(os.Args[1])
	} else {
		err = os.WriteFile("plugins/host/testdata/hostile/INDEX.txt", hostile.Index(),
			0o644) //nolint:gosec // test data is for everybody
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
