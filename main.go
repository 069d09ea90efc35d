// Loadstone finds out what a database table can take. See README.md.
package main

import (
	"os"

	"github.com/loadstone-db/loadstone/cli"
	"github.com/loadstone-db/loadstone/cli/terminal"
)

func main() { os.Exit(cli.Main(os.Args[1:], terminal.Settings{})) }
