// This part is `loadstone slt`: test files of statements and continuous queries.

package cli

import (
	"fmt"
	"path/filepath"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/stream/slt"
)

// SLTCommand runs test files.
type SLTCommand struct {
	Files []string `arg:"" help:"Test files, or quoted patterns."`
}

// Help is shown by --help.
func (*SLTCommand) Help() string {
	return `A file holds statements with the rows or the error that they have to give; docs/reference/stream-sql.md says how. Each file
begins with an empty catalog and runs in this process: no server is needed.

  loadstone slt 'tests/*.slt'`
}

// Run prints a line for each file, and fails when one of them does.
func (c *SLTCommand) Run(e *terminal.Env) error {
	failed := 0
	for _, pattern := range c.Files {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			files = []string{pattern}
		}
		for _, file := range files {
			n, err := slt.Run(e.Ctx, file)
			if err != nil {
				failed++
				fmt.Fprintf(e.Stdout, "FAIL %v\n", err)
				continue
			}
			fmt.Fprintf(e.Stdout, "PASS %s, %d records\n", file, n)
		}
	}
	if failed > 0 {
		return &terminal.ExitError{Code: terminal.ExitFailed, Err: fmt.Errorf("%d of the files failed", failed)}
	}
	return nil
}
