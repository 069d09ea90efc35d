// Hostilegen writes plugins/host/testdata/hostile. Run it from the module's root.
package main

import (
	"fmt"
	"os"

	"github.com/loadstone-db/loadstone/plugins/host/hosttest/hostile"
)

func main() {
	if err := hostile.Write("plugins/host/testdata/hostile"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
