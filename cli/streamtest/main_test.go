// Package streamtest has the tests of continuous queries and rules on the real program. They are a package of their own
// beside the command's, so that both are tested at a time.
package streamtest

import (
	"testing"

	"github.com/loadstone-db/loadstone/cli"
	"github.com/loadstone-db/loadstone/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, cli.Main) }
