package load_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// asTarget makes this program a null target, in a process of its own for
// benchmarks that measure what a connection takes in this one.
const asTarget = "LOADSTONE_TEST_NULL_TARGET"

// asRefused makes this program load a target while the system refuses io_uring: from the start, or later.
const asRefused = "LOADSTONE_TEST_RING_REFUSED"

func TestMain(m *testing.M) {
	if address := os.Getenv(asTarget); address != "" {
		os.Exit(serveNullTarget(address))
	}
	if when := os.Getenv(asRefused); when != "" {
		os.Exit(loadWhileRefused(when))
	}
	goleak.VerifyTestMain(pgtest.M{M: m})
}

// serveNullTarget prints its DSN and serves until its input ends.
func serveNullTarget(address string) int {
	server, err := nullpg.Listen(context.Background(), address, nullpg.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(server.DSN())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = server.Close()
	return 0
}
